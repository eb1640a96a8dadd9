//! What the scheduler knows of nodes and of the pods on them, kept up to date pod by pod.

use crate::{
    owner, pod,
    resources::{self, Amounts, add, subtract},
};
use flyball::Key;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Affinity, Node, Pod, PodSpec};
use kube::ResourceExt;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

/// Nodes, and the pods that are placed or wait.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) nodes: BTreeMap<String, NodeState>,
    pub(super) pods: HashMap<Key, Placed>,
    /// Pods with a required anti-affinity, which later pods have to respect.
    pub(super) repelling: BTreeSet<Key>,
    /// Pods that fit nowhere for now.
    pub(super) waiting: BTreeSet<Key>,
    /// Pods that wait for others to leave a node, with the node and their priority.
    pub(super) nominated: BTreeMap<Key, (String, i32, Amounts)>,
}

/// A node, and what is placed on it. A node that is gone may still have pods.
#[derive(Debug, Default)]
pub(super) struct NodeState {
    pub(super) node: Option<Arc<Node>>,
    pub(super) allocatable: Amounts,
    pub(super) pods: BTreeSet<Key>,
    pub(super) requested: Amounts,
}

/// What the scheduler remembers of a pod on a node.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    pub(super) uid: Option<String>,
    pub(super) node: String,
    pub(super) namespace: String,
    pub(super) labels: BTreeMap<String, String>,
    /// The uid of its controller.
    pub(super) owner: Option<String>,
    pub(super) requests: Amounts,
    pub(super) ports: Vec<HostPort>,
    pub(super) priority: i32,
    pub(super) affinity: Option<Affinity>,
    pub(super) terminating: bool,
    pub(super) started: Option<Timestamp>,
}

/// Protocol, address and port that a pod takes on its node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HostPort {
    protocol: String,
    address: String,
    port: i32,
}

impl HostPort {
    /// Whether both cannot be on one node.
    pub(super) fn conflicts(&self, other: &HostPort) -> bool {
        let any = |address: &str| matches!(address, "" | "0.0.0.0");
        self.port == other.port
            && self.protocol == other.protocol
            && (any(&self.address) || any(&other.address) || self.address == other.address)
    }
}

impl Placed {
    /// A pod as it is placed on a node.
    pub(super) fn of(pod: &Pod, node: &str) -> Placed {
        let empty = PodSpec::default();
        let spec = pod.spec.as_ref().unwrap_or(&empty);
        Placed {
            uid: pod.uid(),
            node: node.into(),
            namespace: pod.namespace().unwrap_or_default(),
            labels: pod.labels().clone(),
            owner: owner::controller(&pod.metadata).map(|owner| owner.uid.clone()),
            requests: resources::requests(spec),
            ports: host_ports(spec),
            priority: spec.priority.unwrap_or_default(),
            affinity: spec.affinity.clone(),
            terminating: pod.metadata.deletion_timestamp.is_some(),
            started: pod.status.as_ref().and_then(|status| status.start_time.as_ref()).map(|time| time.0),
        }
    }

    fn repels(&self) -> bool {
        let anti = self.affinity.as_ref().and_then(|affinity| affinity.pod_anti_affinity.as_ref());
        anti.is_some_and(|anti| {
            let required = &anti.required_during_scheduling_ignored_during_execution;
            required.as_ref().is_some_and(|terms| !terms.is_empty())
        })
    }
}

/// The ports of the node that a pod's containers take.
pub(super) fn host_ports(spec: &PodSpec) -> Vec<HostPort> {
    let containers = spec.containers.iter().chain(spec.init_containers.iter().flatten());
    let ports = containers.flat_map(|container| container.ports.iter().flatten());
    let taken = ports.filter_map(|port| {
        Some(HostPort {
            protocol: port.protocol.clone().unwrap_or_else(|| "TCP".into()),
            address: port.host_ip.clone().unwrap_or_default(),
            port: port.host_port.filter(|port| *port > 0)?,
        })
    });
    taken.collect()
}

impl State {
    /// Takes note of a node, new or changed.
    pub(super) fn put_node(&mut self, node: &Arc<Node>) {
        let info = self.nodes.entry(node.name_any()).or_default();
        info.allocatable = resources::amounts(node.status.as_ref().and_then(|status| status.allocatable.as_ref()));
        info.node = Some(node.clone());
    }

    /// Forgets a node.
    pub(super) fn remove_node(&mut self, name: &str) {
        if let Some(info) = self.nodes.get_mut(name) {
            info.node = None;
            if info.pods.is_empty() {
                self.nodes.remove(name);
            }
        }
    }

    /// Takes note of a pod; says whether it has left room that another may take.
    pub(super) fn observe(&mut self, pod: &Pod) -> bool {
        let key = Key::of(pod);
        match pod::node(pod).filter(|_| !pod::has_ended(pod)) {
            Some(node) => {
                let same = |known: &Placed| known.uid == pod.metadata.uid && known.labels == *pod.labels();
                if !self.pods.get(&key).is_some_and(same) {
                    self.remove(&key);
                    self.place(key, Placed::of(pod, node));
                } else if let Some(known) = self.pods.get_mut(&key) {
                    known.terminating = pod.metadata.deletion_timestamp.is_some();
                }
                false
            }
            None => {
                let known = self.pods.get(&key);
                // A pod that this scheduler has just bound may come without its node from an older read.
                let left = known.is_some_and(|known| pod::has_ended(pod) || known.uid != pod.metadata.uid);
                left && self.remove(&key)
            }
        }
    }

    /// Places a pod on a node.
    pub(super) fn place(&mut self, key: Key, placed: Placed) {
        let info = self.nodes.entry(placed.node.clone()).or_default();
        add(&mut info.requested, &placed.requests);
        info.pods.insert(key.clone());
        if placed.repels() {
            self.repelling.insert(key.clone());
        }
        self.waiting.remove(&key);
        self.nominated.remove(&key);
        self.pods.insert(key, placed);
    }

    /// Forgets a pod; says whether it was placed.
    pub(super) fn remove(&mut self, key: &Key) -> bool {
        self.waiting.remove(key);
        self.nominated.remove(key);
        self.repelling.remove(key);
        let Some(placed) = self.pods.remove(key) else {
            return false;
        };
        if let Some(info) = self.nodes.get_mut(&placed.node) {
            subtract(&mut info.requested, &placed.requests);
            info.pods.remove(key);
            if info.pods.is_empty() && info.node.is_none() {
                self.nodes.remove(&placed.node);
            }
        }
        true
    }

    /// The nodes that exist.
    pub(super) fn live(&self) -> impl Iterator<Item = (&NodeState, &Arc<Node>)> {
        self.nodes.values().filter_map(|info| Some((info, info.node.as_ref()?)))
    }

    /// The pods of a node.
    pub(super) fn pods_of<'a>(&'a self, info: &'a NodeState) -> impl Iterator<Item = &'a Placed> {
        info.pods.iter().filter_map(|key| self.pods.get(key))
    }
}
