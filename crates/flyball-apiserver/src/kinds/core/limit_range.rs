//! LimitRange.

use crate::kinds::spec::{
    Create, Delay, DeletionStrategy, Dependents, Enforcement, Generation, ResourceSpec, Rules, no_preparation,
    no_rules, no_warnings,
};
use flyball_schema::builtin;
use flyball_schema::names::NameRule;

/// LimitRange.
pub static LIMIT_RANGE: ResourceSpec = ResourceSpec {
    group: "",
    plural: "limitranges",
    stored_as: None,
    names: NameRule::Subdomain,
    create: Create::Store,
    create_on_update: true,
    unconditional_update: true,
    generation: Generation::Untracked,
    default: builtin::limit::default,
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
