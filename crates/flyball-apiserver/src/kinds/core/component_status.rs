//! ComponentStatus.

use crate::kinds::spec::{
    Create, Delay, DeletionStrategy, Dependents, Enforcement, Generation, ResourceSpec, Rules, no_default,
    no_preparation, no_rules, no_warnings,
};
use flyball_schema::names::NameRule;

/// ComponentStatus.
pub static COMPONENT_STATUS: ResourceSpec = ResourceSpec {
    group: "",
    plural: "componentstatuses",
    stored_as: Some(("", "componentstatus")),
    names: NameRule::Subdomain,
    create: Create::Store,
    create_on_update: false,
    unconditional_update: true,
    generation: Generation::Untracked,
    default: no_default,
    prepare: no_preparation,
    validate: no_rules,
    rules: Rules::Partial,
    warnings: no_warnings,
    resets: &[],
    status: None,
    subresources: &[],
    allocation: None,
    deletion: DeletionStrategy {
        returns_object: false,
        dependents: Dependents::Deleted,
        delay: Delay::None,
        warning: None,
    },
    conversion: None,
    fields: &[],
    deprecation: Some("v1 ComponentStatus is deprecated in v1.19+"),
    enforcement: Enforcement::Enforced,
};
