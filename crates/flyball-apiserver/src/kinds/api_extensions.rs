//! The kinds of the group `apiextensions.k8s.io`.

use crate::kinds::spec::{
    Create, Delay, DeletionStrategy, Dependents, Enforcement, Generation, KeptMetadata, ResourceSpec, Rules,
    StatusStrategy, SubresourceEndpoint, no_status_preparation, no_status_rules,
};
use flyball_schema::builtin;
use flyball_schema::builtin::warning;
use flyball_schema::names::NameRule;

/// CustomResourceDefinition.
pub static CUSTOM_RESOURCE_DEFINITION: ResourceSpec = ResourceSpec {
    group: "apiextensions.k8s.io",
    plural: "customresourcedefinitions",
    stored_as: None,
    names: NameRule::Subdomain,
    create: Create::Store,
    create_on_update: false,
    unconditional_update: false,
    generation: Generation::Spec,
    default: builtin::definition::default,
    prepare: builtin::definition::prepare,
    validate: builtin::definition::validate,
    rules: Rules::Partial,
    warnings: warning::definition,
    resets: &["status"],
    status: Some(StatusStrategy {
        keeps: KeptMetadata::Fields(&[]),
        resets: &["metadata", "spec"],
        prepare: no_status_preparation,
        validate: no_status_rules,
    }),
    subresources: &[("status", SubresourceEndpoint::Status)],
    allocation: None,
    deletion: DeletionStrategy {
        returns_object: true,
        dependents: Dependents::Deleted,
        delay: Delay::Definition,
        warning: None,
    },
    conversion: None,
    fields: &[],
    deprecation: None,
    enforcement: Enforcement::Enforced,
};
