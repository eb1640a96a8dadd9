//! Whether a pod may run on a node: selectors, affinity, taints and room.

use crate::pod;
use flyball_schema::quantity::Quantity as Amount;
use k8s_openapi::{
    api::core::v1::{Node, NodeSelectorRequirement, NodeSelectorTerm, Pod, PodSpec, Taint, Toleration},
    apimachinery::pkg::api::resource::Quantity,
};
use kube::ResourceExt;
use std::{collections::BTreeMap, sync::Arc};

/// The first node that a pod may run on, or why it may run on none.
pub(super) fn choose<'a>(spec: &PodSpec, nodes: &'a [Arc<Node>], placed: &[Arc<Pod>]) -> Result<&'a Arc<Node>, String> {
    if nodes.is_empty() {
        return Err("no nodes available to schedule pods".into());
    }
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    for node in nodes {
        let found = obstacles(spec, node, placed);
        if found.is_empty() {
            return Ok(node);
        }
        found.into_iter().for_each(|reason| *reasons.entry(reason).or_default() += 1);
    }
    let reasons: Vec<_> = reasons.into_iter().map(|(reason, nodes)| format!("{nodes} {reason}")).collect();
    Err(format!("0/{} nodes are available: {}.", nodes.len(), reasons.join(", ")))
}

/// Whether a pod needs room on its node.
pub(super) fn asks_for_resources(spec: &PodSpec) -> bool {
    !requests(spec).is_empty()
}

fn obstacles(spec: &PodSpec, node: &Node, placed: &[Arc<Pod>]) -> Vec<String> {
    if spec.node_name.as_ref().is_some_and(|name| !name.is_empty() && *name != node.name_any()) {
        return vec!["node(s) didn't match the requested node name".into()];
    }
    if let Some(taint) = taints(node).find(|taint| !is_tolerated(spec, taint)) {
        let why = match (&*taint.key, taint.value.as_deref()) {
            ("node.kubernetes.io/unschedulable", _) => "node(s) were unschedulable".into(),
            (key, None | Some("")) => format!("node(s) had untolerated taint {{{key}: }}"),
            (key, Some(value)) => format!("node(s) had untolerated taint {{{key}: {value}}}"),
        };
        return vec![why];
    }
    if !is_selected(spec, node) {
        return vec!["node(s) didn't match Pod's node affinity/selector".into()];
    }
    shortages(spec, node, placed)
}

/// A node's taints; one that is unschedulable has one more.
fn taints(node: &Node) -> impl Iterator<Item = Taint> {
    let spec = node.spec.clone().unwrap_or_default();
    let unschedulable = spec.unschedulable.unwrap_or_default().then(|| Taint {
        key: "node.kubernetes.io/unschedulable".into(),
        effect: "NoSchedule".into(),
        ..Taint::default()
    });
    let mut taints = spec.taints.unwrap_or_default();
    taints.extend(unschedulable);
    taints.into_iter().filter(|taint| taint.effect != "PreferNoSchedule")
}

fn is_tolerated(spec: &PodSpec, taint: &Taint) -> bool {
    let tolerates = |toleration: &Toleration| {
        let effect = toleration.effect.as_deref().unwrap_or_default();
        let key = toleration.key.as_deref().unwrap_or_default();
        let exists = toleration.operator.as_deref() == Some("Exists");
        (effect.is_empty() || effect == taint.effect)
            && (key == taint.key || (key.is_empty() && exists))
            && (exists || toleration.value.as_deref().unwrap_or_default() == taint.value.as_deref().unwrap_or_default())
    };
    spec.tolerations.iter().flatten().any(tolerates)
}

fn is_selected(spec: &PodSpec, node: &Node) -> bool {
    let has = |(name, value): (&String, &String)| node.labels().get(name) == Some(value);
    if !spec.node_selector.iter().flatten().all(has) {
        return false;
    }
    let affinity = spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    let required = affinity.and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution.as_ref());
    required.is_none_or(|required| required.node_selector_terms.iter().any(|term| matches(term, node)))
}

/// A term without requirements matches nothing.
fn matches(term: &NodeSelectorTerm, node: &Node) -> bool {
    let labels = term.match_expressions.iter().flatten();
    let fields = term.match_fields.iter().flatten();
    let name = node.name_any();
    let is_empty = labels.clone().chain(fields.clone()).next().is_none();
    !is_empty
        && labels
            .into_iter()
            .all(|wanted| holds(wanted, node.labels().get(&wanted.key).map(String::as_str)))
        && fields
            .into_iter()
            .all(|wanted| holds(wanted, Some(&*name).filter(|_| wanted.key == "metadata.name")))
}

fn holds(wanted: &NodeSelectorRequirement, value: Option<&str>) -> bool {
    let values = wanted.values.as_deref().unwrap_or_default();
    let listed = value.is_some_and(|value| values.iter().any(|wanted| wanted == value));
    let compared = || -> Option<std::cmp::Ordering> {
        let (found, limit): (i64, i64) = (value?.parse().ok()?, values.first()?.parse().ok()?);
        Some(found.cmp(&limit))
    };
    match &*wanted.operator {
        "In" => listed,
        "NotIn" => !listed,
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => compared().is_some_and(|order| order.is_gt()),
        "Lt" => compared().is_some_and(|order| order.is_lt()),
        _ => false,
    }
}

