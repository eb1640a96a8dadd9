//! How kinds differ beyond their types: what may be created, updated and deleted how.
//! The facts are those of `pkg/registry/*/strategy.go` in Kubernetes; what defaults and checks do is in `builtin`.

use flyball_schema::builtin;
use flyball_schema::names::NameRule;
use flyball_schema::violation::Violation;
use serde_json::Value;

/// What the objects of a kind are like beyond their type.
#[derive(Clone, Copy)]
pub struct Strategy {
    /// Which names they may have.
    pub names: NameRule,
    /// Whether a PUT of an object that is not there creates it.
    pub create_on_update: bool,
    /// Whether a PUT may leave out the resource version.
    pub unconditional_update: bool,
    /// Whether a DELETE answers with the object instead of a Status.
    pub returns_deleted: bool,
    /// What becomes of dependents when a DELETE does not say.
    pub dependents: Dependents,
    /// What counts as a new generation.
    pub generation: Generation,
    /// Whether a write of the status keeps the metadata as they are.
    pub status_keeps_metadata: bool,
    /// Fields that selectors may name besides name and namespace, and where they are.
    pub fields: &'static [(&'static str, &'static str)],
    /// Fills in what users leave out.
    pub default: fn(&mut Value),
    /// Takes back what users may not write, and writes what follows; gets the stored object on an update.
    pub prepare: fn(&mut Value, Option<&Value>),
    /// Finds what is wrong beyond the type; gets the stored object on an update.
    pub validate: fn(&Value, Option<&Value>) -> Vec<Violation>,
    /// Finds what is wrong with a new status.
    pub validate_status: fn(&Value, &Value) -> Vec<Violation>,
}

/// What becomes of dependents when a DELETE does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dependents {
    /// The garbage collector deletes them.
    Deleted,
    /// They stay, without their owner.
    Orphaned,
    /// The kind never has any.
    Unsupported,
}

/// What counts as a new generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// Nothing: the kind does not count.
    Untracked,
    /// Its first state, and no other.
    Once,
    /// Every change outside of metadata and status.
    Spec,
    /// The same, and of annotations.
    SpecAndAnnotations,
}

const PLAIN: Strategy = Strategy {
    names: NameRule::Subdomain,
    create_on_update: false,
    unconditional_update: true,
    returns_deleted: false,
    dependents: Dependents::Deleted,
    generation: Generation::Untracked,
    status_keeps_metadata: false,
    fields: &[],
    default: |_| {},
    prepare: |_, _| {},
    validate: |_, _| Vec::new(),
    validate_status: |_, _| Vec::new(),
};
const COUNTED: Strategy = Strategy { generation: Generation::Spec, ..PLAIN };
const CONDITIONAL: Strategy = Strategy { unconditional_update: false, ..PLAIN };
const COUNTED_CONDITIONAL: Strategy = Strategy { generation: Generation::Spec, ..CONDITIONAL };
const ROLE: Strategy = Strategy {
    names: NameRule::PathSegment,
    create_on_update: true,
    ..PLAIN
};
const RETURNED: Strategy = Strategy { returns_deleted: true, ..PLAIN };

/// Every custom resource.
pub static CUSTOM: Strategy = COUNTED_CONDITIONAL;

