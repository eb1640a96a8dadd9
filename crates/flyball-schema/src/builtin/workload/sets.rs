//! Validation of StatefulSets and DaemonSets.
// pkg/apis/apps/validation/validation.go

use super::template;
use super::validate::{fixed_selector, not_above_replicas, not_decremented, unknown_strategy};
use crate::builtin::rules::{
    amount, amount_or_share, at_most_all, label, non_negative, none_negative, one_of, optional, selector,
};
use crate::builtin::spot::{Found, Spot};
use crate::builtin::volume::validate_claim_spec;
use crate::violation::Violation;
use serde_json::{Value, json};

/// The fields that an update of a StatefulSet may change.
const CHANGEABLE: [&str; 7] = [
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];

/// Validates a StatefulSet.
pub fn validate_stateful_set(object: &Value, live: Option<&Value>) -> Vec<Violation> {
    let mut found = Vec::new();
    let root = Spot::root(object);
    let spec = root.field("spec");
    management(&spec.field("podManagementPolicy"), &mut found);
    stateful_strategy(&spec.field("updateStrategy"), &mut found);
    retention(&spec.field("persistentVolumeClaimRetentionPolicy"), &mut found);
    if live.is_none() {
        let claims = spec.field("volumeClaimTemplates");
        claims.items().for_each(|claim| validate_claim_spec(&claim.field("spec"), &mut found));
    }
    none_negative(&spec, &["replicas", "minReadySeconds"], &mut found);
    non_negative(&spec.field("ordinals").field("start"), &mut found);
    if live.is_none() {
        optional(&spec.field("serviceName"), label, &mut found);
    }
    template::required_selector(&spec, "statefulset", &mut found);
    match template::has_meaning(&spec.field("selector")) {
        true => claimed_template(&spec, &mut found),
        false => spec.field("selector").invalid(&mut found, ""),
    }
    template::runs_forever(&spec.field("template"), "StatefulSet", &mut found);
    if let Some(live) = live {
        fixed(&spec, &live["spec"], &mut found);
    }
    found
}

fn management(policy: &Spot<'_>, found: &mut Found) {
    match policy.text() {
        "OrderedReady" | "Parallel" => {}
        "" => policy.required(found, ""),
        _ => policy.invalid(found, "must be 'OrderedReady' or 'Parallel'"),
    }
}

fn stateful_strategy(strategy: &Spot<'_>, found: &mut Found) {
    let rolling = strategy.field("rollingUpdate");
    match strategy.field("type").text() {
        "" => strategy.required(found, ""),
        "OnDelete" if rolling.is_set() => {
            let shown = json!({"Partition": rolling.field("partition").int(), "MaxUnavailable": rolling.value["maxUnavailable"]});
            rolling.invalid_as(found, shown, "only allowed for updateStrategy 'RollingUpdate'");
        }
        "OnDelete" => {}
        "RollingUpdate" => {
            non_negative(&rolling.field("partition"), found);
            some_unavailable(&rolling.field("maxUnavailable"), found);
        }
        other => {
            let shown = json!({"Type": other, "RollingUpdate": null});
            strategy.invalid_as(found, shown, "must be 'RollingUpdate' or 'OnDelete'");
        }
    }
}

fn some_unavailable(unavailable: &Spot<'_>, found: &mut Found) {
    if unavailable.is_set() {
        amount_or_share(unavailable, found);
        if amount(unavailable.value) == 0 {
            unavailable.invalid(found, "cannot be 0");
        }
        at_most_all(unavailable, found);
    }
}

fn retention(policy: &Spot<'_>, found: &mut Found) {
    if policy.is_set() {
        one_of(&policy.field("whenDeleted"), &["Retain", "Delete"], found);
        one_of(&policy.field("whenScaled"), &["Retain", "Delete"], found);
    }
}

