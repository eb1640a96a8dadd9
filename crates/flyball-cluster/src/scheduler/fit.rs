//! Filters and scores nodes: where a pod may run, and where it runs best.

use super::{
    node_affinity,
    pod_affinity::Surroundings,
    state::{HostPort, NodeState, State, host_ports},
    volumes::Volumes,
};
use crate::{
    owner,
    resources::{self, Amounts, ONE},
};
use flyball::Key;
use k8s_openapi::api::core::v1::{Node, Pod, PodSpec};
use kube::ResourceExt;
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// A pod that is to be placed, with everything that is computed once for all nodes.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) key: Key,
    pub(super) spec: PodSpec,
    pub(super) amounts: Amounts,
    owner: Option<String>,
    ports: Vec<HostPort>,
    surroundings: Surroundings,
    volumes: Volumes,
}

/// Why a node does not take a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Obstacle {
    pub(super) reasons: Vec<String>,
    /// Whether the node would take it if other pods left.
    pub(super) resolvable: bool,
}

/// Why no node takes a pod.
#[derive(Debug)]
pub(super) struct Unfit {
    pub(super) message: String,
    /// The nodes that would take it if other pods left.
    pub(super) resolvable: Vec<String>,
    pub(super) nodes: usize,
}

impl Request {
    /// Prepares the placement of a pod.
    pub(super) fn of(pod: &Pod, volumes: Volumes, state: &State) -> Request {
        let spec = pod.spec.clone().unwrap_or_default();
        Request {
            key: Key::of(pod),
            amounts: resources::requests(&spec),
            owner: owner::controller(&pod.metadata).map(|owner| owner.uid.clone()),
            ports: host_ports(&spec),
            surroundings: Surroundings::of(pod, state),
            volumes,
            spec,
        }
    }

    /// The best node for the pod, or why there is none.
    pub(super) fn choose(&self, state: &State) -> Result<Arc<Node>, Unfit> {
        let (mut fitting, mut reasons, mut resolvable, mut nodes) = (Vec::new(), BTreeMap::new(), Vec::new(), 0);
        for (info, node) in state.live() {
            nodes += 1;
            match self.obstacle(info, node, state, &BTreeSet::new()) {
                None => fitting.push((info, node)),
                Some(obstacle) => {
                    obstacle.reasons.into_iter().for_each(|reason| *reasons.entry(reason).or_insert(0) += 1);
                    resolvable.extend(obstacle.resolvable.then(|| node.name_any()));
                }
            }
        }
        match self.best(&fitting, state) {
            Some(node) => Ok(node),
            None => Err(Unfit { message: message(nodes, &reasons), resolvable, nodes }),
        }
    }

    /// Why a node does not take the pod even without the pods of `without`: what the first filter says that refuses it.
    // pkg/scheduler/apis/config/v1/default_plugins.go gives the order
    pub(super) fn obstacle(
        &self,
        info: &NodeState,
        node: &Node,
        state: &State,
        without: &BTreeSet<Key>,
    ) -> Option<Obstacle> {
        let never = |reason: &str| Some(Obstacle { reasons: vec![reason.into()], resolvable: false });
        let unschedulable = node.spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or_default();
        if unschedulable && !node_affinity::tolerates_unschedulable(&self.spec) {
            return never("node(s) were unschedulable");
        }
        if !node_affinity::tolerates(&self.spec, node) {
            return never("node(s) had untolerated taint(s)");
        }
        if !node_affinity::is_selected(&self.spec, node) {
            return never("node(s) didn't match Pod's node affinity/selector");
        }
        let later = |reasons: Vec<String>| Some(Obstacle { reasons, resolvable: true });
        let staying = || {
            info.pods
                .iter()
                .filter(|key| !without.contains(key))
                .filter_map(|key| state.pods.get(key))
        };
        if self
            .ports
            .iter()
            .any(|port| staying().any(|placed| placed.ports.iter().any(|taken| taken.conflicts(port))))
        {
            return later(vec!["node(s) didn't have free ports for the requested pod ports".into()]);
        }
        let lacking = self.shortages(info, state, without);
        if !lacking.is_empty() {
            return later(lacking);
        }
        if let Some(reason) = self.volumes.obstacle(node) {
            return never(reason);
        }
        self.surroundings.obstacle(node).and_then(|reason| later(vec![reason.into()]))
    }

