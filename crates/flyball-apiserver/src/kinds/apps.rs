//! The kinds of the group `apps`.

use crate::kinds::spec::{
    Create, Delay, DeletionStrategy, Dependents, Enforcement, Generation, KeptMetadata, ResourceSpec, Rules,
    SelectableField, Selector, StatusStrategy, SubresourceEndpoint, no_default, no_preparation, no_rules,
    no_status_preparation, no_warnings,
};
use flyball_schema::builtin;
use flyball_schema::builtin::warning;
use flyball_schema::names::NameRule;

/// ControllerRevision.
pub static CONTROLLER_REVISION: ResourceSpec = ResourceSpec {
    group: "apps",
    plural: "controllerrevisions",
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

/// DaemonSet.
pub static DAEMON_SET: ResourceSpec = ResourceSpec {
    group: "apps",
    plural: "daemonsets",
    stored_as: None,
    names: NameRule::Subdomain,
    create: Create::Store,
    create_on_update: false,
    unconditional_update: true,
    generation: Generation::Spec,
    default: builtin::workload::default_daemon_set,
    prepare: builtin::workload::prepare_daemon_set,
    validate: builtin::workload::validate_daemon_set,
    rules: Rules::Complete,
    warnings: warning::template,
    resets: &["status"],
    status: Some(StatusStrategy {
        keeps: KeptMetadata::Fields(&[]),
        resets: &["spec"],
        prepare: no_status_preparation,
        validate: builtin::workload::validate_daemon_set_status,
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

/// Deployment.
pub static DEPLOYMENT: ResourceSpec = ResourceSpec {
    group: "apps",
    plural: "deployments",
    stored_as: None,
    names: NameRule::Subdomain,
    create: Create::Store,
    create_on_update: false,
    unconditional_update: true,
    generation: Generation::SpecAndAnnotations,
    default: builtin::workload::default_deployment,
    prepare: no_preparation,
    validate: builtin::workload::validate_deployment,
    rules: Rules::Complete,
    warnings: warning::template,
    resets: &["status"],
    status: Some(StatusStrategy {
        keeps: KeptMetadata::Fields(&["labels"]),
        resets: &["spec", "metadata.labels"],
        prepare: no_status_preparation,
        validate: builtin::workload::validate_deployment_status,
    }),
    subresources: &[
        ("scale", SubresourceEndpoint::Scale(Selector::LabelSelector)),
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
    fields: &[],
    deprecation: None,
    enforcement: Enforcement::Enforced,
};

/// ReplicaSet.
pub static REPLICA_SET: ResourceSpec = ResourceSpec {
    group: "apps",
    plural: "replicasets",
    stored_as: None,
    names: NameRule::Subdomain,
    create: Create::Store,
    create_on_update: false,
    unconditional_update: true,
    generation: Generation::Spec,
    default: builtin::workload::default_replica_set,
    prepare: no_preparation,
    validate: builtin::workload::validate_replica_set,
    rules: Rules::Complete,
    warnings: warning::template,
    resets: &["status"],
    status: Some(StatusStrategy {
        keeps: KeptMetadata::Fields(&[]),
        resets: &["spec"],
        prepare: no_status_preparation,
        validate: builtin::workload::validate_replica_set_status,
    }),
    subresources: &[
        ("scale", SubresourceEndpoint::Scale(Selector::LabelSelector)),
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
    fields: &[SelectableField::number("status.replicas", &["status.replicas"])],
    deprecation: None,
    enforcement: Enforcement::Enforced,
};

/// StatefulSet.
pub static STATEFUL_SET: ResourceSpec = ResourceSpec {
    group: "apps",
    plural: "statefulsets",
    stored_as: None,
    names: NameRule::Subdomain,
    create: Create::Store,
    create_on_update: false,
    unconditional_update: true,
    generation: Generation::Spec,
    default: builtin::workload::default_stateful_set,
    prepare: builtin::workload::prepare_stateful_set,
    validate: builtin::workload::validate_stateful_set,
    rules: Rules::Complete,
    warnings: warning::template,
    resets: &["status"],
    status: Some(StatusStrategy {
        keeps: KeptMetadata::Fields(&[]),
        resets: &["spec"],
        prepare: no_status_preparation,
        validate: builtin::workload::validate_stateful_set_status,
    }),
    subresources: &[
        ("scale", SubresourceEndpoint::Scale(Selector::LabelSelector)),
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
    fields: &[],
    deprecation: None,
    enforcement: Enforcement::Enforced,
};
