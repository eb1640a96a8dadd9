//! ServiceAccount.

use crate::kinds::spec::{
    Create, Delay, DeletionStrategy, Dependents, Enforcement, Generation, ResourceSpec, Rules, SubresourceEndpoint,
    no_default, no_preparation, no_rules, no_warnings,
};
use flyball_schema::names::NameRule;

/// ServiceAccount.
pub static SERVICE_ACCOUNT: ResourceSpec = ResourceSpec {
    group: "",
    plural: "serviceaccounts",
    stored_as: None,
    names: NameRule::Subdomain,
    create: Create::Store,
    create_on_update: false,
    unconditional_update: true,
    generation: Generation::Untracked,
    default: no_default,
    prepare: no_preparation,
    validate: no_rules,
    rules: Rules::Complete,
    warnings: no_warnings,
    resets: &[],
    status: None,
    subresources: &[("token", SubresourceEndpoint::Token)],
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