    /// What a node has too little of.
    // pkg/scheduler/framework/plugins/noderesources/fit.go, fitsRequest
    fn shortages(&self, info: &NodeState, state: &State, without: &BTreeSet<Key>) -> Vec<String> {
        let mut used = info.requested.clone();
        let leaving = info.pods.iter().filter(|key| without.contains(key)).filter_map(|key| state.pods.get(key));
        leaving.for_each(|placed| resources::subtract(&mut used, &placed.requests));
        let mut count = info.pods.iter().filter(|key| !without.contains(key)).count() as i128;
        let priority = self.spec.priority.unwrap_or_default();
        let name = info.node.as_ref().map(|node| node.name_any()).unwrap_or_default();
        for (key, (node, their_priority, amounts)) in &state.nominated {
            if *key != self.key && *node == name && *their_priority >= priority {
                resources::add(&mut used, amounts);
                count += 1;
            }
        }
        let mut lacking = Vec::new();
        if let Some(most) = info.allocatable.get("pods")
            && (count + 1) * ONE > *most
        {
            lacking.push("Too many pods".to_owned());
        }
        let get = |amounts: &Amounts, name: &String| amounts.get(name).copied().unwrap_or_default();
        let short = self
            .amounts
            .iter()
            .filter(|(name, asked)| *asked + get(&used, name) > get(&info.allocatable, name));
        lacking.extend(short.map(|(name, _)| format!("Insufficient {name}")));
        lacking
    }

    /// The node with the highest score; of several the one with the fewest pods.
    fn best(&self, fitting: &[(&NodeState, &Arc<Node>)], state: &State) -> Option<Arc<Node>> {
        let of = |score: fn(&Request, &NodeState, &Node) -> i64| -> Vec<i64> {
            fitting.iter().map(|(info, node)| score(self, info, node)).collect()
        };
        let mut scores = vec![0; fitting.len()];
        let mut weigh = |values: Vec<i64>, weight: i64| {
            scores.iter_mut().zip(values).for_each(|(score, value)| *score += value * weight);
        };
        weigh(reversed(of(|it, _, node| node_affinity::disliked_taints(&it.spec, node))), 3);
        weigh(normalized(of(|it, _, node| node_affinity::preference(&it.spec, node))), 2);
        weigh(of(|it, info, _| it.least_allocated(info)), 1);
        weigh(of(|it, info, _| it.balanced(info)), 1);
        weigh(normalized(of(|it, _, node| it.surroundings.preference(node))), 2);
        match self.surroundings.is_spread() {
            true => weigh(reversed(of(|it, _, node| it.surroundings.crowd(node))), 2),
            false => weigh(reversed(fitting.iter().map(|(info, _)| self.siblings(info, state)).collect()), 2),
        }
        let places = fitting.iter().zip(scores);
        let best = places.min_by_key(|((info, node), score)| (Reverse(*score), info.pods.len(), node.name_any()));
        best.map(|((_, node), _)| Arc::clone(node))
    }

    /// How many pods of the same controller a node has, which are spread if the pod does not say how.
    // pkg/scheduler/framework/plugins/podtopologyspread/plugin.go, systemDefaultConstraints
    fn siblings(&self, info: &NodeState, state: &State) -> i64 {
        let same = state.pods_of(info).filter(|placed| self.owner.is_some() && placed.owner == self.owner);
        same.count() as i64
    }

    /// The share of cpu and memory that would be left, of 100.
    // pkg/scheduler/framework/plugins/noderesources/least_allocated.go
    fn least_allocated(&self, info: &NodeState) -> i64 {
        let left = self.shares(info).map(|share| ((1.0 - share).max(0.0) * 100.0) as i64);
        left.iter().sum::<i64>() / 2
    }

    /// How evenly cpu and memory would be used, of 100.
    // pkg/scheduler/framework/plugins/noderesources/balanced_allocation.go
    fn balanced(&self, info: &NodeState) -> i64 {
        let [cpu, memory] = self.shares(info).map(|share| share.min(1.0));
        ((1.0 - (cpu - memory).abs() / 2.0) * 100.0) as i64
    }

