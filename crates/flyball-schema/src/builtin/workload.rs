//! Deployments, ReplicaSets, StatefulSets, DaemonSets and ReplicationControllers.

mod sets;
pub(super) mod template;
mod validate;

use super::meta;
use super::{at, fill, items, pod, set, volume, within};
use serde_json::{Value, json};

pub use sets::{validate_daemon_set, validate_daemon_set_status, validate_stateful_set, validate_stateful_set_status};
pub use validate::{
    validate_deployment, validate_deployment_status, validate_replica_set, validate_replica_set_status,
};

/// The annotation with the template generation of a DaemonSet.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// Sets the defaults of a Deployment.
// pkg/apis/apps/v1/defaults.go
pub fn default_deployment(object: &mut Value) {
    let spec = with_template(object);
    fill(spec, "replicas", 1);
    fill(spec, "revisionHistoryLimit", 10);
    fill(spec, "progressDeadlineSeconds", 600);
    let strategy = at(spec, "strategy");
    fill(strategy, "type", "RollingUpdate");
    if strategy["type"] == "RollingUpdate" {
        let rolling = at(strategy, "rollingUpdate");
        fill(rolling, "maxUnavailable", "25%");
        fill(rolling, "maxSurge", "25%");
    }
}

/// Sets the defaults of a ReplicaSet.
pub fn default_replica_set(object: &mut Value) {
    fill(with_template(object), "replicas", 1);
}

/// Sets the defaults of a StatefulSet.
pub fn default_stateful_set(object: &mut Value) {
    let spec = with_template(object);
    fill(spec, "podManagementPolicy", "OrderedReady");
    fill(spec, "replicas", 1);
    fill(spec, "revisionHistoryLimit", 10);
    let retention = at(spec, "persistentVolumeClaimRetentionPolicy");
    fill(retention, "whenDeleted", "Retain");
    fill(retention, "whenScaled", "Retain");
    let strategy = at(spec, "updateStrategy");
    fill(strategy, "type", "RollingUpdate");
    if strategy["type"] == "RollingUpdate" {
        fill(at(strategy, "rollingUpdate"), "partition", 0);
    }
    for claim in items(spec, "volumeClaimTemplates") {
        fill(claim, "apiVersion", "v1");
        fill(claim, "kind", "PersistentVolumeClaim");
        volume::default_claim(claim);
        set(claim, "status", json!({"phase": "Pending"}));
    }
}

/// Drops the field of a feature gate that is off by default: `maxUnavailable` of a StatefulSet.
// pkg/registry/apps/statefulset/strategy.go, dropStatefulSetDisabledFields
pub fn prepare_stateful_set(object: &mut Value, _live: Option<&Value>) {
    let strategy = within(object, "spec").and_then(|spec| within(spec, "updateStrategy"));
    let rolling = strategy.and_then(|strategy| within(strategy, "rollingUpdate"));
    if let Some(rolling) = rolling.and_then(Value::as_object_mut) {
        rolling.remove("maxUnavailable");
    }
}

/// Sets the defaults of a DaemonSet.
pub fn default_daemon_set(object: &mut Value) {
    fill(at(at(object, "metadata"), "annotations"), TEMPLATE_GENERATION, "1");
    let spec = with_template(object);
    fill(spec, "revisionHistoryLimit", 10);
    let strategy = at(spec, "updateStrategy");
    fill(strategy, "type", "RollingUpdate");
    if strategy["type"] == "RollingUpdate" {
        let rolling = at(strategy, "rollingUpdate");
        fill(rolling, "maxUnavailable", 1);
        fill(rolling, "maxSurge", 0);
    }
}

/// Increments the template generation of a DaemonSet when its template changes.
// pkg/registry/apps/daemonset/strategy.go
pub fn prepare_daemon_set(object: &mut Value, live: Option<&Value>) {
    let Some(live) = live else { return };
    let before = meta::metadata(live)
        .get("annotations")
        .and_then(|annotations| annotations[TEMPLATE_GENERATION].as_str());
    let mut generation: i64 = before.and_then(|text| text.parse().ok()).unwrap_or(0);
    if object["spec"]["template"] != live["spec"]["template"] {
        generation += 1;
    }
    at(at(object, "metadata"), "annotations")[TEMPLATE_GENERATION] = generation.to_string().into();
}

/// Sets the defaults of a ReplicationController.
pub fn default_replication_controller(object: &mut Value) {
    let spec = with_template(object);
    fill(spec, "replicas", 1);
    // The published specification has a default that Go does not set.
    if let Some(members) = spec.as_object_mut()
        && members.get("minReadySeconds").is_some_and(|seconds| seconds == 0)
    {
        members.remove("minReadySeconds");
    }
    let labels = spec["template"]["metadata"]["labels"].clone();
    if labels.is_object() {
        fill(spec, "selector", labels.clone());
        fill(at(object, "metadata"), "labels", labels);
    }
}

/// The spec, with the defaults of its template set.
fn with_template(object: &mut Value) -> &mut Value {
    let spec = at(object, "spec");
    pod::default_spec(at(at(spec, "template"), "spec"));
    spec
}
