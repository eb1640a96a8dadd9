//! Events: stored in the form of the core group, also served in that of `events.k8s.io`.

use super::meta;
use super::{at, fill, set};
use crate::violation::Violation;
use serde_json::{Value, json};

/// The names of the same field in the two groups, core first.
const NAMES: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// Converts the form of `events.k8s.io` to that of the core group.
// pkg/apis/events/v1/conversion.go
pub fn to_core(event: &mut Value) {
    NAMES.iter().for_each(|(core, new)| rename(event, new, core));
    set(event, "apiVersion", "v1");
    for field in ["reportingComponent", "reportingInstance"] {
        fill(event, field, "");
    }
    for field in ["involvedObject", "source"] {
        fill(event, field, json!({}));
    }
}

/// Converts the form of the core group to that of `events.k8s.io`.
pub fn to_new(event: &mut Value) {
    NAMES.iter().for_each(|(core, new)| rename(event, core, new));
    let Some(members) = event.as_object_mut() else { return };
    for field in ["reportingController", "reportingInstance"] {
        if members.get(field).is_some_and(|value| value == "") {
            members.remove(field);
        }
    }
    if members
        .get("regarding")
        .is_some_and(|value| value.as_object().is_some_and(serde_json::Map::is_empty))
    {
        members.remove("regarding");
    }
}

fn rename(event: &mut Value, from: &str, to: &str) {
    if let Some(members) = event.as_object_mut()
        && let Some(value) = members.remove(from)
    {
        members.insert(to.to_owned(), value);
    }
}

/// Validates an event.
// pkg/apis/core/validation/events.go
pub fn validate(event: &Value, live: Option<&Value>) -> Vec<Violation> {
    if event["apiVersion"] == "v1" {
        return legacy(event);
    }
    let mut violations = legacy(&core(event));
    if live.is_some() {
        return violations;
    }
    for (field, detail) in [
        ("reportingController", ""),
        ("reportingInstance", ""),
        ("action", ""),
        ("reason", ""),
    ] {
        if event[field].as_str().unwrap_or_default().is_empty() {
            violations.push(Violation::required(field, detail));
        }
    }
    if event["eventTime"].is_null() {
        violations.insert(0, Violation::required("eventTime", ""));
    }
    violations
}

fn core(event: &Value) -> Value {
    let mut core = event.clone();
    to_core(&mut core);
    core
}

fn legacy(event: &Value) -> Vec<Violation> {
    let involved = event["involvedObject"]["namespace"].as_str().unwrap_or_default();
    let own = meta::text(event, "namespace");
    let fits = match involved {
        "" => own == "default" || own.is_empty(),
        involved => involved == own,
    };
    match fits {
        true => Vec::new(),
        false => vec![Violation::invalid(
            "involvedObject.namespace",
            involved,
            "does not match event.namespace",
        )],
    }
}

/// Writes the absent fields of an event that Go encodes.
pub fn default(event: &mut Value) {
    if event["apiVersion"] == "v1" {
        at(event, "involvedObject");
        at(event, "source");
        fill(event, "reportingComponent", "");
        fill(event, "reportingInstance", "");
    }
}

/// Writes absent times as `null`. No field manager owns them, so this runs after `default`.
pub fn prepare(event: &mut Value, _live: Option<&Value>) {
    let times = match event["apiVersion"] == "v1" {
        true => ["firstTimestamp", "lastTimestamp"],
        false => ["deprecatedFirstTimestamp", "deprecatedLastTimestamp"],
    };
    for field in times.into_iter().chain(["eventTime"]) {
        fill(event, field, Value::Null);
    }
}
