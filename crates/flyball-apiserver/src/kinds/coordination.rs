//! The kinds of the group `coordination.k8s.io`.

use crate::kinds::spec::{
    Create, Delay, DeletionStrategy, Dependents, Enforcement, Generation, ResourceSpec, Rules, no_default, no_warnings,
};
use flyball_schema::builtin;
use flyball_schema::names::NameRule;

/// Lease.
pub static LEASE: ResourceSpec = ResourceSpec {
    group: "coordination.k8s.io",
    plural: "leases",
    stored_as: None,
    names: NameRule::Subdomain,
    create: Create::Store,
    create_on_update: true,
    unconditional_update: false,
    generation: Generation::Untracked,
    default: no_default,
    prepare: builtin::lease::prepare,
    validate: builtin::lease::validate,
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
