//! Service.

use crate::kinds::spec::{
    Allocation, Create, Delay, DeletionStrategy, Dependents, Enforcement, Generation, KeptMetadata, ResourceSpec,
    Rules, SelectableField, StatusStrategy, SubresourceEndpoint, no_status_preparation, no_status_rules,
};
use flyball_schema::builtin;
use flyball_schema::builtin::warning;
use flyball_schema::names::NameRule;

/// Service.
pub static SERVICE: ResourceSpec = ResourceSpec {
    group: "",
    plural: "services",
    stored_as: None,
    names: NameRule::Label,
    create: Create::Store,
    create_on_update: true,
    unconditional_update: true,
    generation: Generation::Untracked,
    default: builtin::service::default,
    prepare: builtin::service::prepare,
    validate: builtin::service::validate,
    rules: Rules::Complete,
    warnings: warning::service,
    resets: &["status"],
    status: Some(StatusStrategy {
        keeps: KeptMetadata::Fields(&[]),
        resets: &["spec"],
        prepare: no_status_preparation,
        validate: no_status_rules,
    }),
    subresources: &[
        ("proxy", SubresourceEndpoint::Unsupported),
        ("status", SubresourceEndpoint::Status),
    ],
    allocation: Some(Allocation::Service),
    deletion: DeletionStrategy {
        returns_object: true,
        dependents: Dependents::Deleted,
        delay: Delay::None,
        warning: None,
    },
    conversion: None,
    fields: &[
        SelectableField::text("spec.clusterIP", &["spec.clusterIP"]),
        SelectableField::text("spec.type", &["spec.type"]),
    ],
    deprecation: None,
    enforcement: Enforcement::Enforced,
};
