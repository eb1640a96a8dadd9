//! Deletes pods from nodes whose taints they do not tolerate, or do no longer.

use crate::{
    lookup::{self, CHILDREN},
    pod, refusal,
    scheduler::node_affinity,
};
use flyball::{Action, Cache, Context, Controller, Event, Key, Reconciler, Result};
use k8s_openapi::api::core::v1::{Node, Pod, Taint, Toleration};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, PartialObjectMeta, Patch, PatchParams, Preconditions},
};
use serde_json::json;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::Instant;

/// Who the events of an eviction are from.
const NAME: &str = "taint-eviction-controller";

/// The controller of evictions by taint.
pub(crate) fn controller() -> Controller<Pod> {
    Controller::new(Evictions::default())
        .named("taint-eviction")
        .reads::<Node>()
        .watches(pods_of)
}

fn pods_of(node: Arc<Node>, cache: Cache) -> Result<Vec<Key>> {
    let pods = cache.by_index::<PartialObjectMeta<Pod>>(CHILDREN, &lookup::on_node(&node.name_any()))?;
    Ok(pods.iter().map(|pod| Key::of(&**pod)).collect())
}

#[derive(Default)]
struct Evictions {
    /// Since when a pod tolerates a taint for some time only.
    since: Mutex<HashMap<Key, Instant>>,
}

impl Reconciler<Pod> for Evictions {
    // pkg/controller/tainteviction/taint_eviction.go, processPodOnNode
    async fn reconcile(&self, pod: Arc<Pod>, ctx: Context) -> Result {
        let key = Key::of(&*pod);
        let Some(node) = pod::node(&pod).filter(|_| !pod::has_ended(&pod)) else {
            return Ok(Action::await_change());
        };
        let node = ctx.get::<Node>(Key::cluster(node)).await?;
        let taints = node.and_then(|node| node.spec.clone()?.taints).unwrap_or_default();
        let taints: Vec<_> = taints.into_iter().filter(|taint| taint.effect == "NoExecute").collect();
        let tolerations = pod.spec.as_ref().and_then(|spec| spec.tolerations.clone()).unwrap_or_default();
        let left = match tolerated_for(&taints, &tolerations) {
            None => {
                self.forget(&key);
                return Ok(Action::await_change());
            }
            Some(time) => {
                let mut since = self.since.lock().expect("nothing panics under this lock");
                time.saturating_sub(since.entry(key.clone()).or_insert_with(Instant::now).elapsed())
            }
        };
        if !left.is_zero() {
            return Ok(Action::requeue_after(left));
        }
        evict(&pod, &ctx).await?;
        self.forget(&key);
        Ok(Action::await_change())
    }

    fn gone(&self, key: &Key) {
        self.forget(key);
    }
}

impl Evictions {
    fn forget(&self, key: &Key) {
        self.since.lock().expect("nothing panics under this lock").remove(key);
    }
}

/// How long a pod tolerates taints; forever if none is returned.
fn tolerated_for(taints: &[Taint], tolerations: &[Toleration]) -> Option<Duration> {
    let mut shortest: Option<Duration> = None;
    for taint in taints {
        let Some(used) = tolerations.iter().find(|toleration| node_affinity::covers(toleration, taint)) else {
            return Some(Duration::ZERO);
        };
        if let Some(seconds) = used.toleration_seconds {
            let time = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
            shortest = Some(shortest.map_or(time, |shortest| shortest.min(time)));
        }
    }
    shortest
}

async fn evict(pod: &Pod, ctx: &Context) -> Result<()> {
    let note = format!("Marking for deletion Pod {}", Key::of(pod));
    ctx.event(Event::normal("TaintManagerEviction", note).by(NAME));
    let api: Api<Pod> = Api::namespaced(ctx.client(), &pod.namespace().unwrap_or_default());
    let condition = json!({
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "DeletionByTaintManager",
        "message": "Taint manager: deleting due to NoExecute taint",
        "lastTransitionTime": ctx.now(),
        "observedGeneration": pod.metadata.generation,
    });
    let patch = Patch::Strategic(json!({ "metadata": { "uid": pod.uid() }, "status": { "conditions": [condition] } }));
    let params = DeleteParams {
        preconditions: Some(Preconditions { uid: pod.uid(), resource_version: None }),
        ..DeleteParams::default()
    };
    for result in [
        api.patch_status(&pod.name_any(), &PatchParams::default(), &patch).await.map(drop),
        api.delete(&pod.name_any(), &params).await.map(drop),
    ] {
        match result {
            Err(error) if refusal::is_not_found(&error) || refusal::is_conflict(&error) => return Ok(()),
            result => result?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_toleration_counts() {
        let taint = |key: &str| Taint {
            key: key.into(),
            effect: "NoExecute".into(),
            ..Taint::default()
        };
        let toleration = |key: &str, seconds: Option<i64>| Toleration {
            key: Some(key.into()),
            operator: Some("Exists".into()),
            toleration_seconds: seconds,
            ..Toleration::default()
        };
        let taints = [taint("a"), taint("b")];
        assert_eq!(tolerated_for(&taints, &[toleration("a", None)]), Some(Duration::ZERO));
        assert_eq!(tolerated_for(&taints, &[toleration("a", None), toleration("b", None)]), None);
        let limited = [toleration("a", Some(300)), toleration("b", Some(60))];
        assert_eq!(tolerated_for(&taints, &limited), Some(Duration::from_secs(60)));
    }
}