/// The template with the claims as its volumes; names that the controller generates are skipped.
fn claimed_template(spec: &Spot<'_>, found: &mut Found) {
    // An empty selector is reported above, and not compared with the labels.
    template::selected(spec, found);
    let mut changed = spec.field("template").value.clone();
    if let Some(pod) = changed.get_mut("spec").and_then(Value::as_object_mut) {
        pod.remove("subdomain");
        pod.remove("hostname");
        let claims = spec.value["volumeClaimTemplates"].as_array().into_iter().flatten();
        let names: Vec<&str> = claims.filter_map(|claim| claim["metadata"]["name"].as_str()).collect();
        let own = pod.get("volumes").and_then(Value::as_array).cloned().unwrap_or_default();
        let kept = own.into_iter().filter(|volume| !names.iter().any(|name| volume["name"] == *name));
        let claimed = names
            .iter()
            .map(|name| json!({"name": name, "persistentVolumeClaim": {"claimName": name}}));
        let volumes: Vec<Value> = claimed.chain(kept).collect();
        pod.insert("volumes".into(), volumes.into());
    }
    let template = spec.with("template", &changed);
    template::validate(&template, found);
    template::validate_metadata(&template, found);
}

fn fixed(spec: &Spot<'_>, live: &Value, found: &mut Found) {
    let kept = |spec: &Value| {
        let mut members = spec.as_object().cloned().unwrap_or_default();
        members.retain(|name, _| !CHANGEABLE.contains(&name.as_str()));
        members
    };
    if kept(spec.value) != kept(live) {
        let why = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
            'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' \
            are forbidden";
        spec.forbidden(found, why);
    }
}

/// Validates the status of a StatefulSet.
pub fn validate_stateful_set_status(object: &Value, live: &Value) -> Vec<Violation> {
    const PARTS: [&str; 4] = [
        "readyReplicas",
        "currentReplicas",
        "updatedReplicas",
        "availableReplicas",
    ];
    let mut found = Vec::new();
    let root = Spot::root(object);
    let status = root.field("status");
    non_negative(&status.field("replicas"), &mut found);
    none_negative(&status, &PARTS, &mut found);
    none_negative(&status, &["observedGeneration", "collisionCount"], &mut found);
    not_above_replicas(&status, &PARTS, &mut found);
    let available = status.field("availableReplicas");
    if available.int() > status.field("readyReplicas").int() {
        available.invalid_as(&mut found, available.int(), "cannot be greater than status.readyReplicas");
    }
    not_decremented(&status, live, &mut found);
    found
}

/// Validates a DaemonSet.
pub fn validate_daemon_set(object: &Value, live: Option<&Value>) -> Vec<Violation> {
    let mut found = Vec::new();
    let root = Spot::root(object);
    let spec = root.field("spec");
    fixed_selector(&spec, live, &mut found);
    selector(&spec.field("selector"), &mut found);
    if template::has_meaning(&spec.field("selector")) {
        template::selected(&spec, &mut found);
    }
    template::not_empty(&spec.field("selector"), "daemonset", &mut found);
    template::validate(&spec.field("template"), &mut found);
    template::runs_forever(&spec.field("template"), "DaemonSet", &mut found);
    non_negative(&spec.field("minReadySeconds"), &mut found);
    daemon_strategy(&spec.field("updateStrategy"), &mut found);
    non_negative(&spec.field("revisionHistoryLimit"), &mut found);
    found
}

fn daemon_strategy(strategy: &Spot<'_>, found: &mut Found) {
    let rolling = strategy.field("rollingUpdate");
    match strategy.field("type").text() {
        "OnDelete" => {}
        "RollingUpdate" if !rolling.is_set() => rolling.required(found, ""),
        "RollingUpdate" => daemon_rolling(&rolling, found),
        other => unknown_strategy(strategy, other, &["RollingUpdate", "OnDelete"], found),
    }
}

fn daemon_rolling(rolling: &Spot<'_>, found: &mut Found) {
    let (unavailable, surge) = (rolling.field("maxUnavailable"), rolling.field("maxSurge"));
    for rule in [amount_or_share, at_most_all] {
        rule(&unavailable, found);
        rule(&surge, found);
    }
    match (amount(unavailable.value) != 0, amount(surge.value) != 0) {
        (true, true) => surge.invalid(found, "may not be set when maxUnavailable is non-zero"),
        (false, false) => unavailable.required(found, "cannot be 0 when maxSurge is 0"),
        _ => {}
    }
}

/// Validates the status of a DaemonSet.
pub fn validate_daemon_set_status(object: &Value, live: &Value) -> Vec<Violation> {
    const COUNTS: [&str; 9] = [
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
        "observedGeneration",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
        "collisionCount",
    ];
    let mut found = Vec::new();
    let root = Spot::root(object);
    none_negative(&root.field("status"), &COUNTS, &mut found);
    not_decremented(&root.field("status"), live, &mut found);
    found
}
