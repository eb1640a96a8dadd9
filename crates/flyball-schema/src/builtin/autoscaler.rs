//! HorizontalPodAutoscalers: stored as v2, also served as v1.

mod metric;
mod validate;

use super::{at, fill, meta, set, within};
use serde_json::{Value, json};

pub use validate::{validate, validate_status};

/// The annotations in which v1 keeps the fields of v2 that it lacks.
const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";

/// Sets the defaults of an autoscaler.
// pkg/apis/autoscaling/v2/defaults.go
pub fn default(autoscaler: &mut Value) {
    let is_v1 = autoscaler["apiVersion"] == "autoscaling/v1";
    let spec = at(autoscaler, "spec");
    fill(spec, "minReplicas", 1);
    if is_v1 {
        return;
    }
    let target = json!({"type": "Utilization", "averageUtilization": 80});
    fill(
        spec,
        "metrics",
        json!([{"type": "Resource", "resource": {"name": "cpu", "target": target}}]),
    );
    if let Some(behavior) = within(spec, "behavior") {
        let up = at(behavior, "scaleUp");
        fill(up, "stabilizationWindowSeconds", 0);
        fill(up, "selectPolicy", "Max");
        let policies = json!([{"type": "Pods", "value": 4, "periodSeconds": 15}, {"type": "Percent", "value": 100, "periodSeconds": 15}]);
        fill(up, "policies", policies);
        let down = at(behavior, "scaleDown");
        fill(down, "selectPolicy", "Max");
        fill(down, "policies", json!([{"type": "Percent", "value": 100, "periodSeconds": 15}]));
    }
}

/// Sets the initial status of a new autoscaler.
pub fn prepare(autoscaler: &mut Value, live: Option<&Value>) {
    if live.is_none() && autoscaler["apiVersion"] != "autoscaling/v1" {
        set(autoscaler, "status", json!({"desiredReplicas": 0, "currentMetrics": null}));
    }
}

fn is_cpu(metric: &Value) -> bool {
    metric["type"] == "Resource"
        && metric["resource"]["name"] == "cpu"
        && metric["resource"]["target"]["type"] == "Utilization"
}

/// Converts v2 to v1: the CPU target becomes a field, other metrics an annotation.
// pkg/apis/autoscaling/v1/conversion.go
pub fn to_v1(autoscaler: &mut Value) {
    let spec = at(autoscaler, "spec");
    let metrics = spec["metrics"].take();
    let (cpu, others): (Vec<Value>, Vec<Value>) = metrics.as_array().into_iter().flatten().cloned().partition(is_cpu);
    if let Some(members) = spec.as_object_mut() {
        members.remove("metrics");
        members.remove("behavior");
    }
    if let Some(metric) = cpu.first() {
        spec["targetCPUUtilizationPercentage"] = metric["resource"]["target"]["averageUtilization"].clone();
    }
    if !others.is_empty() {
        let annotations = meta::metadata_mut(autoscaler).entry("annotations").or_insert_with(|| json!({}));
        set(annotations, METRICS, Value::from(others).to_string());
    }
    let current = autoscaler["status"]["currentReplicas"].as_i64().unwrap_or(0);
    let desired = autoscaler["status"]["desiredReplicas"].as_i64().unwrap_or(0);
    autoscaler["status"] = json!({"currentReplicas": current, "desiredReplicas": desired});
}

/// Converts v1 to v2.
pub fn to_v2(autoscaler: &mut Value) {
    let annotations = meta::metadata_mut(autoscaler).get_mut("annotations").and_then(Value::as_object_mut);
    let kept = annotations.and_then(|annotations| annotations.remove(METRICS));
    let kept = kept.and_then(|text| serde_json::from_str::<Vec<Value>>(text.as_str()?).ok());
    let mut metrics = kept.unwrap_or_default();
    let spec = at(autoscaler, "spec");
    let percentage = spec["targetCPUUtilizationPercentage"].as_i64();
    if let Some(members) = spec.as_object_mut() {
        members.remove("targetCPUUtilizationPercentage");
    }
    if let Some(percentage) = percentage {
        let target = json!({"type": "Utilization", "averageUtilization": percentage});
        metrics.push(json!({"type": "Resource", "resource": {"name": "cpu", "target": target}}));
    }
    if !metrics.is_empty() {
        spec["metrics"] = metrics.into();
    }
    autoscaler["apiVersion"] = "autoscaling/v2".into();
    default(autoscaler);
    let status = at(autoscaler, "status");
    fill(status, "currentMetrics", Value::Null);
    // v1 always shows the number of replicas, v2 only if there are any.
    if status["currentReplicas"] == 0
        && let Some(members) = status.as_object_mut()
    {
        members.remove("currentReplicas");
    }
}

/// The autoscaler as v2, which validation expects.
fn as_v2(autoscaler: &Value) -> Value {
    let mut object = autoscaler.clone();
    if object["apiVersion"] == "autoscaling/v1" {
        to_v2(&mut object);
    }
    object
}
