//! Deployments, ReplicaSets, StatefulSets, DaemonSets and what else makes pods from a template.

use super::column::{AGED, Column, NAMED, Shown, column, labels, list, number, or_none, text, wide};
use serde_json::{Value, json};

pub(super) const CONTAINERS: Column = wide("Containers", "string", "The names of the containers.");
pub(super) const IMAGES: Column = wide("Images", "string", "The images of the containers.");
pub(super) const SELECTOR: Column = wide("Selector", "string", "The labels of the pods it looks after.");

/// The same three columns of whatever has a pod template and a label selector.
pub(super) const CONTAINERS_OF_PODS: Shown = (CONTAINERS, |object, _| json!(containers(object, "/name")));
pub(super) const IMAGES_OF_PODS: Shown = (IMAGES, |object, _| json!(containers(object, "/image")));
pub(super) const SELECTOR_OF_PODS: Shown = (SELECTOR, |object, _| json!(or_none(&selector(object))));

const READY_OF_WANTED: Shown = (column("Ready", "string", "Pods that are ready, of those wanted."), |object, _| {
    json!(format!(
        "{}/{}",
        number(object, "/status/readyReplicas"),
        number(object, "/spec/replicas")
    ))
});
const DESIRED: Shown = (column("Desired", "integer", "Pods wanted."), |object, _| {
    json!(number(object, "/spec/replicas"))
});
const CURRENT: Shown = (column("Current", "integer", "Pods there are."), |object, _| {
    json!(number(object, "/status/replicas"))
});
const READY: Shown = (column("Ready", "integer", "Pods that are ready."), |object, _| {
    json!(number(object, "/status/readyReplicas"))
});

pub(super) const DEPLOYMENT: &[Shown] = &[
    NAMED,
    READY_OF_WANTED,
    (column("Up-to-date", "string", "Pods made from the latest template."), |object, _| {
        json!(number(object, "/status/updatedReplicas"))
    }),
    (
        column("Available", "string", "Pods that have been ready for long enough."),
        |object, _| json!(number(object, "/status/availableReplicas")),
    ),
    AGED,
    CONTAINERS_OF_PODS,
    IMAGES_OF_PODS,
    (SELECTOR, |object, _| json!(selector(object))),
];

pub(super) const REPLICA_SET: &[Shown] = &[
    NAMED,
    DESIRED,
    CURRENT,
    READY,
    AGED,
    CONTAINERS_OF_PODS,
    IMAGES_OF_PODS,
    SELECTOR_OF_PODS,
];

pub(super) const STATEFUL_SET: &[Shown] = &[NAMED, READY_OF_WANTED, AGED, CONTAINERS_OF_PODS, IMAGES_OF_PODS];

pub(super) const DAEMON_SET: &[Shown] = &[
    NAMED,
    (column("Desired", "integer", "Nodes that should run a pod."), |object, _| {
        json!(number(object, "/status/desiredNumberScheduled"))
    }),
    (column("Current", "integer", "Nodes that run a pod."), |object, _| {
        json!(number(object, "/status/currentNumberScheduled"))
    }),
    (column("Ready", "integer", "Nodes whose pod is ready."), |object, _| {
        json!(number(object, "/status/numberReady"))
    }),
    (
        column("Up-to-date", "integer", "Nodes whose pod is made from the latest template."),
        |object, _| json!(number(object, "/status/updatedNumberScheduled")),
    ),
    (
        column("Available", "integer", "Nodes whose pod has been ready for long enough."),
        |object, _| json!(number(object, "/status/numberAvailable")),
    ),
    (
        column("Node Selector", "string", "The labels of the nodes it looks after."),
        |object, _| json!(labels(object.pointer("/spec/template/spec/nodeSelector"))),
    ),
    AGED,
    CONTAINERS_OF_PODS,
    IMAGES_OF_PODS,
    SELECTOR_OF_PODS,
];

pub(super) const REPLICATION_CONTROLLER: &[Shown] = &[
    NAMED,
    DESIRED,
    CURRENT,
    READY,
    AGED,
    CONTAINERS_OF_PODS,
    IMAGES_OF_PODS,
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
