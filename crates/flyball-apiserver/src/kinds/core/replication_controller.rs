//! ReplicationController.

use crate::kinds::spec::{
    Create, Delay, DeletionStrategy, Dependents, Enforcement, Generation, KeptMetadata, ResourceSpec, Rules,
    SelectableField, Selector, StatusStrategy, SubresourceEndpoint, no_preparation, no_rules, no_status_preparation,
    no_status_rules,
};
use flyball_schema::builtin;
use flyball_schema::builtin::warning;
use flyball_schema::names::NameRule;

/// ReplicationController.
pub static REPLICATION_CONTROLLER: ResourceSpec = ResourceSpec {
    group: "",
    plural: "replicationcontrollers",
    stored_as: None,
    names: NameRule::Subdomain,
    create: Create::Store,
    create_on_update: false,
    unconditional_update: true,
    generation: Generation::Spec,
    default: builtin::workload::default_replication_controller,
    prepare: no_preparation,
    validate: no_rules,
    rules: Rules::Partial,
    warnings: warning::template,
    resets: &["status"],
    status: Some(StatusStrategy {
        keeps: KeptMetadata::Fields(&[]),
        resets: &["spec"],
        prepare: no_status_preparation,
        validate: no_status_rules,
    }),
    subresources: &[
        ("scale", SubresourceEndpoint::Scale(Selector::Labels)),
        ("status", SubresourceEndpoint::Status),
    ],
    allocation: None,
    deletion: DeletionStrategy {
        returns_object: false,
        dependents: Dependents::Orphaned,
        delay: Delay::None,
        warning: None,
    },
    conversion: None,
    fields: &[SelectableField::number("status.replicas", &["status.replicas"])],
    deprecation: None,
    enforcement: Enforcement::Enforced,
};