/// What a node has too little of, after what is placed on it already.
fn shortages(spec: &PodSpec, node: &Node, placed: &[Arc<Pod>]) -> Vec<String> {
    let allocatable = node.status.as_ref().and_then(|status| status.allocatable.clone()).unwrap_or_default();
    let name = node.name_any();
    let here = placed.iter().filter(|pod| pod::node(pod) == Some(&name) && !pod::has_ended(pod));
    let mut used = Amounts::new();
    for requests in here.filter_map(|pod| pod.spec.as_ref()).map(requests) {
        requests.iter().for_each(|(resource, amount)| add(&mut used, resource, amount));
    }
    let asked = requests(spec);
    asked.iter().for_each(|(resource, amount)| add(&mut used, resource, amount));
    let lacks = |resource: &&String| allocatable.get(*resource).and_then(amount_of) < used.get(*resource).cloned();
    let lacking = asked.keys().filter(lacks);
    lacking.map(|resource| format!("Insufficient {resource}")).collect()
}

/// By resource.
type Amounts = BTreeMap<String, Amount>;

/// What the containers of a pod ask for together.
fn requests(spec: &PodSpec) -> Amounts {
    let mut sum = Amounts::new();
    let containers = spec
        .containers
        .iter()
        .filter_map(|container| container.resources.as_ref()?.requests.as_ref());
    for (resource, quantity) in containers.flatten() {
        if let Some(amount) = amount_of(quantity) {
            add(&mut sum, resource, &amount);
        }
    }
    sum.retain(|_, amount| !amount.is_zero() && !amount.is_negative());
    sum
}

fn add(amounts: &mut Amounts, resource: &str, amount: &Amount) {
    let sum = amounts.get(resource).map_or_else(|| amount.clone(), |known| known.plus(amount));
    amounts.insert(resource.to_owned(), sum);
}

/// A quantity, exactly; the API server has checked that it is one.
fn amount_of(quantity: &Quantity) -> Option<Amount> {
    quantity.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn node(spec: Value) -> Arc<Node> {
        let allocatable = json!({ "cpu": "4", "memory": "8Gi", "pods": "10" });
        let metadata = json!({ "name": "n", "labels": { "disk": "ssd", "cores": "4" } });
        let node = json!({ "metadata": metadata, "spec": spec, "status": { "allocatable": allocatable } });
        Arc::new(serde_json::from_value(node).unwrap())
    }

    fn spec(fields: Value) -> PodSpec {
        let mut spec = json!({ "containers": [] });
        spec.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        serde_json::from_value(spec).unwrap()
    }

    fn why(fields: Value, node_spec: Value) -> String {
        choose(&spec(fields), &[node(node_spec)], &[])
            .map(|_| String::new())
            .unwrap_or_else(|why| why)
    }

    fn asking(cpu: &str) -> Value {
        json!({ "containers": [{ "name": "c", "resources": { "requests": { "cpu": cpu } } }] })
    }

    #[test]
    fn a_pod_goes_where_its_selector_points() {
        let refused = "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.";
        assert_eq!(why(json!({ "nodeSelector": { "disk": "ssd" } }), json!({})), "");
        assert_eq!(why(json!({ "nodeSelector": { "disk": "tape" } }), json!({})), refused);
        let requiring = |requirement: Value| {
            let terms = json!([{ "matchExpressions": [requirement] }]);
            json!({ "affinity": { "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": terms } } } })
        };
        assert_eq!(
            why(requiring(json!({ "key": "cores", "operator": "Gt", "values": ["3"] })), json!({})),
            ""
        );
        assert_eq!(
            why(requiring(json!({ "key": "disk", "operator": "NotIn", "values": ["ssd"] })), json!({})),
            refused
        );
    }

    #[test]
    fn a_taint_keeps_pods_away_that_do_not_tolerate_it() {
        let tainted = json!({ "taints": [{ "key": "gpu", "value": "yes", "effect": "NoSchedule" }] });
        let refused = "0/1 nodes are available: 1 node(s) had untolerated taint {gpu: yes}.";
        assert_eq!(why(json!({}), tainted.clone()), refused);
        assert_eq!(why(json!({ "tolerations": [{ "key": "gpu", "operator": "Exists" }] }), tainted), "");
        let cordoned = json!({ "unschedulable": true });
        assert_eq!(why(json!({}), cordoned), "0/1 nodes are available: 1 node(s) were unschedulable.");
    }

    #[test]
    fn a_pod_needs_room_beside_the_others() {
        assert_eq!(why(asking("3500m"), json!({})), "");
        assert_eq!(why(asking("4500m"), json!({})), "0/1 nodes are available: 1 Insufficient cpu.");
        let other = json!({ "spec": asking("1"), "metadata": {} });
        let mut other: Pod = serde_json::from_value(other).unwrap();
        other.spec.as_mut().unwrap().node_name = Some("n".into());
        let placed = [Arc::new(other)];
        assert!(choose(&spec(asking("3500m")), &[node(json!({}))], &placed).is_err());
        assert!(choose(&spec(asking("3")), &[node(json!({}))], &placed).is_ok());
    }

    #[test]
    fn amounts_are_exact_in_every_notation() {
        let containers = |amounts: [&str; 3]| {
            let container = |cpu: &str| json!({ "name": "c", "resources": { "requests": { "cpu": cpu } } });
            json!({ "containers": amounts.map(container) })
        };
        let insufficient = "0/1 nodes are available: 1 Insufficient cpu.";
        assert_eq!(why(containers(["3900m", "0.0999999", "100n"]), json!({})), "");
        assert_eq!(why(containers(["3900m", "0.0999999", "101n"]), json!({})), insufficient);
        let memory = |amount: &str| json!({ "containers": [{ "name": "c", "resources": { "requests": { "memory": amount } } }] });
        assert_eq!(why(memory("8589934592"), json!({})), "");
        assert_eq!(why(memory("8589934593"), json!({})), "0/1 nodes are available: 1 Insufficient memory.");
        assert_eq!(why(memory("8e9"), json!({})), "");
    }
}
