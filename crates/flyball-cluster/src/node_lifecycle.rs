//! Gives nodes up that are not heard of any more, and taints nodes by their conditions.

use crate::{
    lookup::{self, CHILDREN},
    pod, refusal,
};
use flyball::{Action, Context, Controller, Event, Key, Reconciler, Result};
use k8s_openapi::{
    api::{
        coordination::v1::Lease,
        core::v1::{Node, NodeCondition, Pod, Taint},
    },
    apimachinery::pkg::apis::meta::v1::{MicroTime, Time},
};
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::json;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::Instant;

/// Who a node's events are from.
const NAME: &str = "node-controller";
/// kube-controller-manager's `--node-monitor-grace-period`.
const GRACE_PERIOD: Duration = Duration::from_secs(50);
const LEASES: &str = "kube-node-lease";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
const NOT_READY: &str = "node.kubernetes.io/not-ready";

/// The controller of nodes. It judges those that have a Lease.
pub(crate) fn controller() -> Controller<Node> {
    Controller::new(Lifecycle::default())
        .named("node-lifecycle")
        .reads::<Lease>()
        .reads::<Pod>()
        .watches(|lease: Arc<Lease>, _| {
            let is_node = lease.namespace().as_deref() == Some(LEASES);
            is_node.then(|| Key::cluster(lease.name_any()))
        })
}

#[derive(Default)]
struct Lifecycle {
    /// The last renewal of each node's Lease, and when it was seen.
    renewals: Mutex<HashMap<String, (Option<MicroTime>, Instant)>>,
}

// pkg/controller/nodelifecycle/node_lifecycle_controller.go
impl Reconciler<Node> for Lifecycle {
    async fn reconcile(&self, node: Arc<Node>, ctx: Context) -> Result {
        let name = node.name_any();
        let lease = ctx.get::<Lease>(Key::namespaced(LEASES, &*name)).await?;
        let silent = lease.map(|lease| self.silence(&name, &lease));
        let mut node = (*node).clone();
        if silent.is_some_and(|silent| silent >= GRACE_PERIOD) && ready(&node) != "Unknown" {
            give_up(&mut node, &ctx).await?;
        }
        if ready(&node) != "True" {
            mark_pods_unready(&node, &ctx).await?;
        }
        taint(&node, &ctx).await?;
        let left = silent.map(|silent| GRACE_PERIOD.saturating_sub(silent)).filter(|left| !left.is_zero());
        Ok(left.map_or(Action::await_change(), Action::requeue_after))
    }

    fn gone(&self, key: &Key) {
        self.renewals.lock().expect("nothing panics under this lock").remove(key.name());
    }
}

impl Lifecycle {
    /// How long a node has not renewed its Lease, by this process's clock.
    fn silence(&self, name: &str, lease: &Lease) -> Duration {
        let renewed = lease.spec.as_ref().and_then(|spec| spec.renew_time.clone());
        let mut renewals = self.renewals.lock().expect("nothing panics under this lock");
        let known = renewals.entry(name.into()).or_insert_with(|| (renewed.clone(), Instant::now()));
        if known.0 != renewed {
            *known = (renewed, Instant::now());
        }
        known.1.elapsed()
    }
}

fn conditions(node: &Node) -> impl Iterator<Item = &NodeCondition> {
    node.status.iter().flat_map(|status| status.conditions.iter().flatten())
}

/// The status of the condition `Ready`.
fn ready(node: &Node) -> &str {
    conditions(node).find(|it| it.type_ == "Ready").map_or("Unknown", |it| it.status.as_str())
}

/// Says of a node that is not heard of that nothing is known.
async fn give_up(node: &mut Node, ctx: &Context) -> Result<()> {
    for condition in node.status.get_or_insert_default().conditions.iter_mut().flatten() {
        if condition.status != "Unknown" {
            condition.status = "Unknown".into();
            condition.reason = Some("NodeStatusUnknown".into());
            condition.message = Some("Kubelet stopped posting node status.".into());
            condition.last_transition_time = Some(ctx.now());
        }
    }
    let name = node.name_any();
    let conditions = node.status.as_ref().and_then(|status| status.conditions.clone());
    let patch = Patch::Strategic(json!({ "status": { "conditions": conditions } }));
    Api::<Node>::all(ctx.client())
        .patch_status(&name, &PatchParams::default(), &patch)
        .await?;
    let note = format!("Node {name} status is now: NodeNotReady");
    ctx.event(Event::normal("NodeNotReady", note).by(NAME));
    Ok(())
}

