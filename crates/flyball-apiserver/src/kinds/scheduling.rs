//! The kinds of the group `scheduling.k8s.io`.

use crate::kinds::spec::{
    Create, Delay, DeletionStrategy, Dependents, Enforcement, Generation, ResourceSpec, Rules, no_preparation,
    no_warnings,
};
use flyball_schema::builtin;
use flyball_schema::names::NameRule;

/// PriorityClass.
pub static PRIORITY_CLASS: ResourceSpec = ResourceSpec {
    group: "scheduling.k8s.io",
    plural: "priorityclasses",
    stored_as: None,
    names: NameRule::Subdomain,
    create: Create::Store,
    create_on_update: false,
    unconditional_update: true,
    generation: Generation::Once,
    default: builtin::priority::default,
    prepare: no_preparation,
    validate: builtin::priority::validate,
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
