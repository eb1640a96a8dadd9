//! Keeps one pod of a DaemonSet on each node that should have one.

mod pods;
mod rollout;

use crate::{
    claim, history,
    lookup::{self, CHILDREN},
    pod,
};
use flyball::{Action, Cache, Context, Controller, Error, Event, Key, Result};
use jiff::Timestamp;
use k8s_openapi::{
    api::{
        apps::v1::{ControllerRevision, DaemonSet, DaemonSetSpec, DaemonSetStatus},
        core::v1::{Node, Pod},
    },
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};
use kube::{ResourceExt, api::PartialObjectMeta};
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// Who a DaemonSet's events are from.
const NAME: &str = "daemonset-controller";

/// The controller of DaemonSets.
pub(crate) fn controller() -> Controller<DaemonSet> {
    let controller = Controller::new(reconcile)
        .terminating(report)
        .owns::<Pod>()
        .reads::<Pod>()
        .owns::<ControllerRevision>()
        .reads::<ControllerRevision>()
        .reads::<Node>()
        .watches(adopters)
        .watches(|_: Arc<Node>, cache: Cache| {
            let sets = cache.list::<PartialObjectMeta<DaemonSet>>()?;
            Ok::<_, Error>(sets.iter().map(|set| Key::of(&**set)).collect::<Vec<_>>())
        });
    lookup::index_selectors(controller, |set: &DaemonSet| selector(set).cloned())
}

fn adopters(pod: Arc<PartialObjectMeta<Pod>>, cache: Cache) -> Result<Vec<Key>> {
    claim::adopters::<DaemonSet>(&pod.metadata, &cache, selector)
}

fn selector(set: &DaemonSet) -> Option<&LabelSelector> {
    set.spec.as_ref().map(|spec| &spec.selector)
}

/// The pods of a DaemonSet by the node that they are on or meant for.
type ByNode = BTreeMap<String, Vec<Arc<Pod>>>;

// pkg/controller/daemon/daemon_controller.go, syncDaemonSet
async fn reconcile(set: Arc<DaemonSet>, ctx: Context) -> Result {
    let Some(selector) = selector(&set).filter(|labels| claim::selector(Some(labels)).is_some()) else {
        let note = "This daemon set is selecting all pods. A non-empty selector is required.";
        ctx.event(event(Event::warning("SelectingAll", note)));
        return Ok(Action::await_change());
    };
    let spec = spec(&set);
    let known = history::revisions(&*set, selector, &ctx).await?;
    let mut collisions = set.status.as_ref().and_then(|status| status.collision_count).unwrap_or_default();
    let labels = spec.template.metadata.as_ref().and_then(|meta| meta.labels.clone()).unwrap_or_default();
    let data = history::data(&spec.template);
    let current = history::current(&*set, (&labels, history::HASH_LABEL), data, &known, &mut collisions, &ctx).await?;
    let hash = current.labels().get(history::HASH_LABEL).cloned().unwrap_or_default();

    let nodes = ctx.objects::<Node>().list().await?;
    let claimed = claim::claim::<_, Pod>(&*set, selector, &ctx).await?;
    let managed = pods::manage(&set, &nodes, by_node(claimed), &hash, &ctx).await;
    if managed.is_ok() && spec.update_strategy.as_ref().and_then(|it| it.type_.as_deref()) != Some("OnDelete") {
        let pods = by_node(owned(&set, &ctx).await?);
        rollout::roll(&set, &nodes, &pods, &hash, &ctx).await?;
    }
    let pods = by_node(owned(&set, &ctx).await?);
    let now = ctx.now().0;
    ctx.set_status(status(&set, &nodes, &pods, &hash, collisions, now)).await?;
    let wait = managed?;
    let live = pods.values().flatten().filter_map(|pod| pod.labels().get(history::HASH_LABEL).cloned());
    let names: Vec<_> = live
        .map(|hash| format!("{}-{hash}", set.name_any()))
        .chain([current.name_any()])
        .collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    history::truncate(&known, &names, spec.revision_history_limit.unwrap_or(10), &ctx).await?;
    let available = pods.values().flatten().filter_map(|pod| pod::available_at(pod, min_ready_seconds(&set)));
    let next = available.filter(|at| *at > now).min();
    let next = next.and_then(|next| Duration::try_from(next.duration_since(now)).ok());
    let wait = [wait, next].into_iter().flatten().min();
    Ok(wait.map_or(Action::await_change(), Action::requeue_after))
}

/// Leaves a DaemonSet alone that is being deleted.
async fn report(_: Arc<DaemonSet>, _: Context) -> Result {
    Ok(Action::await_change())
}

async fn owned(set: &DaemonSet, ctx: &Context) -> Result<Vec<Arc<Pod>>> {
    ctx.by_index::<Pod>(CHILDREN, &lookup::controlled_by(&set.uid().unwrap_or_default()))
        .await
}

fn by_node(pods: Vec<Arc<Pod>>) -> ByNode {
    let mut by_node = ByNode::new();
    for pod in pods {
        if let Some(node) = pods::target(&pod) {
            by_node.entry(node).or_default().push(pod);
        }
    }
    let order = |pod: &Arc<Pod>| {
        let created = pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
        (pod::node(pod).is_none(), created, pod.name_any())
    };
    by_node.values_mut().for_each(|pods| pods.sort_by_key(order));
    by_node
}

// daemon_controller.go, updateDaemonSetStatus
fn status(
    set: &DaemonSet,
    nodes: &[Arc<Node>],
    pods: &ByNode,
    hash: &str,
    collisions: i32,
    now: Timestamp,
) -> DaemonSetStatus {
    let mut status = DaemonSetStatus {
        observed_generation: set.metadata.generation,
        collision_count: Some(collisions).filter(|count| *count > 0),
        conditions: set.status.as_ref().and_then(|status| status.conditions.clone()),
        ..DaemonSetStatus::default()
    };
    let (mut updated, mut available) = (0, 0);
    for node in nodes {
        let here = pods.get(&node.name_any()).and_then(|pods| pods.first());
        if !pods::should_run(set, node).0 {
            status.number_misscheduled += i32::from(here.is_some());
            continue;
        }
        status.desired_number_scheduled += 1;
        let Some(pod) = here else { continue };
        status.current_number_scheduled += 1;
        status.number_ready += i32::from(pod::is_ready(pod));
        available += i32::from(pod::is_available(pod, min_ready_seconds(set), now));
        updated += i32::from(pod.labels().get(history::HASH_LABEL).is_some_and(|label| label == hash));
    }
    let written = |count: i32| Some(count).filter(|count| *count != 0);
    status.updated_number_scheduled = written(updated);
    status.number_available = written(available);
    status.number_unavailable = written(status.desired_number_scheduled - available);
    status
}

fn min_ready_seconds(set: &DaemonSet) -> i32 {
    set.spec.as_ref().and_then(|spec| spec.min_ready_seconds).unwrap_or_default()
}

fn spec(set: &DaemonSet) -> DaemonSetSpec {
    set.spec.clone().unwrap_or_default()
}

fn event(event: Event) -> Event {
    event.by(NAME)
}
