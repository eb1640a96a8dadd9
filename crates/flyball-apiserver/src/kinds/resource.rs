//! The kinds of the group `resource.k8s.io`.

use crate::kinds::spec::{
    Create, Delay, DeletionStrategy, Dependents, Enforcement, Generation, KeptMetadata, ResourceSpec, Rules,
    SelectableField, StatusStrategy, SubresourceEndpoint, no_default, no_preparation, no_rules, no_status_preparation,
    no_status_rules, no_warnings,
};
use flyball_schema::builtin;
use flyball_schema::names::NameRule;

/// DeviceClass.
pub static DEVICE_CLASS: ResourceSpec = ResourceSpec {
    group: "resource.k8s.io",
    plural: "deviceclasses",
    stored_as: None,
    names: NameRule::Subdomain,
    create: Create::Store,
    create_on_update: false,
    unconditional_update: true,
    generation: Generation::Spec,
    default: no_default,
    prepare: no_preparation,
    validate: no_rules,
    rules: Rules::Partial,
    warnings: no_warnings,
    resets: &[],
    status: None,
    subresources: &[],
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

/// ResourceClaim.
pub static RESOURCE_CLAIM: ResourceSpec = ResourceSpec {
    group: "resource.k8s.io",
    plural: "resourceclaims",
    stored_as: None,
    names: NameRule::Subdomain,
    create: Create::Store,
    create_on_update: false,
    unconditional_update: true,
    generation: Generation::Untracked,
    default: builtin::storage::default_claim,
    prepare: no_preparation,
    validate: no_rules,
    rules: Rules::Partial,
    warnings: no_warnings,
    resets: &["status"],
    status: Some(StatusStrategy {
        keeps: KeptMetadata::All,
        resets: &["metadata", "spec"],
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

/// ResourceClaimTemplate.
pub static RESOURCE_CLAIM_TEMPLATE: ResourceSpec = ResourceSpec {
    group: "resource.k8s.io",
    plural: "resourceclaimtemplates",
    stored_as: None,
    names: NameRule::Subdomain,
    create: Create::Store,
    create_on_update: false,
    unconditional_update: true,
    generation: Generation::Untracked,
    default: no_default,
    prepare: no_preparation,
    validate: no_rules,
    rules: Rules::Partial,
    warnings: no_warnings,
    resets: &[],
    status: None,
    subresources: &[],
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

/// ResourceSlice.
pub static RESOURCE_SLICE: ResourceSpec = ResourceSpec {
    group: "resource.k8s.io",
    plural: "resourceslices",
    stored_as: None,
    names: NameRule::Subdomain,
    create: Create::Store,
    create_on_update: false,
    unconditional_update: true,
    generation: Generation::Spec,
    default: no_default,
    prepare: no_preparation,
    validate: no_rules,
    rules: Rules::Partial,
    warnings: no_warnings,
    resets: &[],
    status: None,
    subresources: &[],
    allocation: None,
    deletion: DeletionStrategy {
        returns_object: true,
        dependents: Dependents::Deleted,
        delay: Delay::None,
        warning: None,
    },
    conversion: None,
    fields: &[
        SelectableField::text("spec.nodeName", &["spec.nodeName"]),
        SelectableField::text("spec.driver", &["spec.driver"]),
    ],
    deprecation: None,
    enforcement: Enforcement::Enforced,
};
