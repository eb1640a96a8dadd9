//! ConfigMap.

use crate::kinds::spec::{
    Create, Delay, DeletionStrategy, Dependents, Enforcement, Generation, ResourceSpec, Rules, no_default,
    no_preparation, no_warnings,
};
use flyball_schema::builtin;
use flyball_schema::names::NameRule;

/// ConfigMap.
pub static CONFIG_MAP: ResourceSpec = ResourceSpec {
    group: "",
    plural: "configmaps",
    stored_as: None,
    names: NameRule::Subdomain,
    create: Create::Store,
    create_on_update: false,
    unconditional_update: true,
    generation: Generation::Untracked,
    default: no_default,
    prepare: no_preparation,
    validate: builtin::config_map::validate,
    rules: Rules::Complete,
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