    /// The shares of cpu and memory that would be used; a pod that asks for nothing counts as a small one.
    fn shares(&self, info: &NodeState) -> [f64; 2] {
        let small = [("cpu", ONE / 10), ("memory", 200 * 1024 * 1024 * ONE)];
        small.map(|(name, least)| {
            let get = |amounts: &Amounts| amounts.get(name).copied().unwrap_or_default();
            let asked = get(&self.amounts).max(if self.amounts.contains_key(name) { 0 } else { least });
            let unsaid = info.pods.len() as i128 * least;
            let used = get(&info.requested).max(unsaid);
            match get(&info.allocatable) {
                0 => 1.0,
                all => (used + asked) as f64 / all as f64,
            }
        })
    }
}

/// `0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable.`
fn message(nodes: usize, reasons: &BTreeMap<String, i32>) -> String {
    if nodes == 0 {
        return "no nodes available to schedule pods".into();
    }
    let mut reasons: Vec<_> = reasons.iter().map(|(reason, nodes)| format!("{nodes} {reason}")).collect();
    reasons.sort();
    format!("0/{nodes} nodes are available: {}.", reasons.join(", "))
}

/// Values as shares of the greatest, of 100.
fn normalized(values: Vec<i64>) -> Vec<i64> {
    let (least, most) = (
        values.iter().min().copied().unwrap_or(0).min(0),
        values.iter().max().copied().unwrap_or(0),
    );
    let range = most - least;
    let share = |value: i64| if range == 0 { 0 } else { (value - least) * 100 / range };
    values.into_iter().map(share).collect()
}

