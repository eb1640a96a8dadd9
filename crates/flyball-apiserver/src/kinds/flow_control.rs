//! The kinds of the group `flowcontrol.apiserver.k8s.io`.

use crate::kinds::spec::{
    Create, Delay, DeletionStrategy, Dependents, Enforcement, Generation, KeptMetadata, ResourceSpec, Rules,
    StatusStrategy, SubresourceEndpoint, no_preparation, no_status_preparation, no_warnings,
};
use flyball_schema::builtin;
use flyball_schema::names::NameRule;

/// FlowSchema.
pub static FLOW_SCHEMA: ResourceSpec = ResourceSpec {
    group: "flowcontrol.apiserver.k8s.io",
    plural: "flowschemas",
    stored_as: None,
    names: NameRule::Subdomain,
    create: Create::Store,
    create_on_update: false,
    unconditional_update: true,
    generation: Generation::Spec,
    default: builtin::flow_control::default_flow,
    prepare: no_preparation,
    validate: builtin::flow_control::validate_flow,
    rules: Rules::Complete,
    warnings: no_warnings,
    resets: &["status"],
    status: Some(StatusStrategy {
        keeps: KeptMetadata::All,
        resets: &["metadata", "spec"],
        prepare: no_status_preparation,
        validate: builtin::flow_control::validate_status,
    }),
    subresources: &[("status", SubresourceEndpoint::Status)],
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

/// PriorityLevelConfiguration.
pub static PRIORITY_LEVEL_CONFIGURATION: ResourceSpec = ResourceSpec {
    group: "flowcontrol.apiserver.k8s.io",
    plural: "prioritylevelconfigurations",
    stored_as: None,
    names: NameRule::Subdomain,
    create: Create::Store,
    create_on_update: false,
    unconditional_update: true,
    generation: Generation::Spec,
    default: builtin::flow_control::default_level,
    prepare: no_preparation,
    validate: builtin::flow_control::validate_level,
    rules: Rules::Complete,
    warnings: no_warnings,
    resets: &["status"],
    status: Some(StatusStrategy {
        keeps: KeptMetadata::All,
        resets: &["metadata", "spec"],
        prepare: no_status_preparation,
        validate: builtin::flow_control::validate_status,
    }),
    subresources: &[("status", SubresourceEndpoint::Status)],
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
