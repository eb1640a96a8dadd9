//! Custom resources.

use crate::kinds::spec::{
    Create, Delay, DeletionStrategy, Dependents, Enforcement, Generation, KeptMetadata, ResourceSpec, Rules, Selector,
    StatusStrategy, SubresourceEndpoint, no_default, no_preparation, no_rules, no_status_preparation, no_status_rules,
    no_warnings,
};
use flyball_schema::names::NameRule;

/// Every custom resource; the definition says the rest.
// apiextensions-apiserver/pkg/registry/customresource/strategy.go
pub static CUSTOM_RESOURCE: ResourceSpec = ResourceSpec {
    group: "",
    plural: "",
    stored_as: None,
    names: NameRule::Subdomain,
    create: Create::Store,
    create_on_update: false,
    unconditional_update: false,
    generation: Generation::Spec,
    default: no_default,
    prepare: no_preparation,
    validate: no_rules,
    rules: Rules::Complete,
    warnings: no_warnings,
    resets: &["status"],
    status: Some(StatusStrategy {
        keeps: KeptMetadata::All,
        resets: &["metadata", "spec"],
        prepare: no_status_preparation,
        validate: no_status_rules,
    }),
    subresources: &[
        ("status", SubresourceEndpoint::Status),
        ("scale", SubresourceEndpoint::Scale(Selector::Path)),
    ],
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
