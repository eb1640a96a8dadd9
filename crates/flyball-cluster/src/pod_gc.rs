//! Deletes pods that nothing else does: of nodes that are gone, and the oldest of very many that have ended.

use crate::{lookup, owner, pod, refusal};
use flyball::{Action, Cache, Context, Controller, Key, Reconciler, Result};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, PartialObjectMeta, Patch, PatchParams, Preconditions},
};
use serde_json::json;
use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::Instant;

/// kube-controller-manager's `--terminated-pod-gc-threshold`.
const MAX_ENDED_PODS: usize = 12_500;
/// How long a node may be missing before its pods are deleted.
const QUARANTINE: Duration = Duration::from_secs(40);

/// The controller that collects pods. It also declares the index by which all controllers find pods.
pub(crate) fn controller() -> Controller<Pod> {
    let controller = Controller::new(Collector::default())
        .named("pod-garbage-collector")
        .reads::<PartialObjectMeta<Node>>()
        .watches(pods_of);
    lookup::index_pods(controller)
}

fn pods_of(node: Arc<PartialObjectMeta<Node>>, cache: Cache) -> Result<Vec<Key>> {
    if cache.get::<PartialObjectMeta<Node>>(node.name_any())?.is_some() {
        return Ok(Vec::new());
    }
    let pods = cache.by_index::<PartialObjectMeta<Pod>>(lookup::CHILDREN, &lookup::on_node(&node.name_any()))?;
    Ok(pods.iter().map(|pod| Key::of(&**pod)).collect())
}

#[derive(Default)]
struct Collector {
    /// Since when pods are seen to have no node.
    orphans: Mutex<HashMap<Key, Instant>>,
    /// The pods that have ended, the oldest first.
    ended: Mutex<BTreeSet<(Timestamp, Key)>>,
}

// pkg/controller/podgc/gc_controller.go
impl Reconciler<Pod> for Collector {
    async fn reconcile(&self, pod: Arc<Pod>, ctx: Context) -> Result {
        let key = Key::of(&*pod);
        if pod::has_ended(&pod) {
            let created = pod.metadata.creation_timestamp.as_ref().map_or(Timestamp::MIN, |time| time.0);
            self.ended.lock().expect(LOCK).insert((created, key.clone()));
            self.collect_ended(&ctx).await?;
        }
        let Some(node) = pod::node(&pod) else {
            return Ok(Action::await_change());
        };
        if ctx.get::<PartialObjectMeta<Node>>(Key::cluster(node)).await?.is_some() {
            self.orphans.lock().expect(LOCK).remove(&key);
            return Ok(Action::await_change());
        }
        let since = *self.orphans.lock().expect(LOCK).entry(key).or_insert_with(Instant::now);
        let left = QUARANTINE.saturating_sub(since.elapsed());
        if !left.is_zero() {
            return Ok(Action::requeue_after(left));
        }
        fail(&pod, &ctx).await?;
        delete(&pod.namespace().unwrap_or_default(), &pod.name_any(), pod.uid(), &ctx).await?;
        Ok(Action::await_change())
    }

    async fn terminating(&self, pod: Arc<Pod>, ctx: Context) -> Result {
        if pod::node(&pod).is_some() {
            return self.reconcile(pod, ctx).await;
        }
        if owner::is_terminating(&pod.metadata) {
            delete(&pod.namespace().unwrap_or_default(), &pod.name_any(), pod.uid(), &ctx).await?;
        }
        Ok(Action::await_change())
    }

    fn gone(&self, key: &Key) {
        self.orphans.lock().expect(LOCK).remove(key);
        self.ended.lock().expect(LOCK).retain(|(_, ended)| ended != key);
    }
}

const LOCK: &str = "nothing panics under this lock";

impl Collector {
    async fn collect_ended(&self, ctx: &Context) -> Result<()> {
        let surplus: Vec<_> = {
            let ended = self.ended.lock().expect(LOCK);
            let surplus = ended.len().saturating_sub(MAX_ENDED_PODS);
            ended.iter().take(surplus).map(|(_, key)| key.clone()).collect()
        };
        for key in surplus {
            delete(key.namespace().unwrap_or_default(), key.name(), None, ctx).await?;
        }
        Ok(())
    }
}

/// Says how a pod ended whose node cannot.
async fn fail(pod: &Pod, ctx: &Context) -> Result<()> {
    if pod::has_ended(pod) {
        return Ok(());
    }
    let condition = json!({
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "DeletionByPodGC",
        "message": "PodGC: node no longer exists",
        "lastTransitionTime": ctx.now(),
    });
    let patch = Patch::Strategic(json!({ "status": { "phase": "Failed", "conditions": [condition] } }));
    let pods: Api<Pod> = Api::namespaced(ctx.client(), &pod.namespace().unwrap_or_default());
    match pods.patch_status(&pod.name_any(), &PatchParams::default(), &patch).await {
        Err(error) if !refusal::is_not_found(&error) => Err(error.into()),
        _ => Ok(()),
    }
}

async fn delete(namespace: &str, name: &str, uid: Option<String>, ctx: &Context) -> Result<()> {
    let params = DeleteParams {
        grace_period_seconds: Some(0),
        preconditions: uid.map(|uid| Preconditions { uid: Some(uid), resource_version: None }),
        ..DeleteParams::default()
    };
    let pods: Api<Pod> = Api::namespaced(ctx.client(), namespace);
    match pods.delete(name, &params).await {
        Err(error) if !(refusal::is_not_found(&error) || refusal::is_conflict(&error)) => Err(error.into()),
        _ => Ok(()),
    }
}