fn reversed(values: Vec<i64>) -> Vec<i64> {
    normalized(values).into_iter().map(|value| 100 - value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::state::Placed;
    use serde_json::{Value, json};

    fn node(name: &str, spec: Value) -> Arc<Node> {
        let allocatable = json!({ "cpu": "4", "memory": "8Gi", "pods": "10" });
        let labels = json!({ "disk": "ssd", "cores": "4", "kubernetes.io/hostname": name, "zone": &name[..1] });
        let metadata = json!({ "name": name, "labels": labels });
        let node = json!({ "metadata": metadata, "spec": spec, "status": { "allocatable": allocatable } });
        Arc::new(serde_json::from_value(node).unwrap())
    }

    fn pod(name: &str, spec: Value) -> Pod {
        let mut full = json!({ "containers": [] });
        full.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        let metadata = json!({ "name": name, "namespace": "default", "labels": { "app": "web" } });
        serde_json::from_value(json!({ "metadata": metadata, "spec": full })).unwrap()
    }

    fn cluster(nodes: &[Arc<Node>], placed: &[(&Pod, &str)]) -> State {
        let mut state = State::default();
        nodes.iter().for_each(|node| state.put_node(node));
        for (pod, node) in placed {
            state.place(Key::of(*pod), Placed::of(pod, node));
        }
        state
    }

    fn chosen(spec: Value, state: &State) -> String {
        let request = Request::of(&pod("new", spec), Volumes::default(), state);
        match request.choose(state) {
            Ok(node) => node.name_any(),
            Err(unfit) => unfit.message,
        }
    }

    fn asking(cpu: &str) -> Value {
        json!({ "containers": [{ "name": "c", "resources": { "requests": { "cpu": cpu } } }] })
    }

    #[test]
    fn a_pod_goes_where_its_selector_points() {
        let state = cluster(&[node("n", json!({}))], &[]);
        let refused = "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.";
        assert_eq!(chosen(json!({ "nodeSelector": { "disk": "ssd" } }), &state), "n");
        assert_eq!(chosen(json!({ "nodeSelector": { "disk": "tape" } }), &state), refused);
        let requiring = |key: &str, operator: &str, value: &str| {
            let requirement = json!({ "key": key, "operator": operator, "values": [value] });
            let terms = json!([{ "matchExpressions": [requirement] }]);
            json!({ "affinity": { "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": terms } } } })
        };
        assert_eq!(chosen(requiring("cores", "Gt", "3"), &state), "n");
        assert_eq!(chosen(requiring("disk", "NotIn", "ssd"), &state), refused);
    }

    #[test]
    fn a_taint_keeps_pods_away_that_do_not_tolerate_it() {
        let tainted = json!({ "taints": [{ "key": "gpu", "value": "yes", "effect": "NoSchedule" }] });
        let state = cluster(&[node("n", tainted)], &[]);
        assert_eq!(chosen(json!({}), &state), "0/1 nodes are available: 1 node(s) had untolerated taint(s).");
        assert_eq!(chosen(json!({ "tolerations": [{ "key": "gpu", "operator": "Exists" }] }), &state), "n");
        let cordoned = cluster(&[node("n", json!({ "unschedulable": true }))], &[]);
        assert_eq!(chosen(json!({}), &cordoned), "0/1 nodes are available: 1 node(s) were unschedulable.");
    }

    #[test]
    fn a_pod_needs_room_beside_the_others() {
        let other = pod("other", asking("1"));
        let state = cluster(&[node("n", json!({}))], &[(&other, "n")]);
        assert_eq!(chosen(asking("3"), &state), "n");
        assert_eq!(chosen(asking("3500m"), &state), "0/1 nodes are available: 1 Insufficient cpu.");
        let pods: Vec<_> = (0..10).map(|index| pod(&index.to_string(), json!({}))).collect();
        let placed: Vec<_> = pods.iter().map(|pod| (pod, "n")).collect();
        let full = cluster(&[node("n", json!({}))], &placed);
        assert_eq!(chosen(json!({}), &full), "0/1 nodes are available: 1 Too many pods.");
    }

    #[test]
    fn room_that_a_pod_left_is_free_again() {
        let other = pod("other", asking("3"));
        let mut state = cluster(&[node("n", json!({}))], &[(&other, "n")]);
        assert!(state.remove(&Key::of(&other)));
        assert_eq!(chosen(asking("4"), &state), "n");
    }

    #[test]
    fn pods_go_to_the_emptier_node_and_where_they_prefer() {
        let other = pod("other", asking("2"));
        let nodes = [node("a", json!({})), node("b", json!({}))];
        let state = cluster(&nodes, &[(&other, "a")]);
        assert_eq!(chosen(asking("1"), &state), "b");
        let preferring = json!({ "affinity": { "nodeAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": [
            { "weight": 100, "preference": { "matchFields": [{ "key": "metadata.name", "operator": "In", "values": ["a"] }] } },
        ] } } });
        assert_eq!(chosen(preferring, &state), "a");
    }

    #[test]
    fn pods_keep_apart_and_together_as_they_ask() {
        let term = json!([{ "labelSelector": { "matchLabels": { "app": "web" } }, "topologyKey": "zone" }]);
        let far =
            json!({ "affinity": { "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": term } } });
        let near = json!({ "affinity": { "podAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": term } } });
        let other = pod("other", json!({}));
        let nodes = [node("a1", json!({})), node("a2", json!({})), node("b1", json!({}))];
        let state = cluster(&nodes, &[(&other, "a1")]);
        assert_eq!(chosen(far.clone(), &state), "b1");
        assert!(chosen(near.clone(), &state).starts_with('a'));
        assert_eq!(chosen(near, &cluster(&nodes, &[])), "a1", "the first of its group goes anywhere");
        let repelling = pod("other", far.clone());
        let state = cluster(&nodes[..2], &[(&repelling, "a1")]);
        let refused = "0/2 nodes are available: 2 node(s) didn't satisfy existing pods anti-affinity rules.";
        assert_eq!(chosen(json!({}), &state), refused);
        assert_eq!(
            chosen(far, &state),
            "0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules."
        );
    }

    #[test]
    fn pods_are_spread_over_zones() {
        let spread = json!({ "topologySpreadConstraints": [{ "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": { "matchLabels": { "app": "web" } } }] });
        let others: Vec<_> = (0..2).map(|index| pod(&index.to_string(), json!({}))).collect();
        let nodes = [node("a", json!({})), node("b", json!({}))];
        let state = cluster(&nodes, &[(&others[0], "a")]);
        assert_eq!(chosen(spread.clone(), &state), "b");
        let tainted = [nodes[0].clone(), node("b", json!({ "unschedulable": true }))];
        let state = cluster(&tainted, &[(&others[0], "a")]);
        let refused = "0/2 nodes are available: 1 node(s) didn't match pod topology spread constraints, 1 node(s) were unschedulable.";
        assert_eq!(chosen(spread, &state), refused);
    }

    #[test]
    fn two_pods_cannot_have_one_port_of_a_node() {
        let port = |protocol: &str| {
            let ports = json!([{ "containerPort": 80, "hostPort": 80, "protocol": protocol }]);
            json!({ "containers": [{ "name": "c", "ports": ports }] })
        };
        let other = pod("other", port("TCP"));
        let state = cluster(&[node("n", json!({}))], &[(&other, "n")]);
        let refused = "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports.";
        assert_eq!(chosen(port("TCP"), &state), refused);
        assert_eq!(chosen(port("UDP"), &state), "n");
    }
}