// tidy: table
static TABLE: &[(&str, &str, Strategy)] = &[
    ("", "configmaps", Strategy { validate: builtin::config_map::validate, ..PLAIN }),
    (
        "",
        "endpoints",
        Strategy {
            create_on_update: true,
            default: builtin::network::default_endpoints,
            ..PLAIN
        },
    ),
    ("", "events", EVENT),
    (
        "",
        "limitranges",
        Strategy {
            create_on_update: true,
            default: builtin::limit::default,
            ..PLAIN
        },
    ),
    (
        "",
        "namespaces",
        Strategy {
            names: NameRule::Label,
            returns_deleted: true,
            fields: &[("name", "metadata.name"), ("status.phase", "status.phase")],
            default: builtin::namespace::default,
            prepare: builtin::namespace::prepare,
            validate: builtin::namespace::validate,
            ..PLAIN
        },
    ),
    (
        "",
        "nodes",
        Strategy {
            fields: &[("spec.unschedulable", "spec.unschedulable")],
            default: builtin::node::default,
            prepare: builtin::node::prepare,
            ..PLAIN
        },
    ),
    (
        "",
        "persistentvolumeclaims",
        Strategy {
            default: builtin::volume::default_claim,
            prepare: builtin::volume::prepare_claim,
            validate: builtin::volume::validate_claim,
            validate_status: builtin::volume::validate_claim_status,
            ..RETURNED
        },
    ),
    (
        "",
        "persistentvolumes",
        Strategy {
            default: builtin::volume::default_volume,
            prepare: builtin::volume::prepare_volume,
            ..RETURNED
        },
    ),
    (
        "",
        "pods",
        Strategy {
            returns_deleted: true,
            fields: builtin::pod::FIELDS,
            default: builtin::pod::default,
            prepare: builtin::pod::prepare,
            validate: builtin::pod::validate,
            ..COUNTED
        },
    ),
    (
        "",
        "podtemplates",
        Strategy {
            returns_deleted: true,
            default: builtin::pod::default_template,
            ..COUNTED
        },
    ),
    (
        "",
        "replicationcontrollers",
        Strategy {
            dependents: Dependents::Orphaned,
            fields: &[("status.replicas", "status.replicas")],
            default: builtin::workload::default_replication_controller,
            ..COUNTED
        },
    ),
    ("", "resourcequotas", RETURNED),
    (
        "",
        "secrets",
        Strategy {
            fields: &[("type", "type")],
            default: builtin::secret::default,
            validate: builtin::secret::validate,
            ..PLAIN
        },
    ),
    ("", "serviceaccounts", RETURNED),
    (
        "",
        "services",
        Strategy {
            names: NameRule::Label,
            create_on_update: true,
            returns_deleted: true,
            fields: &[("spec.clusterIP", "spec.clusterIP"), ("spec.type", "spec.type")],
            default: builtin::service::default,
            prepare: builtin::service::prepare,
            validate: builtin::service::validate,
            ..PLAIN
        },
    ),
    ("admissionregistration.k8s.io", "mutatingadmissionpolicies", COUNTED_CONDITIONAL),
    ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings", COUNTED_CONDITIONAL),
    (
        "admissionregistration.k8s.io",
        "mutatingwebhookconfigurations",
        Strategy {
            default: builtin::webhook::default_mutating,
            ..COUNTED_CONDITIONAL
        },
    ),
    ("admissionregistration.k8s.io", "validatingadmissionpolicies", COUNTED_CONDITIONAL),
    (
        "admissionregistration.k8s.io",
        "validatingadmissionpolicybindings",
        Strategy {
            default: builtin::webhook::default_policy_binding,
            ..COUNTED_CONDITIONAL
        },
    ),
    (
        "admissionregistration.k8s.io",
        "validatingwebhookconfigurations",
        Strategy {
            default: builtin::webhook::default_validating,
            ..COUNTED_CONDITIONAL
        },
    ),
    (
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        Strategy {
            returns_deleted: true,
            default: builtin::definition::default,
            prepare: builtin::definition::prepare,
            validate: builtin::definition::validate,
            ..COUNTED_CONDITIONAL
        },
    ),
    ("apiregistration.k8s.io", "apiservices", CONDITIONAL),
    ("apps", "controllerrevisions", PLAIN),
    (
        "apps",
        "daemonsets",
        Strategy {
            default: builtin::workload::default_daemon_set,
            prepare: builtin::workload::prepare_daemon_set,
            validate: builtin::workload::validate_daemon_set,
            validate_status: builtin::workload::validate_daemon_set_status,
            ..COUNTED
        },
    ),
    (
        "apps",
        "deployments",
        Strategy {
            generation: Generation::SpecAndAnnotations,
            default: builtin::workload::default_deployment,
            validate: builtin::workload::validate_deployment,
            validate_status: builtin::workload::validate_deployment_status,
            ..PLAIN
        },
    ),
    (
        "apps",
        "replicasets",
        Strategy {
            fields: &[("status.replicas", "status.replicas")],
            default: builtin::workload::default_replica_set,
            validate: builtin::workload::validate_replica_set,
            validate_status: builtin::workload::validate_replica_set_status,
            ..COUNTED
        },
    ),
    (
        "apps",
        "statefulsets",
        Strategy {
            default: builtin::workload::default_stateful_set,
            prepare: builtin::workload::prepare_stateful_set,
            validate: builtin::workload::validate_stateful_set,
            validate_status: builtin::workload::validate_stateful_set_status,
            ..COUNTED
        },
    ),
    (
        "autoscaling",
        "horizontalpodautoscalers",
        Strategy {
            default: builtin::autoscaler::default,
            prepare: builtin::autoscaler::prepare,
            validate: builtin::autoscaler::validate,
            validate_status: builtin::autoscaler::validate_status,
            ..PLAIN
        },
    ),
    (
        "batch",
        "cronjobs",
        Strategy {
            default: builtin::batch::default_cron_job,
            validate: builtin::batch::validate_cron_job,
            ..COUNTED
        },
    ),
    (
        "batch",
        "jobs",
        Strategy {
            dependents: Dependents::Orphaned,
            fields: &[("status.successful", "status.succeeded")],
            default: builtin::batch::default_job,
            prepare: builtin::batch::prepare_job,
            validate: builtin::batch::validate_job,
            validate_status: builtin::batch::validate_job_status,
            ..COUNTED
        },
    ),
    (
        "certificates.k8s.io",
        "certificatesigningrequests",
        Strategy { fields: &[("spec.signerName", "spec.signerName")], ..PLAIN },
    ),
    ("certificates.k8s.io", "clustertrustbundles", CONDITIONAL),
    (
        "coordination.k8s.io",
        "leasecandidates",
        Strategy { create_on_update: true, ..CONDITIONAL },
    ),
    (
        "coordination.k8s.io",
        "leases",
        Strategy {
            create_on_update: true,
            prepare: builtin::lease::prepare,
            validate: builtin::lease::validate,
            ..CONDITIONAL
        },
    ),
    (
        "discovery.k8s.io",
        "endpointslices",
        Strategy { default: builtin::network::default_slice, ..COUNTED },
    ),
    ("events.k8s.io", "events", EVENT),
    (
        "flowcontrol.apiserver.k8s.io",
        "flowschemas",
        Strategy {
            default: builtin::storage::default_flow,
            status_keeps_metadata: true,
            ..COUNTED
        },
    ),
    (
        "flowcontrol.apiserver.k8s.io",
        "prioritylevelconfigurations",
        Strategy {
            default: builtin::storage::default_level,
            status_keeps_metadata: true,
            ..COUNTED
        },
    ),
    (
        "networking.k8s.io",
        "ingressclasses",
        Strategy { default: builtin::network::default_ingress_class, ..COUNTED },
    ),
    (
        "networking.k8s.io",
        "ingresses",
        Strategy {
            validate: builtin::network::validate_ingress,
            validate_status: builtin::network::validate_ingress_status,
            ..COUNTED
        },
    ),
    (
        "networking.k8s.io",
        "networkpolicies",
        Strategy {
            default: builtin::network::default_policy,
            validate: builtin::network::validate_policy,
            ..COUNTED
        },
    ),
    ("node.k8s.io", "runtimeclasses", Strategy { create_on_update: true, ..CONDITIONAL }),
    (
        "policy",
        "poddisruptionbudgets",
        Strategy {
            validate: builtin::budget::validate,
            validate_status: builtin::budget::validate_status,
            ..COUNTED_CONDITIONAL
        },
    ),
    (
        "rbac.authorization.k8s.io",
        "clusterrolebindings",
        Strategy {
            default: builtin::role::default_binding,
            validate: builtin::role::validate_cluster_binding,
            ..ROLE
        },
    ),
    (
        "rbac.authorization.k8s.io",
        "clusterroles",
        Strategy {
            prepare: builtin::role::prepare,
            validate: builtin::role::validate_cluster_role,
            ..ROLE
        },
    ),
    (
        "rbac.authorization.k8s.io",
        "rolebindings",
        Strategy {
            default: builtin::role::default_binding,
            validate: builtin::role::validate_binding,
            ..ROLE
        },
    ),
    (
        "rbac.authorization.k8s.io",
        "roles",
        Strategy {
            prepare: builtin::role::prepare,
            validate: builtin::role::validate_role,
            ..ROLE
        },
    ),
    ("resource.k8s.io", "deviceclasses", Strategy { returns_deleted: true, ..COUNTED }),
    (
        "resource.k8s.io",
        "resourceclaims",
        Strategy { default: builtin::storage::default_claim, ..RETURNED },
    ),
    ("resource.k8s.io", "resourceclaimtemplates", RETURNED),
    ("resource.k8s.io", "resourceslices", Strategy { returns_deleted: true, ..COUNTED }),
    (
        "scheduling.k8s.io",
        "priorityclasses",
        Strategy {
            generation: Generation::Once,
            default: builtin::storage::default_priority,
            ..PLAIN
        },
    ),
    (
        "storage.k8s.io",
        "csidrivers",
        Strategy {
            returns_deleted: true,
            default: builtin::storage::default_driver,
            ..CONDITIONAL
        },
    ),
    (
        "storage.k8s.io",
        "csinodes",
        Strategy {
            returns_deleted: true,
            default: builtin::storage::default_node,
            prepare: builtin::storage::prepare_node,
            ..CONDITIONAL
        },
    ),
    ("storage.k8s.io", "csistoragecapacities", CONDITIONAL),
    (
        "storage.k8s.io",
        "storageclasses",
        Strategy { default: builtin::storage::default_class, ..RETURNED },
    ),
    ("storage.k8s.io", "volumeattachments", Strategy { returns_deleted: true, ..CONDITIONAL }),
    (
        "storage.k8s.io",
        "volumeattributesclasses",
        Strategy { prepare: builtin::volume::prepare_attributes, ..RETURNED },
    ),
];

const EVENT: Strategy = Strategy {
    create_on_update: true,
    dependents: Dependents::Unsupported,
    fields: builtin::event::FIELDS,
    default: builtin::event::default,
    prepare: builtin::event::prepare,
    validate: builtin::event::validate,
    ..PLAIN
};

/// What the objects of a built-in kind are like.
pub fn of(group: &str, plural: &str) -> &'static Strategy {
    static OTHERS: Strategy = PLAIN;
    TABLE
        .iter()
        .find(|(its_group, its_plural, _)| *its_group == group && *its_plural == plural)
        .map_or(&OTHERS, |(_, _, strategy)| strategy)
}
