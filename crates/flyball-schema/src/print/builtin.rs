//! Which built-in kind has which columns.
// pkg/printers/internalversion/printers.go

use super::column::Shown;
use super::{Cells, admission, event, job, network, node, plain, pod, policy, service, storage, workload};

/// What stands in the columns of a kind. A row is made at once where its cells are found out together.
pub(super) fn cells(group: &str, kind: &str) -> Cells {
    match (group, kind) {
        ("", "Node") => Cells::Row(node::COLUMNS, node::cells),
        ("", "Pod") => Cells::Row(pod::COLUMNS, pod::cells),
        ("", "Service") => Cells::Row(service::COLUMNS, service::cells),
        ("" | "events.k8s.io", "Event") => Cells::Row(event::COLUMNS, event::cells),
        _ => Cells::Each(shown(group, kind)),
    }
}

/// Kinds that are shown column by column.
fn shown(group: &str, kind: &str) -> &'static [Shown] {
    match (group, kind) {
        ("", "ConfigMap") => plain::CONFIG_MAP,
        ("", "Endpoints") => network::ENDPOINTS,
        ("", "Namespace") => plain::NAMESPACE,
        ("", "PersistentVolume") => storage::VOLUME,
        ("", "PersistentVolumeClaim") => storage::CLAIM,
        ("", "PodTemplate") => workload::POD_TEMPLATE,
        ("", "ReplicationController") => workload::REPLICATION_CONTROLLER,
        ("", "ResourceQuota") => policy::QUOTA,
        ("", "Secret") => plain::SECRET,
        ("", "ServiceAccount") => plain::AGED_ONLY,
        ("apps", "ControllerRevision") => policy::REVISION,
        ("apps", "DaemonSet") => workload::DAEMON_SET,
        ("apps", "Deployment") => workload::DEPLOYMENT,
        ("apps", "ReplicaSet") => workload::REPLICA_SET,
        ("apps", "StatefulSet") => workload::STATEFUL_SET,
        ("autoscaling", "HorizontalPodAutoscaler") => policy::AUTOSCALER,
        ("batch", "CronJob") => job::CRON_JOB,
        ("batch", "Job") => job::JOB,
        ("certificates.k8s.io", "CertificateSigningRequest") => policy::SIGNING_REQUEST,
        ("coordination.k8s.io", "Lease") => plain::LEASE,
        ("discovery.k8s.io", "EndpointSlice") => network::ENDPOINT_SLICE,
        ("networking.k8s.io", "Ingress") => network::INGRESS,
        ("networking.k8s.io", "IngressClass") => network::INGRESS_CLASS,
        ("networking.k8s.io", "IPAddress") => network::IP_ADDRESS,
        ("networking.k8s.io", "NetworkPolicy") => network::NETWORK_POLICY,
        ("networking.k8s.io", "ServiceCIDR") => network::SERVICE_CIDR,
        ("node.k8s.io", "RuntimeClass") => storage::RUNTIME_CLASS,
        ("policy", "PodDisruptionBudget") => policy::BUDGET,
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => policy::BINDING,
        ("scheduling.k8s.io", "PriorityClass") => storage::PRIORITY_CLASS,
        _ => shown_of_the_cluster(group, kind),
    }
}

/// The same of what administrators look at.
fn shown_of_the_cluster(group: &str, kind: &str) -> &'static [Shown] {
    const ADMISSION: &str = "admissionregistration.k8s.io";
    const FLOW: &str = "flowcontrol.apiserver.k8s.io";
    const STORAGE: &str = "storage.k8s.io";
    match (group, kind) {
        (ADMISSION, "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration") => admission::WEBHOOKS,
        (ADMISSION, "ValidatingAdmissionPolicy") => admission::VALIDATING_POLICY,
        (ADMISSION, "MutatingAdmissionPolicy") => admission::MUTATING_POLICY,
        (ADMISSION, "ValidatingAdmissionPolicyBinding" | "MutatingAdmissionPolicyBinding") => admission::POLICY_BINDING,
        (FLOW, "FlowSchema") => admission::FLOW_SCHEMA,
        (FLOW, "PriorityLevelConfiguration") => admission::PRIORITY_LEVEL,
        ("resource.k8s.io", "DeviceClass" | "ResourceClaimTemplate") => plain::AGED_ONLY,
        ("resource.k8s.io", "ResourceClaim") => admission::RESOURCE_CLAIM,
        ("resource.k8s.io", "ResourceSlice") => admission::RESOURCE_SLICE,
        (STORAGE, "CSIDriver") => storage::CSI_DRIVER,
        (STORAGE, "CSINode") => storage::CSI_NODE,
        (STORAGE, "StorageClass") => storage::STORAGE_CLASS,
        (STORAGE, "VolumeAttachment") => storage::ATTACHMENT,
        (STORAGE, "VolumeAttributesClass") => storage::ATTRIBUTES,
        _ => plain::ANY,
    }
}
