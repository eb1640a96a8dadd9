//! The simulated node: the object that stands for it. What runs on it is the kubelet's part.

use crate::refusal;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

/// The name of the node.
pub(crate) const NAME: &str = "flyball";
/// The node's address, and that of pods in its network.
pub(crate) const ADDRESS: &str = "192.168.0.1";
/// The network from which pods get their addresses.
pub(crate) const POD_NETWORK: &str = "10.244.0.0/16";

const NOT_READY: &str = "node.kubernetes.io/not-ready";

/// Makes the node known and ready, or ready again after a restart.
pub(crate) async fn register(client: Client, now: Timestamp) -> kube::Result<()> {
    let nodes: Api<Node> = Api::all(client);
    let node = serde_json::from_value(node()).expect("a node is one");
    match nodes.create(&PostParams::default(), &node).await {
        Err(error) if !refusal::already_exists(&error) => return Err(error),
        _ => {}
    }
    let known = nodes.get(NAME).await?;
    let conditions = known.status.and_then(|status| status.conditions).unwrap_or_default();
    let ready = conditions
        .into_iter()
        .find(|condition| condition.type_ == "Ready" && condition.status == "True");
    let since = ready.and_then(|ready| ready.last_transition_time).map_or(now, |since| since.0);
    let status = Patch::Merge(json!({ "status": status(since, now) }));
    nodes.patch_status(NAME, &PatchParams::default(), &status).await?;
    // The API server keeps pods from a node that has not said yet that it is ready.
    let mut taints = known.spec.and_then(|spec| spec.taints).unwrap_or_default();
    if taints.iter().any(|taint| taint.key == NOT_READY) {
        taints.retain(|taint| taint.key != NOT_READY);
        let patch = Patch::Merge(json!({ "spec": { "taints": taints } }));
        nodes.patch(NAME, &PatchParams::default(), &patch).await?;
    }
    Ok(())
}

fn node() -> Value {
    json!({
        "metadata": {
            "name": NAME,
            "labels": {
                "beta.kubernetes.io/arch": architecture(),
                "beta.kubernetes.io/os": "linux",
                "kubernetes.io/arch": architecture(),
                "kubernetes.io/hostname": NAME,
                "kubernetes.io/os": "linux",
            },
        },
        "spec": { "podCIDR": POD_NETWORK, "podCIDRs": [POD_NETWORK], "providerID": format!("flyball://{NAME}") },
    })
}

/// Roomy: what is to be tried out should not fail for want of space.
fn status(since: Timestamp, now: Timestamp) -> Value {
    let resources = json!({
        "cpu": "256", "memory": "4Ti", "ephemeral-storage": "100Ti", "hugepages-1Gi": "0", "hugepages-2Mi": "0",
        "pods": "4096",
    });
    let condition = |type_: &str, status: &str, reason: &str, message: &str| {
        let (heartbeat, transition) = (seconds(now), seconds(since));
        json!({
            "type": type_, "status": status, "reason": reason, "message": message,
            "lastHeartbeatTime": heartbeat, "lastTransitionTime": transition,
        })
    };
    json!({
        "capacity": resources,
        "allocatable": resources,
        "conditions": [
            condition("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
            condition("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
            condition("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
            condition("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
        ],
        "addresses": [{ "type": "InternalIP", "address": ADDRESS }, { "type": "Hostname", "address": NAME }],
        "daemonEndpoints": { "kubeletEndpoint": { "Port": 10250 } },
        "nodeInfo": {
            "architecture": architecture(), "operatingSystem": "linux", "osImage": "Flyball", "kernelVersion": "simulated",
            "containerRuntimeVersion": concat!("flyball://", env!("CARGO_PKG_VERSION")), "kubeletVersion": "v1.36.4",
            "kubeProxyVersion": "", "bootID": "", "machineID": NAME, "systemUUID": NAME,
        },
    })
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