// pkg/controller/util/node/controller_utils.go, MarkPodsNotReady
async fn mark_pods_unready(node: &Node, ctx: &Context) -> Result<()> {
    let pods = ctx.by_index::<Pod>(CHILDREN, &lookup::on_node(&node.name_any())).await?;
    for pod in pods.iter().filter(|pod| pod::is_ready(pod)) {
        let api: Api<Pod> = Api::namespaced(ctx.client(), &pod.namespace().unwrap_or_default());
        let condition = json!({ "type": "Ready", "status": "False", "lastTransitionTime": ctx.now() });
        let patch =
            Patch::Strategic(json!({ "metadata": { "uid": pod.uid() }, "status": { "conditions": [condition] } }));
        match api.patch_status(&pod.name_any(), &PatchParams::default(), &patch).await {
            Err(error) if refusal::is_not_found(&error) || refusal::is_conflict(&error) => {}
            patched => drop(patched?),
        }
    }
    Ok(())
}

/// The taints that a node's conditions mean: what, on which condition, and with which effect.
// node_lifecycle_controller.go, nodeConditionToTaintKeyStatusMap
const TAINTS: [(&str, &str, &str); 6] = [
    ("Ready", "False", NOT_READY),
    ("Ready", "Unknown", UNREACHABLE),
    ("MemoryPressure", "True", "node.kubernetes.io/memory-pressure"),
    ("DiskPressure", "True", "node.kubernetes.io/disk-pressure"),
    ("NetworkUnavailable", "True", "node.kubernetes.io/network-unavailable"),
    ("PIDPressure", "True", "node.kubernetes.io/pid-pressure"),
];
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

async fn taint(node: &Node, ctx: &Context) -> Result<()> {
    let spec = node.spec.clone().unwrap_or_default();
    let known = spec.taints.unwrap_or_default();
    let mut wanted: Vec<(&str, &str)> = Vec::new();
    for condition in conditions(node) {
        let meant = TAINTS
            .iter()
            .filter(|(type_, status, _)| *type_ == condition.type_ && *status == condition.status);
        for (type_, _, key) in meant {
            wanted.push((key, "NoSchedule"));
            if *type_ == "Ready" {
                wanted.push((key, "NoExecute"));
            }
        }
    }
    if spec.unschedulable.unwrap_or_default() {
        wanted.push((UNSCHEDULABLE, "NoSchedule"));
    }
    let is_ours = |taint: &Taint| taint.key == UNSCHEDULABLE || TAINTS.iter().any(|(_, _, key)| *key == taint.key);
    let is_wanted = |taint: &Taint| wanted.iter().any(|(key, effect)| taint.key == *key && taint.effect == *effect);
    let mut next: Vec<Taint> = known.iter().filter(|taint| !is_ours(taint) || is_wanted(taint)).cloned().collect();
    for (key, effect) in wanted {
        if !next.iter().any(|taint| taint.key == key && taint.effect == effect) {
            next.push(Taint {
                key: key.into(),
                effect: effect.into(),
                time_added: Some(Time(ctx.now().0)),
                ..Taint::default()
            });
        }
    }
    if next == known {
        return Ok(());
    }
    let metadata = json!({ "resourceVersion": node.metadata.resource_version });
    let patch = Patch::Merge(json!({ "metadata": metadata, "spec": { "taints": next } }));
    match Api::<Node>::all(ctx.client())
        .patch(&node.name_any(), &PatchParams::default(), &patch)
        .await
    {
        // A node that has changed since it was read comes back by that change.
        Err(error) if refusal::is_not_found(&error) || refusal::is_conflict(&error) => Ok(()),
        patched => patched.map(drop).map_err(Into::into),
    }
}
