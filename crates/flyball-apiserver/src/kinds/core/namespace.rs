//! Namespace.

use crate::kinds::spec::{
    Allocation, Create, Delay, DeletionStrategy, Dependents, Enforcement, Generation, KeptMetadata, ResourceSpec,
    Rules, SelectableField, StatusStrategy, SubresourceEndpoint, no_status_preparation, no_status_rules, no_warnings,
};
use flyball_schema::builtin;
use flyball_schema::names::NameRule;

/// Namespace.
pub static NAMESPACE: ResourceSpec = ResourceSpec {
    group: "",
    plural: "namespaces",
    stored_as: None,
    names: NameRule::Label,
    create: Create::Store,
    create_on_update: false,
    unconditional_update: true,
    generation: Generation::Untracked,
    default: builtin::namespace::default,
    prepare: builtin::namespace::prepare,
    validate: builtin::namespace::validate,
    rules: Rules::Complete,
    warnings: no_warnings,
    resets: &["status"],
    status: Some(StatusStrategy {
        keeps: KeptMetadata::Fields(&[]),
        resets: &["spec"],
        prepare: no_status_preparation,
        validate: no_status_rules,
    }),
    subresources: &[
        ("finalize", SubresourceEndpoint::Finalize),
        ("status", SubresourceEndpoint::Status),
    ],
    allocation: Some(Allocation::Namespace),
    deletion: DeletionStrategy {
        returns_object: true,
        dependents: Dependents::Deleted,
        delay: Delay::Namespace,
        warning: None,
    },
    conversion: None,
    fields: &[SelectableField::text("status.phase", &["status.phase"])],
    deprecation: None,
    enforcement: Enforcement::Enforced,
};
