//! PodTemplate.

use crate::kinds::spec::{
    Create, Delay, DeletionStrategy, Dependents, Enforcement, Generation, ResourceSpec, Rules, no_preparation,
    no_rules, no_warnings,
};
use flyball_schema::builtin;
use flyball_schema::names::NameRule;

/// PodTemplate.
pub static POD_TEMPLATE: ResourceSpec = ResourceSpec {
    group: "",
    plural: "podtemplates",
    stored_as: None,
    names: NameRule::Subdomain,
    create: Create::Store,
    create_on_update: false,
    unconditional_update: true,
    generation: Generation::Spec,
    default: builtin::pod::default_template,
    prepare: no_preparation,
    validate: no_rules,
    rules: Rules::Partial,
    warnings: no_warnings,
    resets: &[],
    status: None,
    subresources: &[],
    allocation: None,
    deletion: DeletionStrategy {
        returns_object: true,
        dependents: Dependents::Deleted,
        delay: Delay::None,
        warning: None,
    },
    conversion: None,
    fields: &[],
    deprecation: None,
    enforcement: Enforcement::Enforced,
};
