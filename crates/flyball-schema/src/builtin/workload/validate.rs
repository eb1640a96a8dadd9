//! What is wrong with workloads.
// pkg/apis/apps/validation/validation.go

use crate::builtin::pod;
use crate::selector::LabelSelector;
use crate::violation::Violation;
use serde_json::Value;

/// Finds what is wrong with a Deployment or ReplicaSet.
pub fn validate(object: &Value, live: Option<&Value>) -> Vec<Violation> {
    let spec = &object["spec"];
    let mut violations = negative(spec, "spec", &["replicas"]);
    violations.extend(validate_selector(spec));
    violations.extend(validate_template(spec));
    if object["kind"] == "Deployment" {
        violations.extend(validate_strategy(&spec["strategy"]));
        let fields = ["minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"];
        violations.extend(negative(spec, "spec", &fields));
        let deadline = spec["progressDeadlineSeconds"].as_i64();
        if let Some(deadline) = deadline.filter(|deadline| *deadline <= spec["minReadySeconds"].as_i64().unwrap_or(0)) {
            let why = "must be greater than minReadySeconds";
            violations.push(Violation::invalid("spec.progressDeadlineSeconds", deadline, why));
        }
    }
    if let Some(live) = live
        && live["spec"]["selector"] != spec["selector"]
    {
        violations.push(Violation::invalid("spec.selector", spec["selector"].clone(), "field is immutable"));
    }
    violations
}

fn validate_selector(spec: &Value) -> Option<Violation> {
    let selector = &spec["selector"];
    if !selector.is_object() {
        return Some(Violation::required("spec.selector", ""));
    }
    let is_empty = LabelSelector::from_value(selector).is_some_and(|selector| selector.is_empty());
    is_empty.then(|| Violation::invalid("spec.selector", selector.clone(), "empty selector is invalid for deployment"))
}

fn validate_template(spec: &Value) -> Vec<Violation> {
    let mut violations = Vec::new();
    let labels = &spec["template"]["metadata"]["labels"];
    let matches = match LabelSelector::from_value(&spec["selector"]) {
        _ if !spec["selector"].is_object() => false,
        Some(selector) => selector.is_empty() || selector.matches(labels.as_object()),
        None => true,
    };
    if !matches {
        let why = "`selector` does not match template `labels`";
        violations.push(Violation::invalid("spec.template.metadata.labels", labels.clone(), why));
    }
    let pod = &spec["template"]["spec"];
    violations.extend(pod::validate_spec(pod, "spec.template.spec"));
    if let Some(policy) = pod["restartPolicy"].as_str().filter(|policy| *policy != "Always") {
        let path = "spec.template.spec.restartPolicy";
        violations.push(Violation::not_supported(path, policy, &["Always"]));
    }
    violations
}

fn validate_strategy(strategy: &Value) -> Option<Violation> {
    let rolling = &strategy["rollingUpdate"];
    if strategy["type"] == "Recreate" && rolling.is_object() {
        let why = "may not be specified when strategy `type` is 'Recreate'";
        return Some(Violation::forbidden("spec.strategy.rollingUpdate", why));
    }
    let is_zero = |amount: &Value| *amount == 0 || *amount == "0%";
    if strategy["type"] == "RollingUpdate" && is_zero(&rolling["maxUnavailable"]) && is_zero(&rolling["maxSurge"]) {
        let (path, why) = ("spec.strategy.rollingUpdate.maxUnavailable", "may not be 0 when `maxSurge` is 0");
        return Some(Violation::invalid(path, rolling["maxUnavailable"].clone(), why));
    }
    None
}

fn negative(object: &Value, path: &str, fields: &[&str]) -> Vec<Violation> {
    let violation = |field: &&str| {
        let number = object[*field].as_i64().filter(|number| *number < 0)?;
        let why = "must be greater than or equal to 0";
        Some(Violation::invalid(format!("{path}.{field}"), number, why))
    };
    fields.iter().filter_map(violation).collect()
}

/// Finds what is wrong with the status of a Deployment or ReplicaSet.
pub fn validate_status(object: &Value, _live: &Value) -> Vec<Violation> {
    const COUNTS: [&str; 4] = [
        "updatedReplicas",
        "fullyLabeledReplicas",
        "readyReplicas",
        "availableReplicas",
    ];
    let status = &object["status"];
    let count = |field: &str| status[field].as_i64().unwrap_or(0);
    let mut violations = negative(status, "status", &["observedGeneration", "replicas", "unavailableReplicas"]);
    violations.extend(negative(status, "status", &COUNTS));
    for field in COUNTS {
        if count(field) > count("replicas") {
            let why = "cannot be greater than status.replicas";
            violations.push(Violation::invalid(format!("status.{field}"), count(field), why));
        }
    }
    if count("availableReplicas") > count("readyReplicas") {
        let why = "cannot be greater than readyReplicas";
        violations.push(Violation::invalid("status.availableReplicas", count("availableReplicas"), why));
    }
    violations
}

/// Finds what is wrong with a StatefulSet: most of it never changes.
pub fn validate_stateful_set(object: &Value, live: Option<&Value>) -> Vec<Violation> {
    const CHANGEABLE: [&str; 7] = [
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    ];
    let mut violations = negative(&object["spec"], "spec", &["replicas"]);
    violations.extend(validate_selector(&object["spec"]));
    violations.extend(validate_template(&object["spec"]));
    let Some(live) = live else { return violations };
    let fixed = |object: &Value| {
        let mut spec = object["spec"].as_object().cloned().unwrap_or_default();
        spec.retain(|name, _| !CHANGEABLE.contains(&name.as_str()));
        spec
    };
    if fixed(object) != fixed(live) {
        let why = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
            'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' \
            are forbidden";
        violations.push(Violation::forbidden("spec", why));
    }
    violations
}
