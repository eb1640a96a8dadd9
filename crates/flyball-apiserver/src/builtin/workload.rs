//! Deployments, ReplicaSets, StatefulSets, DaemonSets and ReplicationControllers.

use super::{at, fill, items, pod, volume};
use flyball_schema::selector::LabelSelector;
use flyball_schema::violation::Violation;
use serde_json::{Value, json};

// pkg/apis/apps/v1/defaults.go
/// Fills in what a Deployment leaves out.
pub fn default_deployment(object: &mut Value) {
    let spec = template(object);
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

/// Fills in what a ReplicaSet leaves out.
pub fn default_replica_set(object: &mut Value) {
    fill(template(object), "replicas", 1);
}

/// Fills in what a StatefulSet leaves out.
pub fn default_stateful_set(object: &mut Value) {
    let spec = template(object);
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
        claim["status"] = json!({"phase": "Pending"});
    }
}

/// Fills in what a DaemonSet leaves out.
pub fn default_daemon_set(object: &mut Value) {
    let spec = template(object);
    fill(spec, "revisionHistoryLimit", 10);
    let strategy = at(spec, "updateStrategy");
    fill(strategy, "type", "RollingUpdate");
    if strategy["type"] == "RollingUpdate" {
        let rolling = at(strategy, "rollingUpdate");
        fill(rolling, "maxUnavailable", 1);
        fill(rolling, "maxSurge", 0);
    }
}

/// Fills in what a ReplicationController leaves out.
pub fn default_replication_controller(object: &mut Value) {
    let spec = template(object);
    fill(spec, "replicas", 1);
    let labels = spec["template"]["metadata"]["labels"].clone();
    if labels.is_object() {
        fill(spec, "selector", labels.clone());
        let metadata = at(object, "metadata");
        fill(metadata, "labels", labels);
    }
}

/// The spec, with its template's defaults filled in.
fn template(object: &mut Value) -> &mut Value {
    let spec = at(object, "spec");
    pod::default_spec(at(at(spec, "template"), "spec"));
    spec
}

/// Finds what is wrong with a Deployment or ReplicaSet.
// pkg/apis/apps/validation/validation.go, ValidateDeploymentSpec and ValidateReplicaSetSpec
pub fn validate(object: &Value, live: Option<&Value>) -> Vec<Violation> {
    let spec = &object["spec"];
    let mut violations = Vec::new();
    if let Some(replicas) = spec["replicas"].as_i64().filter(|replicas| *replicas < 0) {
        violations.push(Violation::invalid("spec.replicas", replicas, "must be greater than or equal to 0"));
    }
    let selector = &spec["selector"];
    if !selector.is_object() {
        violations.push(Violation::required("spec.selector", ""));
    } else if LabelSelector::from_value(selector).is_some_and(|selector| selector.is_empty()) {
        let why = match object["kind"].as_str() {
            Some("Deployment") => "empty selector is invalid for deployment",
            _ => "empty selector is invalid for deployment",
        };
        violations.push(Violation::invalid("spec.selector", selector.clone(), why));
    }
    let labels = &spec["template"]["metadata"]["labels"];
    if let Some(parsed) = LabelSelector::from_value(selector)
        && !parsed.matches(labels.as_object())
    {
        let why = "`selector` does not match template `labels`";
        violations.push(Violation::invalid("spec.template.metadata.labels", labels.clone(), why));
    }
    violations.extend(pod::validate_spec(&spec["template"]["spec"], "spec.template.spec"));
    if let Some(live) = live
        && live["spec"]["selector"] != *selector
    {
        violations.push(Violation::invalid("spec.selector", selector.clone(), "field is immutable"));
    }
    violations
}
