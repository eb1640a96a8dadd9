//! The kinds of the group `node.k8s.io`.

use crate::kinds::spec::{
    Create, Delay, DeletionStrategy, Dependents, Enforcement, Generation, ResourceSpec, Rules, no_default,
    no_preparation, no_rules, no_warnings,
};
use flyball_schema::names::NameRule;

/// RuntimeClass.
pub static RUNTIME_CLASS: ResourceSpec = ResourceSpec {
    group: "node.k8s.io",
    plural: "runtimeclasses",
    stored_as: None,
    names: NameRule::Subdomain,
    create: Create::Store,
    create_on_update: true,
    unconditional_update: false,
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
    deprecation: None,
    enforcement: Enforcement::Enforced,
};
