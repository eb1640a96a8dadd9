//! Node.

use crate::kinds::spec::{
    Create, Delay, DeletionStrategy, Dependents, Enforcement, Generation, KeptMetadata, ResourceSpec, Rules,
    SelectableField, StatusStrategy, SubresourceEndpoint, no_preparation, no_rules, no_status_preparation,
    no_status_rules, no_warnings,
};
use flyball_schema::builtin;
use flyball_schema::names::NameRule;

/// Node.
pub static NODE: ResourceSpec = ResourceSpec {
    group: "",
    plural: "nodes",
    stored_as: None,
    names: NameRule::Subdomain,
    create: Create::Store,
    create_on_update: false,
    unconditional_update: true,
    generation: Generation::Untracked,
    default: builtin::node::default,
    prepare: no_preparation,
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
    subresources: &[
        ("proxy", SubresourceEndpoint::Unsupported),
        ("status", SubresourceEndpoint::Status),
    ],
    allocation: None,
    deletion: DeletionStrategy {
        returns_object: false,
        dependents: Dependents::Deleted,
        delay: Delay::None,
        warning: None,
    },
    conversion: None,
    fields: &[SelectableField::boolean("spec.unschedulable", &["spec.unschedulable"])],
    deprecation: None,
    enforcement: Enforcement::Enforced,
};
