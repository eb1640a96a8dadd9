//! Nodes.

use super::column::{AGE, Column, NAME, age, column, list, name, or_none, text, wide};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeSet;

pub(super) const COLUMNS: &[Column] = &[
    NAME,
    column("Status", "string", "Whether the node is ready, and whether it takes pods."),
    column("Roles", "string", "What the node is for."),
    AGE,
    column("Version", "string", "The version of its kubelet."),
    wide("Internal-IP", "string", "Its address inside the cluster."),
    wide("External-IP", "string", "Its address from outside."),
    wide("OS-Image", "string", "Its operating system."),
    wide("Kernel-Version", "string", "Its kernel."),
    wide("Container-Runtime", "string", "What runs its containers."),
];

pub(super) fn cells(node: &Value, now: Timestamp) -> Vec<Value> {
    let about = |field: &str| text(node, &format!("/status/nodeInfo/{field}"));
    let known = |field: &str| match about(field) {
        "" => "<unknown>".to_owned(),
        text => text.to_owned(),
    };
    let kernel = match about("architecture") {
        "" => known("kernelVersion"),
        architecture => format!("{} ({architecture})", known("kernelVersion")),
    };
    vec![
        json!(name(node)),
        json!(status(node)),
        json!(or_none(&roles(node))),
        age(node, now),
        json!(about("kubeletVersion")),
        json!(or_none(address(node, "InternalIP"))),
        json!(or_none(address(node, "ExternalIP"))),
        json!(known("osImage")),
        json!(kernel),
        json!(known("containerRuntimeVersion")),
    ]
}

fn status(node: &Value) -> String {
    let mut conditions = list(node, "/status/conditions").iter();
    let ready = match conditions.find(|condition| condition["type"] == "Ready") {
        None => "Unknown",
        Some(condition) if condition["status"] == "True" => "Ready",
        Some(_) => "NotReady",
    };
    match node.pointer("/spec/unschedulable") {
        Some(Value::Bool(true)) => format!("{ready},SchedulingDisabled"),
        _ => ready.to_owned(),
    }
}

fn roles(node: &Value) -> String {
    let labels = node.pointer("/metadata/labels").and_then(Value::as_object).into_iter().flatten();
    let role = |(key, value): (&'_ String, &Value)| match key.strip_prefix("node-role.kubernetes.io/") {
        Some(role) => Some(role.to_owned()),
        None if key == "kubernetes.io/role" => value.as_str().map(str::to_owned),
        None => None,
    };
    let roles: BTreeSet<String> = labels.filter_map(role).filter(|role| !role.is_empty()).collect();
    roles.into_iter().collect::<Vec<_>>().join(",")
}

fn address<'a>(node: &'a Value, kind: &str) -> &'a str {
    let mut addresses = list(node, "/status/addresses").iter();
    addresses
        .find(|address| address["type"] == kind)
        .map_or("", |address| text(address, "/address"))
}
