//! Validation of Deployments and ReplicaSets.
// pkg/apis/apps/validation/validation.go

use super::template;
use crate::builtin::rules::{amount, amount_or_share, at_most_all, immutable, non_negative, none_negative};
use crate::builtin::spot::{Found, Spot};
use crate::violation::{Reason, Violation};
use serde_json::Value;

/// Validates a Deployment.
pub fn validate_deployment(object: &Value, live: Option<&Value>) -> Vec<Violation> {
    let mut found = Vec::new();
    let root = Spot::root(object);
    let spec = root.field("spec");
    replicated(&spec, &mut found);
    strategy(&spec.field("strategy"), &mut found);
    none_negative(&spec, &["minReadySeconds", "revisionHistoryLimit"], &mut found);
    progress_deadline(&spec, &mut found);
    fixed_selector(&spec, live, &mut found);
    found
}

/// Validates a ReplicaSet.
pub fn validate_replica_set(object: &Value, live: Option<&Value>) -> Vec<Violation> {
    let mut found = Vec::new();
    let root = Spot::root(object);
    let spec = root.field("spec");
    none_negative(&spec, &["replicas", "minReadySeconds"], &mut found);
    selected_template(&spec, &mut found);
    fixed_selector(&spec, live, &mut found);
    found
}

fn replicated(spec: &Spot<'_>, found: &mut Found) {
    non_negative(&spec.field("replicas"), found);
    selected_template(spec, found);
}

fn selected_template(spec: &Spot<'_>, found: &mut Found) {
    template::required_selector(spec, "deployment", found);
    if !template::has_meaning(&spec.field("selector")) {
        return spec.field("selector").invalid(found, "invalid label selector");
    }
    // An empty selector is reported above; it matches everything.
    template::selected(spec, found);
    template::validate(&spec.field("template"), found);
    template::runs_forever(&spec.field("template"), "ReplicaSet", found);
}

pub(super) fn fixed_selector(spec: &Spot<'_>, live: Option<&Value>, found: &mut Found) {
    if let Some(live) = live {
        let root = Spot::root(live);
        immutable(&spec.field("selector"), &root.field("spec").field("selector"), found);
    }
}

fn strategy(strategy: &Spot<'_>, found: &mut Found) {
    let rolling = strategy.field("rollingUpdate");
    match strategy.field("type").text() {
        "Recreate" if rolling.is_set() => {
            rolling.forbidden(found, "may not be specified when strategy `type` is 'Recreate'");
        }
        "Recreate" => {}
        "RollingUpdate" => rolling_update(&rolling, found),
        other => unknown_strategy(strategy, other, &["Recreate", "RollingUpdate"], found),
    }
}

/// Go reports the whole strategy if its type is unknown.
pub(super) fn unknown_strategy(strategy: &Spot<'_>, name: &str, supported: &[&str], found: &mut Found) {
    let shown = format!("{{\"Type\":{},\"RollingUpdate\":null}}", Value::from(name));
    let supported: Vec<String> = supported.iter().map(|name| format!("{name:?}")).collect();
    let why = format!("supported values: {}", supported.join(", "));
    found.push(Violation::with_text(strategy.path(), Reason::NotSupported, &shown, &why));
}

fn rolling_update(rolling: &Spot<'_>, found: &mut Found) {
    let (unavailable, surge) = (rolling.field("maxUnavailable"), rolling.field("maxSurge"));
    amount_or_share(&unavailable, found);
    amount_or_share(&surge, found);
    if amount(unavailable.value) == 0 && amount(surge.value) == 0 {
        unavailable.invalid(found, "may not be 0 when `maxSurge` is 0");
    }
    at_most_all(&unavailable, found);
}

fn progress_deadline(spec: &Spot<'_>, found: &mut Found) {
    let deadline = spec.field("progressDeadlineSeconds");
    non_negative(&deadline, found);
    if deadline.is_set() && deadline.int() <= spec.field("minReadySeconds").int() {
        deadline.invalid(found, "must be greater than minReadySeconds");
    }
}

/// Validates the status of a Deployment.
pub fn validate_deployment_status(object: &Value, live: &Value) -> Vec<Violation> {
    const COUNTS: [&str; 8] = [
        "observedGeneration",
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
        "terminatingReplicas",
        "collisionCount",
    ];
    status(object, live, &COUNTS, &["updatedReplicas", "readyReplicas", "availableReplicas"])
}

/// Validates the status of a ReplicaSet.
pub fn validate_replica_set_status(object: &Value, live: &Value) -> Vec<Violation> {
    const COUNTS: [&str; 6] = [
        "replicas",
        "fullyLabeledReplicas",
        "readyReplicas",
        "availableReplicas",
        "terminatingReplicas",
        "observedGeneration",
    ];
    status(object, live, &COUNTS, &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"])
}

fn status(object: &Value, live: &Value, counts: &[&str], parts: &[&str]) -> Vec<Violation> {
    let mut found = Vec::new();
    let root = Spot::root(object);
    let status = root.field("status");
    none_negative(&status, counts, &mut found);
    not_above_replicas(&status, parts, &mut found);
    let available = status.field("availableReplicas");
    if available.int() > status.field("readyReplicas").int() {
        available.invalid_as(&mut found, available.int(), "cannot be greater than readyReplicas");
    }
    not_decremented(&status, live, &mut found);
    found
}

pub(super) fn not_above_replicas(status: &Spot<'_>, parts: &[&str], found: &mut Found) {
    for part in parts.iter().map(|part| status.field(part)) {
        if part.int() > status.field("replicas").int() {
            part.invalid_as(found, part.int(), "cannot be greater than status.replicas");
        }
    }
}

pub(super) fn not_decremented(status: &Spot<'_>, live: &Value, found: &mut Found) {
    let count = status.field("collisionCount");
    if live["status"]["collisionCount"].as_i64().is_some_and(|before| before > count.int()) {
        count.invalid_as(found, count.int(), "cannot be decremented");
    }
}
