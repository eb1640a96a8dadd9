//! Makes simulated nodes known, and keeps saying that they are well.

use crate::{
    node::{Condition, Network, Nodes, SimulatedNode},
    refusal,
};
use flyball::{Action, Context, Controller, Result};
use flyball_host::clock::Clock;
use jiff::Timestamp;
use k8s_openapi::api::{coordination::v1::Lease, core::v1::Node};
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;
use std::{sync::Arc, time::Duration};

/// How often a node renews its Lease, and how long that holds.
const RENEWAL: Duration = Duration::from_secs(10);
const LEASE_SECONDS: i32 = 40;
const NAMESPACE: &str = "kube-node-lease";
const NOT_READY: &str = "node.kubernetes.io/not-ready";

/// The controller that renews the Leases of nodes, and their status after they were not well.
pub(super) fn controller(nodes: &Nodes, clock: Clock) -> Controller<Node> {
    let back = nodes.back.clone();
    let nodes = nodes.clone();
    Controller::new(move |node: Arc<Node>, ctx: Context| {
        let nodes = nodes.clone();
        async move { beat(&node, &nodes, clock, &ctx).await }
    })
    .named("node-heartbeat")
    .triggered_by(&back)
}

async fn beat(node: &Node, nodes: &Nodes, clock: Clock, ctx: &Context) -> Result {
    let Some((simulated, network)) = nodes.get(&node.name_any()) else {
        return Ok(Action::await_change());
    };
    if nodes.condition(&simulated.name) != Condition::Up {
        return Ok(Action::await_change());
    }
    let now = clock.now();
    if !is_ready(node) {
        report(node, simulated, network, now, &ctx.client()).await?;
    }
    if !nodes.heartbeats {
        return Ok(Action::await_change());
    }
    renew(node, now, &ctx.client()).await?;
    Ok(Action::requeue_after(RENEWAL))
}

/// Makes a node known and ready, or ready again after a restart.
pub(crate) async fn register(
    simulated: &SimulatedNode,
    network: &Network,
    client: &Client,
    now: Timestamp,
) -> kube::Result<()> {
    let nodes: Api<Node> = Api::all(client.clone());
    match nodes.create(&PostParams::default(), &simulated.object(network)).await {
        Err(error) if !refusal::already_exists(&error) => return Err(error),
        _ => {}
    }
    let known = nodes.get(&simulated.name).await?;
    report(&known, simulated, network, now, client).await?;
    // The API server keeps pods from a node that has not said yet that it is ready.
    let mut taints = known.spec.and_then(|spec| spec.taints).unwrap_or_default();
    if taints.iter().any(|taint| taint.key == NOT_READY) {
        taints.retain(|taint| taint.key != NOT_READY);
        let patch = Patch::Merge(json!({ "spec": { "taints": taints } }));
        nodes.patch(&simulated.name, &PatchParams::default(), &patch).await?;
    }
    Ok(())
}

async fn report(
    node: &Node,
    simulated: &SimulatedNode,
    network: &Network,
    now: Timestamp,
    client: &Client,
) -> kube::Result<()> {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    let ready = conditions
        .into_iter()
        .flatten()
        .find(|condition| condition.type_ == "Ready" && condition.status == "True");
    let since = ready.and_then(|ready| ready.last_transition_time.as_ref()).map_or(now, |since| since.0);
    let status = Patch::Strategic(json!({ "status": simulated.status(network, since, now) }));
    let nodes: Api<Node> = Api::all(client.clone());
    nodes.patch_status(&simulated.name, &PatchParams::default(), &status).await?;
    Ok(())
}

fn is_ready(node: &Node) -> bool {
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions
        .into_iter()
        .any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

// pkg/kubelet/nodelease/controller.go
async fn renew(node: &Node, now: Timestamp, client: &Client) -> kube::Result<()> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), NAMESPACE);
    let name = node.name_any();
    let time = now.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string();
    let patch = Patch::Merge(json!({ "spec": { "renewTime": time } }));
    match leases.patch(&name, &PatchParams::default(), &patch).await {
        Err(error) if refusal::is_not_found(&error) => {
            let owner = json!([{ "apiVersion": "v1", "kind": "Node", "name": name, "uid": node.uid() }]);
            let lease = json!({
                "metadata": { "name": name, "namespace": NAMESPACE, "ownerReferences": owner },
                "spec": { "holderIdentity": name, "leaseDurationSeconds": LEASE_SECONDS, "renewTime": time },
            });
            let lease: Lease = serde_json::from_value(lease).expect("a Lease is one");
            leases.create(&PostParams::default(), &lease).await.map(drop)
        }
        renewed => renewed.map(drop),
    }
}
