//! Which pods go first when there are too many: the ones that would be missed least.

use crate::pod;
use jiff::Timestamp;
use k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::Time};
use std::{cmp::Ordering, collections::HashMap, sync::Arc};

/// Orders pods so that those which are to be deleted first come first.
///
/// `related` are the pods of all ReplicaSets of the same owner: where many of them share a node, one is missed less.
// pkg/controller/controller_utils.go, ActivePodsWithRanks.Less
pub(crate) fn rank(pods: &mut [Arc<Pod>], related: &[Arc<Pod>], now: Timestamp) {
    let mut on_node: HashMap<Option<&str>, usize> = HashMap::new();
    for pod in related.iter().filter(|pod| pod::is_active(pod)) {
        *on_node.entry(pod::node(pod)).or_default() += 1;
    }
    let neighbours = |pod: &Pod| on_node.get(&pod::node(pod)).copied().unwrap_or_default();
    pods.sort_by(|a, b| {
        let assigned = pod::node(a).is_some().cmp(&pod::node(b).is_some());
        let started = startedness(a).cmp(&startedness(b));
        let ready = pod::is_ready(a).cmp(&pod::is_ready(b));
        let cost = deletion_cost(a).cmp(&deletion_cost(b));
        let doubled = neighbours(b).cmp(&neighbours(a));
        let age = || by_age(pod::ready_since(a), pod::ready_since(b), now);
        let restarts = || restarts(b).cmp(&restarts(a));
        let created = || by_age(created(a), created(b), now);
        let order = assigned.then(started).then(ready).then(cost).then(doubled);
        let order = order.then_with(age).then_with(restarts).then_with(created);
        order.then_with(|| a.metadata.uid.cmp(&b.metadata.uid))
    });
}

fn startedness(pod: &Pod) -> u8 {
    match pod::phase(pod) {
        "Pending" => 0,
        "Unknown" => 1,
        _ => 2,
    }
}

fn deletion_cost(pod: &Pod) -> i32 {
    let annotations = pod.metadata.annotations.as_ref();
    let cost = annotations.and_then(|annotations| annotations.get("controller.kubernetes.io/pod-deletion-cost"));
    cost.and_then(|cost| cost.parse().ok()).unwrap_or_default()
}

/// The younger first; ages of the same order of magnitude are equal, so that it does not always hit the youngest.
fn by_age(a: Option<Timestamp>, b: Option<Timestamp>, now: Timestamp) -> Ordering {
    let magnitude = |since: Timestamp| match now.duration_since(since).as_nanos() {
        age if age > 0 => i64::from(age.ilog2()),
        _ => -1,
    };
    match (a, b) {
        (Some(a), Some(b)) if a != b => magnitude(a).cmp(&magnitude(b)),
        _ => Ordering::Equal,
    }
}

/// The most restarts of any container.
fn restarts(pod: &Pod) -> i32 {
    let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref());
    statuses
        .into_iter()
        .flatten()
        .map(|status| status.restart_count)
        .max()
        .unwrap_or_default()
}

fn created(pod: &Pod) -> Option<Timestamp> {
    pod.metadata.creation_timestamp.as_ref().map(|Time(at)| *at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn pod(name: &str, fields: Value) -> Arc<Pod> {
        let node = fields.get("node").cloned().unwrap_or(json!("n"));
        let ready = fields.get("ready").cloned().unwrap_or(json!("2026-01-01T00:00:00Z"));
        let status = if ready.is_null() { "False" } else { "True" };
        let condition = json!({ "type": "Ready", "status": status, "lastTransitionTime": ready });
        let pod = json!({
            "metadata": { "name": name, "uid": name, "annotations": fields.get("annotations") },
            "spec": { "containers": [], "nodeName": node },
            "status": {
                "phase": fields.get("phase").cloned().unwrap_or(json!("Running")),
                "conditions": [condition],
                "containerStatuses": [{ "name": "c", "image": "", "imageID": "", "ready": true,
                    "restartCount": fields.get("restarts").cloned().unwrap_or(json!(0)) }],
            },
        });
        Arc::new(serde_json::from_value(pod).unwrap())
    }

    fn ranked(mut pods: Vec<Arc<Pod>>) -> Vec<String> {
        let related = pods.clone();
        rank(&mut pods, &related, "2026-01-02T00:00:00Z".parse().unwrap());
        pods.iter().map(|pod| pod.metadata.name.clone().unwrap()).collect()
    }

    #[test]
    fn what_has_come_least_far_goes_first() {
        let pods = vec![
            pod("ready", json!({})),
            pod("unready", json!({ "ready": null })),
            pod("pending", json!({ "phase": "Pending", "ready": null })),
            pod("unassigned", json!({ "node": "", "phase": "Pending", "ready": null })),
        ];
        assert_eq!(ranked(pods), ["unassigned", "pending", "unready", "ready"]);
    }

    #[test]
    fn a_cheaper_pod_goes_before_a_dearer_one() {
        let cost = |cost| json!({ "annotations": { "controller.kubernetes.io/pod-deletion-cost": cost } });
        let pods = vec![
            pod("dear", cost("5")),
            pod("plain", json!({})),
            pod("cheap", cost("-1")),
        ];
        assert_eq!(ranked(pods), ["cheap", "plain", "dear"]);
    }

    #[test]
    fn a_pod_with_neighbours_goes_before_one_that_is_alone_on_its_node() {
        let pods = vec![
            pod("alone", json!({ "node": "other" })),
            pod("a", json!({})),
            pod("b", json!({})),
        ];
        assert_eq!(ranked(pods), ["a", "b", "alone"]);
    }

    #[test]
    fn the_younger_go_first_and_those_that_restart_most() {
        let pods = vec![
            pod("old", json!({})),
            pod("young", json!({ "ready": "2026-01-01T23:00:00Z" })),
            pod("shaky", json!({ "restarts": 3 })),
        ];
        assert_eq!(ranked(pods), ["young", "shaky", "old"]);
    }
}
