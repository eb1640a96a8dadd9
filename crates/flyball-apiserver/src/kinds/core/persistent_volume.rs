//! PersistentVolume.

use crate::kinds::spec::{
    Create, Delay, DeletionStrategy, Dependents, Enforcement, Generation, KeptMetadata, ResourceSpec, Rules,
    StatusStrategy, SubresourceEndpoint, no_rules, no_status_preparation, no_status_rules, no_warnings,
};
use flyball_schema::builtin;
use flyball_schema::names::NameRule;

/// PersistentVolume.
pub static PERSISTENT_VOLUME: ResourceSpec = ResourceSpec {
    group: "",
    plural: "persistentvolumes",
    stored_as: None,
    names: NameRule::Subdomain,
    create: Create::Store,
    create_on_update: false,
    unconditional_update: true,
    generation: Generation::Untracked,
    default: builtin::volume::default_volume,
    prepare: builtin::volume::prepare_volume,
    validate: no_rules,
    rules: Rules::Partial,
    warnings: no_warnings,
    resets: &["status"],
    status: Some(StatusStrategy {
        keeps: KeptMetadata::Fields(&[]),
        resets: &["spec"],
        prepare: no_status_preparation,
        validate: no_status_rules,
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
