//! Deployments, ReplicaSets, StatefulSets and DaemonSets.

use super::{AGE, AGED, Column, NAME, NAMED, Shown, age, column, labels, list, name, number, or_none, text, wide};
use jiff::Timestamp;
use serde_json::{Value, json};

pub(super) const CONTAINERS: Column = wide("Containers", "string", "The names of the containers.");
pub(super) const IMAGES: Column = wide("Images", "string", "The images of the containers.");
pub(super) const SELECTOR: Column = wide("Selector", "string", "The labels of the pods it looks after.");

pub(super) const DEPLOYMENT: &[Column] = &[
    NAME,
    column("Ready", "string", "Pods that are ready, of those wanted."),
    column("Up-to-date", "string", "Pods made from the latest template."),
    column("Available", "string", "Pods that have been ready for long enough."),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

pub(super) fn deployment(object: &Value, now: Timestamp) -> Vec<Value> {
    let ready = format!("{}/{}", number(object, "/status/readyReplicas"), number(object, "/spec/replicas"));
    vec![
        json!(name(object)),
        json!(ready),
        json!(number(object, "/status/updatedReplicas")),
        json!(number(object, "/status/availableReplicas")),
        age(object, now),
        json!(containers(object, "/name")),
        json!(containers(object, "/image")),
        json!(selector(object)),
    ]
}

pub(super) const REPLICA_SET: &[Column] = &[
    NAME,
    column("Desired", "integer", "Pods wanted."),
    column("Current", "integer", "Pods there are."),
    column("Ready", "integer", "Pods that are ready."),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

pub(super) fn replica_set(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        json!(name(object)),
        json!(number(object, "/spec/replicas")),
        json!(number(object, "/status/replicas")),
        json!(number(object, "/status/readyReplicas")),
        age(object, now),
        json!(containers(object, "/name")),
        json!(containers(object, "/image")),
        json!(or_none(&selector(object))),
    ]
}

pub(super) const STATEFUL_SET: &[Column] = &[
    NAME,
    column("Ready", "string", "Pods that are ready, of those wanted."),
    AGE,
    CONTAINERS,
    IMAGES,
];

pub(super) fn stateful_set(object: &Value, now: Timestamp) -> Vec<Value> {
    let ready = format!("{}/{}", number(object, "/status/readyReplicas"), number(object, "/spec/replicas"));
    vec![
        json!(name(object)),
        json!(ready),
        age(object, now),
        json!(containers(object, "/name")),
        json!(containers(object, "/image")),
    ]
}

pub(super) const DAEMON_SET: &[Column] = &[
    NAME,
    column("Desired", "integer", "Nodes that should run a pod."),
    column("Current", "integer", "Nodes that run a pod."),
    column("Ready", "integer", "Nodes whose pod is ready."),
    column("Up-to-date", "integer", "Nodes whose pod is made from the latest template."),
    column("Available", "integer", "Nodes whose pod has been ready for long enough."),
    column("Node Selector", "string", "The labels of the nodes it looks after."),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

pub(super) fn daemon_set(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        json!(name(object)),
        json!(number(object, "/status/desiredNumberScheduled")),
        json!(number(object, "/status/currentNumberScheduled")),
        json!(number(object, "/status/numberReady")),
        json!(number(object, "/status/updatedNumberScheduled")),
        json!(number(object, "/status/numberAvailable")),
        json!(labels(object.pointer("/spec/template/spec/nodeSelector"))),
        age(object, now),
        json!(containers(object, "/name")),
        json!(containers(object, "/image")),
        json!(or_none(&selector(object))),
    ]
}

pub(super) const REPLICATION_CONTROLLER: &[Shown] = &[
    NAMED,
    (column("Desired", "integer", "Pods wanted."), |object, _| {
        json!(number(object, "/spec/replicas"))
    }),
    (column("Current", "integer", "Pods there are."), |object, _| {
        json!(number(object, "/status/replicas"))
    }),
    (column("Ready", "integer", "Pods that are ready."), |object, _| {
        json!(number(object, "/status/readyReplicas"))
    }),
    AGED,
    (CONTAINERS, |object, _| json!(containers(object, "/name"))),
    (IMAGES, |object, _| json!(containers(object, "/image"))),
    (SELECTOR, |object, _| json!(labels(object.pointer("/spec/selector")))),
];

pub(super) const POD_TEMPLATE: &[Shown] = &[
    NAMED,
    (column("Containers", "string", "The names of the containers."), |object, _| {
        json!(containers_at(object, "/template/spec/containers", "/name"))
    }),
    (column("Images", "string", "The images of the containers."), |object, _| {
        json!(containers_at(object, "/template/spec/containers", "/image"))
    }),
    (column("Pod Labels", "string", "The labels of the pods made from it."), |object, _| {
        json!(labels(object.pointer("/template/metadata/labels")))
    }),
];

pub(super) fn containers(object: &Value, field: &str) -> String {
    containers_at(object, "/spec/template/spec/containers", field)
}

/// The same of containers that are elsewhere.
pub(super) fn containers_at(object: &Value, pointer: &str, field: &str) -> String {
    let containers = list(object, pointer).iter();
    containers.map(|container| text(container, field)).collect::<Vec<_>>().join(",")
}

/// `app=web,tier in (back,front)`: requirements by key, as `labels.Selector` prints them.
pub(super) fn selector(object: &Value) -> String {
    selector_at(object, "/spec/selector")
}

/// The same of a selector that is elsewhere.
pub(super) fn selector_at(object: &Value, pointer: &str) -> String {
    let labels = object
        .pointer(&format!("{pointer}/matchLabels"))
        .and_then(Value::as_object)
        .into_iter()
        .flatten();
    let mut requirements: Vec<(&str, String)> = labels
        .map(|(key, value)| (key.as_str(), format!("{key}={}", value.as_str().unwrap_or_default())))
        .collect();
    let expressions = list(object, &format!("{pointer}/matchExpressions")).iter();
    requirements.extend(expressions.map(|expression| (text(expression, "/key"), requirement(expression))));
    requirements.sort_by_key(|(key, _)| *key);
    requirements.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(",")
}

fn requirement(expression: &Value) -> String {
    let key = text(expression, "/key");
    let mut values: Vec<&str> = list(expression, "/values").iter().filter_map(Value::as_str).collect();
    values.sort_unstable();
    let values = values.join(",");
    match text(expression, "/operator") {
        "In" => format!("{key} in ({values})"),
        "NotIn" => format!("{key} notin ({values})"),
        "DoesNotExist" => format!("!{key}"),
        _ => key.to_owned(),
    }
}
