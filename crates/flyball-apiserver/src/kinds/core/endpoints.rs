//! Endpoints.

use crate::kinds::spec::{
    Create, Delay, DeletionStrategy, Dependents, Enforcement, Generation, ResourceSpec, Rules, no_preparation,
    no_rules, no_warnings,
};
use flyball_schema::builtin;
use flyball_schema::names::NameRule;

/// Endpoints.
pub static ENDPOINTS: ResourceSpec = ResourceSpec {
    group: "",
    plural: "endpoints",
    stored_as: None,
    names: NameRule::Subdomain,
    create: Create::Store,
    create_on_update: true,
    unconditional_update: true,
    generation: Generation::Untracked,
    default: builtin::network::default_endpoints,
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
    deprecation: Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"),
    enforcement: Enforcement::Enforced,
};
