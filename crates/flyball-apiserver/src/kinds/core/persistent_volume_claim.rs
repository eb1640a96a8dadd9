//! PersistentVolumeClaim.

use crate::kinds::spec::{
    Create, Delay, DeletionStrategy, Dependents, Enforcement, Generation, KeptMetadata, ResourceSpec, Rules,
    StatusStrategy, SubresourceEndpoint, no_status_preparation,
};
use flyball_schema::builtin;
use flyball_schema::names::NameRule;

/// PersistentVolumeClaim.
pub static PERSISTENT_VOLUME_CLAIM: ResourceSpec = ResourceSpec {
    group: "",
    plural: "persistentvolumeclaims",
    stored_as: None,
    names: NameRule::Subdomain,
    create: Create::Store,
    create_on_update: false,
    unconditional_update: true,
    generation: Generation::Untracked,
    default: builtin::volume::default_claim,
    prepare: builtin::volume::prepare_claim,
    validate: builtin::volume::validate_claim,
    rules: Rules::Complete,
    warnings: builtin::warning::claim,
    resets: &["status"],
    status: Some(StatusStrategy {
        keeps: KeptMetadata::Fields(&[]),
        resets: &["spec"],
        prepare: no_status_preparation,
        validate: builtin::volume::validate_claim_status,
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
