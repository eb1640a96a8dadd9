//! Pod.

use crate::kinds::spec::{
    Create, Delay, DeletionStrategy, Dependents, Enforcement, Generation, KeptMetadata, ResourceSpec, Rules,
    SelectableField, StatusStrategy, SubresourceEndpoint, no_status_rules,
};
use crate::request::options::DeleteOptions;
use flyball_schema::builtin;
use flyball_schema::builtin::warning;
use flyball_schema::names::NameRule;
use serde_json::Value;

/// Pod.
pub static POD: ResourceSpec = ResourceSpec {
    group: "",
    plural: "pods",
    stored_as: None,
    names: NameRule::Subdomain,
    create: Create::Store,
    create_on_update: false,
    unconditional_update: true,
    generation: Generation::Spec,
    default: builtin::pod::default,
    prepare: builtin::pod::prepare,
    validate: builtin::pod::validate,
    rules: Rules::Complete,
    warnings: warning::pod,
    resets: &["status"],
    status: Some(StatusStrategy {
        keeps: KeptMetadata::Fields(&["deletionTimestamp", "ownerReferences"]),
        resets: &["spec", "metadata.deletionTimestamp", "metadata.ownerReferences"],
        prepare: keep_quality_of_service,
        validate: no_status_rules,
    }),
    subresources: &[
        ("attach", SubresourceEndpoint::Unsupported),
        ("binding", SubresourceEndpoint::Binding),
        ("ephemeralcontainers", SubresourceEndpoint::Unsupported),
        ("eviction", SubresourceEndpoint::Eviction),
        ("exec", SubresourceEndpoint::Unsupported),
        ("log", SubresourceEndpoint::Unsupported),
        ("portforward", SubresourceEndpoint::Unsupported),
        ("proxy", SubresourceEndpoint::Unsupported),
        ("resize", SubresourceEndpoint::Unsupported),
        ("status", SubresourceEndpoint::Status),
    ],
    allocation: None,
    deletion: DeletionStrategy {
        returns_object: true,
        dependents: Dependents::Deleted,
        delay: Delay::GracePeriod(grace_period),
        warning: None,
    },
    conversion: None,
    fields: &[
        SelectableField::text("spec.nodeName", &["spec.nodeName"]),
        SelectableField::text("spec.host", &["spec.nodeName"]),
        SelectableField::text("spec.restartPolicy", &["spec.restartPolicy"]),
        SelectableField::text("spec.schedulerName", &["spec.schedulerName"]),
        SelectableField::text("spec.serviceAccountName", &["spec.serviceAccountName"]),
        SelectableField::boolean("spec.hostNetwork", &["spec.hostNetwork"]),
        SelectableField::text("status.phase", &["status.phase"]),
        SelectableField::text("status.podIP", &["status.podIP"]),
        // Accepted by the conversion of labels, but no pod has it.
        SelectableField::text("status.podIPs", &[]),
        SelectableField::text("status.nominatedNodeName", &["status.nominatedNodeName"]),
    ],
    deprecation: None,
    enforcement: Enforcement::Enforced,
};

/// The grace period of a pod, in seconds.
// pkg/registry/core/pod/strategy.go, CheckGracefulDelete
fn grace_period(pod: &Value, options: &DeleteOptions) -> i64 {
    let is_placed = pod["spec"]["nodeName"].as_str().is_some_and(|node| !node.is_empty());
    let has_ended = matches!(pod["status"]["phase"].as_str(), Some("Failed" | "Succeeded"));
    if !is_placed || has_ended {
        return 0;
    }
    let usual = || pod["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or(0);
    match options.grace_period_seconds.unwrap_or_else(usual) {
        seconds if seconds < 0 => 1,
        seconds => seconds,
    }
}

/// Keeps the QoS class, which is set on creation and which old kubelets leave out.
// pkg/registry/core/pod/strategy.go, podStatusStrategy.PrepareForUpdate
fn keep_quality_of_service(pod: &mut Value, live: &Value) {
    let class = &live["status"]["qosClass"];
    if class.is_string() && pod["status"]["qosClass"].as_str().unwrap_or_default().is_empty() {
        pod["status"]["qosClass"] = class.clone();
    }
}
