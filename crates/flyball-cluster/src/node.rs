//! Simulated nodes as values, and what is known of each while the cluster runs. What runs on them is the kubelet's part.

use crate::behaviour::Behaviours;
use flyball::Trigger;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    net::Ipv4Addr,
    sync::{Arc, Mutex, MutexGuard},
};

/// The name of the only node of a cluster that was not told its nodes.
pub(crate) const DEFAULT_NAME: &str = "flyball";

/// A node to simulate.
///
/// ```
/// # use flyball_cluster::SimulatedNode;
/// let node = SimulatedNode::new("gpu-1").zone("eu-1a").label("gpu", "yes").taint("gpu", "yes", "NoSchedule").capacity("cpu", "8");
/// ```
#[derive(Clone, Debug)]
pub struct SimulatedNode {
    pub(crate) name: String,
    labels: BTreeMap<String, String>,
    taints: Vec<Value>,
    capacity: BTreeMap<String, String>,
}

impl SimulatedNode {
    /// A node with much room: 256 CPUs, 4 TiB of memory, 4,096 pods.
    pub fn new(name: impl Into<String>) -> SimulatedNode {
        let name = name.into();
        let architecture = architecture();
        let labels = [
            ("beta.kubernetes.io/arch", architecture),
            ("beta.kubernetes.io/os", "linux"),
            ("kubernetes.io/arch", architecture),
            ("kubernetes.io/hostname", &name),
            ("kubernetes.io/os", "linux"),
        ];
        let capacity = [
            ("cpu", "256"),
            ("memory", "4Ti"),
            ("ephemeral-storage", "100Ti"),
            ("hugepages-1Gi", "0"),
            ("hugepages-2Mi", "0"),
            ("pods", "4096"),
        ];
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        SimulatedNode {
            labels: labels.map(owned).into(),
            capacity: capacity.map(owned).into(),
            taints: Vec::new(),
            name,
        }
    }

    /// Adds a label.
    pub fn label(mut self, name: impl Into<String>, value: impl Into<String>) -> SimulatedNode {
        self.labels.insert(name.into(), value.into());
        self
    }

    /// Says which zone the node is in: `topology.kubernetes.io/zone`.
    pub fn zone(self, zone: impl Into<String>) -> SimulatedNode {
        self.label("topology.kubernetes.io/zone", zone)
    }

    /// Adds a taint that the node registers with.
    pub fn taint(mut self, key: &str, value: &str, effect: &str) -> SimulatedNode {
        self.taints.push(json!({ "key": key, "value": value, "effect": effect }));
        self
    }

    /// Sets how much of a resource the node has.
    pub fn capacity(mut self, resource: impl Into<String>, quantity: impl Into<String>) -> SimulatedNode {
        self.capacity.insert(resource.into(), quantity.into());
        self
    }

    /// The object that the node registers.
    pub(crate) fn object(&self, network: &Network) -> Node {
        let node = json!({
            "metadata": { "name": self.name, "labels": self.labels },
            "spec": {
                "podCIDR": network.cidr(),
                "podCIDRs": [network.cidr()],
                "providerID": format!("flyball://{}", self.name),
                "taints": self.taints,
            },
        });
        serde_json::from_value(node).expect("a node is one")
    }

    /// The status of a node that is well. `since` is when it became ready.
    pub(crate) fn status(&self, network: &Network, since: Timestamp, now: Timestamp) -> Value {
        let condition = |type_: &str, status: &str, reason: &str, message: &str| {
            let (heartbeat, transition) = (seconds(now), seconds(since));
            json!({
                "type": type_, "status": status, "reason": reason, "message": message,
                "lastHeartbeatTime": heartbeat, "lastTransitionTime": transition,
            })
        };
        json!({
            "capacity": self.capacity,
            "allocatable": self.capacity,
            "conditions": [
                condition("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
                condition("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
                condition("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
                condition("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
            ],
            "addresses": [
                { "type": "InternalIP", "address": network.address.to_string() },
                { "type": "Hostname", "address": self.name },
            ],
            "daemonEndpoints": { "kubeletEndpoint": { "Port": 10250 } },
            "nodeInfo": {
                "architecture": architecture(), "operatingSystem": "linux", "osImage": "Flyball",
                "kernelVersion": "simulated", "kubeletVersion": "v1.36.4", "kubeProxyVersion": "", "bootID": "",
                "containerRuntimeVersion": concat!("flyball://", env!("CARGO_PKG_VERSION")),
                "machineID": self.name, "systemUUID": self.name,
            },
        })
    }
}

/// The addresses of a node and its pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Network {
    index: u8,
    /// The node's own address.
    pub(crate) address: Ipv4Addr,
}

impl Network {
    /// The network of the node of that index. There are 256 of 65,536 addresses each.
    pub(crate) fn of(index: usize) -> Network {
        let index = (index % 256) as u8;
        Network { index, address: Ipv4Addr::new(192, 168, index, 1) }
    }

    fn cidr(&self) -> String {
        format!("10.{}.0.0/16", self.second())
    }

    /// A pod's address by its number.
    pub(crate) fn pod(&self, number: u16) -> Ipv4Addr {
        let [high, low] = number.to_be_bytes();
        Ipv4Addr::new(10, self.second(), high, low)
    }

    /// The first node's network is 10.244.0.0/16, as kubeadm's is; services are in 10.96.0.0/12.
    fn second(&self) -> u8 {
        244_u8.wrapping_sub(self.index)
    }
}

/// Whether a node does its work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Condition {
    #[default]
    Up,
    /// Its machine is off: its containers are gone.
    Stopped,
    /// Its containers run on, but the API server cannot be reached.
    CutOff,
}

/// The nodes of a running cluster.
#[derive(Clone)]
pub(crate) struct Nodes {
    nodes: Arc<BTreeMap<String, (SimulatedNode, Network)>>,
    conditions: Arc<Mutex<BTreeMap<String, Condition>>>,
    pub(crate) behaviours: Behaviours,
    /// Whether nodes renew their Leases.
    pub(crate) heartbeats: bool,
    /// Reconciles everything of all nodes when one comes back.
    pub(crate) back: Trigger,
}

impl Nodes {
    pub(crate) fn new(nodes: Vec<SimulatedNode>, behaviours: Behaviours, heartbeats: bool) -> Nodes {
        let nodes = nodes.into_iter().enumerate();
        Nodes {
            nodes: Arc::new(nodes.map(|(index, node)| (node.name.clone(), (node, Network::of(index)))).collect()),
            conditions: Arc::default(),
            behaviours,
            heartbeats,
            back: Trigger::new("a node is back"),
        }
    }

    /// The node of that name, if it is one of these.
    pub(crate) fn get(&self, name: &str) -> Option<&(SimulatedNode, Network)> {
        self.nodes.get(name)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &(SimulatedNode, Network)> {
        self.nodes.values()
    }

    pub(crate) fn condition(&self, name: &str) -> Condition {
        self.lock().get(name).copied().unwrap_or_default()
    }

    /// Sets what a node does from now on.
    pub(crate) fn set(&self, name: &str, condition: Condition) {
        self.lock().insert(name.into(), condition);
        self.back.reconcile_all();
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Condition>> {
        self.conditions.lock().expect("nothing panics under this lock")
    }
}

/// The machine's architecture, as Go names it.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
