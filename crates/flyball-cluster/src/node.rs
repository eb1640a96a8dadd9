//! The simulated node: the object that stands for it. What runs on it is the kubelet's part.

use crate::refusal;
use flyball::{Action, Context, Controller, Result};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Taint};
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use std::sync::Arc;

/// The name of the node.
pub(crate) const NAME: &str = "flyball";
/// The node's address, and that of pods in its network.
pub(crate) const ADDRESS: &str = "192.168.0.1";
/// The network from which pods get their addresses.
pub(crate) const POD_NETWORK: &str = "10.244.0.0/16";

/// What keeps pods from a node that is not ready; it has it from its creation.
const NOT_READY: &str = "node.kubernetes.io/not-ready";

/// The controller of nodes: lets pods onto a node once it is ready.
// pkg/controller/nodelifecycle/node_lifecycle_controller.go, doNoScheduleTaintingPass
pub(crate) fn controller() -> Controller {
    Controller::new(untaint)
}

async fn untaint(node: Arc<Node>, ctx: Context) -> Result {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    let ready = conditions.into_iter().flatten().any(|it| it.type_ == "Ready" && it.status == "True");
    let taints = node.spec.clone().and_then(|spec| spec.taints).unwrap_or_default();
    let (obsolete, taints): (Vec<Taint>, Vec<Taint>) = taints.into_iter().partition(|taint| taint.key == NOT_READY);
    if ready && !obsolete.is_empty() {
        let metadata = json!({ "uid": node.metadata.uid, "resourceVersion": node.metadata.resource_version });
        let patch = Patch::Merge(json!({ "metadata": metadata, "spec": { "taints": taints } }));
        Api::<Node>::all(ctx.client())
            .patch(&node.name_any(), &PatchParams::default(), &patch)
            .await?;
    }
    Ok(Action::await_change())
}

/// Makes the node known, or ready again after a restart.
pub(crate) async fn register(client: Client, now: Timestamp) -> Result<()> {
    let nodes: Api<Node> = Api::all(client);
    let node = serde_json::from_value(node())?;
    match nodes.create(&PostParams::default(), &node).await {
        Err(error) if !refusal::already_exists(&error) => return Err(error.into()),
        _ => {}
    }
    let known = nodes.get(NAME).await?.status.unwrap_or_default();
    let since = known.conditions.iter().flatten().find(|condition| condition.type_ == "Ready");
    let since = since.and_then(|ready| Some(ready.last_transition_time.as_ref()?.0));
    let status = json!({ "status": status(since.unwrap_or(now), now) });
    nodes.patch_status(NAME, &PatchParams::default(), &Patch::Merge(status)).await?;
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
