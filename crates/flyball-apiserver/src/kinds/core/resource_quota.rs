//! ResourceQuota.

use crate::kinds::spec::{
    Create, Delay, DeletionStrategy, Dependents, Enforcement, Generation, KeptMetadata, ResourceSpec, Rules,
    StatusStrategy, SubresourceEndpoint, no_default, no_preparation, no_status_preparation, no_warnings,
};
use flyball_schema::builtin;
use flyball_schema::names::NameRule;

/// ResourceQuota.
pub static RESOURCE_QUOTA: ResourceSpec = ResourceSpec {
    group: "",
    plural: "resourcequotas",
    stored_as: None,
    names: NameRule::Subdomain,
    create: Create::Store,
    create_on_update: false,
    unconditional_update: true,
    generation: Generation::Untracked,
    default: no_default,
    prepare: no_preparation,
    validate: builtin::quota::validate,
    rules: Rules::Complete,
    warnings: no_warnings,
    resets: &["status"],
    status: Some(StatusStrategy {
        keeps: KeptMetadata::Fields(&[]),
        resets: &["spec"],
        prepare: no_status_preparation,
        validate: builtin::quota::validate_status,
    }),
    subresources: &[("status", SubresourceEndpoint::Status)],
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
