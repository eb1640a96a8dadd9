//! Keeps pods with a name, an order and volumes of their own.

mod claims;
mod identity;
mod replica;
mod status;

use crate::{
    claim, history,
    lookup::{self, CHILDREN},
    pod,
};
use flyball::{Action, Cache, Context, Controller, Error, Event, Key, Result};
use k8s_openapi::{
    api::{
        apps::v1::{ControllerRevision, StatefulSet, StatefulSetSpec},
        core::v1::{PersistentVolumeClaim, Pod, PodTemplateSpec},
    },
    apimachinery::pkg::{apis::meta::v1::LabelSelector, util::intstr::IntOrString},
};
use kube::{ResourceExt, api::PartialObjectMeta};
use replica::{Replica, Templates};
use std::{sync::Arc, time::Duration};

/// Who a StatefulSet's events are from.
const NAME: &str = "statefulset-controller";

/// The controller of StatefulSets.
pub(crate) fn controller() -> Controller<StatefulSet> {
    let controller = Controller::new(reconcile)
        .terminating(reconcile)
        .owns::<Pod>()
        .reads::<Pod>()
        .owns::<ControllerRevision>()
        .reads::<ControllerRevision>()
        .reads::<PersistentVolumeClaim>()
        .watches(adopters);
    let controller = lookup::index_children::<_, ControllerRevision>(controller);
    lookup::index_selectors(controller, |set: &StatefulSet| selector(set).cloned())
}

fn adopters(pod: Arc<PartialObjectMeta<Pod>>, cache: Cache) -> Result<Vec<Key>> {
    claim::adopters::<StatefulSet>(&pod.metadata, &cache, selector)
}

fn selector(set: &StatefulSet) -> Option<&LabelSelector> {
    set.spec.as_ref().map(|spec| &spec.selector)
}

async fn reconcile(set: Arc<StatefulSet>, ctx: Context) -> Result {
    let selector = selector(&set).filter(|labels| claim::selector(Some(labels)).is_some());
    let Some(selector) = selector else {
        return Err(Error::permanent("a StatefulSet must select pods"));
    };
    let revisions = history::revisions(&*set, selector, &ctx).await?;
    let mut pods = claim::claim::<_, Pod>(&*set, selector, &ctx).await?;
    pods.retain(|pod| identity::is_member(&set, &pod.name_any()));

    let spec = spec(&set);
    let mut collisions = set.status.as_ref().and_then(|status| status.collision_count).unwrap_or_default();
    let labels = spec.template.metadata.as_ref().and_then(|meta| meta.labels.clone()).unwrap_or_default();
    let data = history::data(&spec.template);
    let updated =
        history::current(&*set, (&labels, history::REVISION_LABEL), data, &revisions, &mut collisions, &ctx).await?;
    let named = set.status.as_ref().and_then(|status| status.current_revision.as_deref());
    let current = revisions
        .iter()
        .find(|revision| Some(&*revision.name_any()) == named)
        .unwrap_or(&updated)
        .clone();

    let templates = Templates {
        current: (current.name_any(), template(&current, &set)),
        updated: (updated.name_any(), spec.template.clone()),
    };
    let done = work(&set, &templates, &pods, &ctx).await;
    let pods = after(&set, &ctx).await?;
    let deleted_for_update = done.as_ref().is_ok_and(|done| *done == Done::Updating);
    let now = ctx.now().0;
    let status = status::of(&set, &templates, collisions, &pods, deleted_for_update, now);
    ctx.set_status(&status).await?;
    done?;
    let live = pods
        .iter()
        .map(|pod| identity::revision(pod))
        .chain([&*templates.current.0, &*templates.updated.0]);
    history::truncate(&revisions, &live.collect::<Vec<_>>(), spec.revision_history_limit.unwrap_or(10), &ctx).await?;
    let next = pods
        .iter()
        .filter_map(|pod| pod::available_at(pod, min_ready_seconds(&set)))
        .filter(|at| *at > now)
        .min();
    let wait = next.and_then(|next| Duration::try_from(next.duration_since(now)).ok());
    Ok(wait.map_or(Action::await_change(), Action::requeue_after))
}

/// The pods of a set as they are after this reconcile's own writes.
async fn after(set: &StatefulSet, ctx: &Context) -> Result<Vec<Arc<Pod>>> {
    let uid = set.uid().unwrap_or_default();
    let mut pods = ctx.by_index::<Pod>(CHILDREN, &lookup::controlled_by(&uid)).await?;
    pods.retain(|pod| identity::is_member(set, &pod.name_any()));
    Ok(pods)
}

fn template(revision: &ControllerRevision, set: &StatefulSet) -> PodTemplateSpec {
    history::template(revision).unwrap_or_else(|| spec(set).template)
}

/// Whether pods were deleted for an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Done {
    Settled,
    Updating,
}

// stateful_set_control.go, updateStatefulSet
async fn work(set: &StatefulSet, templates: &Templates, pods: &[Arc<Pod>], ctx: &Context) -> Result<Done> {
    if set.metadata.deletion_timestamp.is_some() {
        return Ok(Done::Settled);
    }
    let (replicas, condemned) = replica::sort(set, templates, pods);
    let ordered = spec(set).pod_management_policy.as_deref() != Some("Parallel");
    let now = ctx.now().0;
    let unavailable = |pod: Option<&Pod>| pod.is_none_or(|pod| is_unavailable(set, pod, now));
    let first_unhealthy = replicas
        .iter()
        .find(|replica| unavailable(replica.pod.as_deref()))
        .map(|it| it.name.clone());
    let first_unhealthy =
        first_unhealthy.or_else(|| condemned.iter().rev().find(|pod| unavailable(Some(pod))).map(|pod| pod.name_any()));
    for replica in &replicas {
        if replica::keep(set, replica, ordered, ctx).await?.is_break() && ordered {
            return Ok(Done::Settled);
        }
    }
    for pod in &condemned {
        claims::keep_owners(set, pod, ctx).await?;
    }
    for pod in &condemned {
        let is_first = first_unhealthy.as_ref() == Some(&pod.name_any());
        let waits = ordered && !is_first && is_unavailable(set, pod, now);
        if pod.metadata.deletion_timestamp.is_some() || waits {
            if ordered {
                return Ok(Done::Settled);
            }
            continue;
        }
        replica::delete(set, pod, ctx).await?;
        if ordered {
            return Ok(Done::Settled);
        }
    }
    update(set, templates, &replicas, ctx).await
}

/// Deletes pods of an old template, the highest ordinals first, as many as may be unavailable.
// stateful_set_control.go, updateStatefulSetAfterInvariantEstablished
async fn update(set: &StatefulSet, templates: &Templates, replicas: &[Replica], ctx: &Context) -> Result<Done> {
    let strategy = spec(set).update_strategy.unwrap_or_default();
    if strategy.type_.as_deref() == Some("OnDelete") {
        return Ok(Done::Settled);
    }
    let rolling = strategy.rolling_update.unwrap_or_default();
    let allowed = max_unavailable(rolling.max_unavailable.as_ref(), replicas.len());
    let now = ctx.now().0;
    let unavailable = replicas
        .iter()
        .filter(|it| it.pod.as_ref().is_none_or(|pod| is_unavailable(set, pod, now)));
    let mut left = allowed.saturating_sub(unavailable.count());
    let mut done = Done::Settled;
    let first = usize::try_from(rolling.partition.unwrap_or_default()).unwrap_or_default();
    for replica in replicas.iter().skip(first).rev() {
        let Some(pod) = replica.pod.as_ref().filter(|_| left > 0) else {
            continue;
        };
        if identity::revision(pod) != templates.updated.0 && pod.metadata.deletion_timestamp.is_none() {
            replica::delete(set, pod, ctx).await?;
            (left, done) = (left - 1, Done::Updating);
        }
    }
    Ok(done)
}

/// How many pods may be unavailable; at least one.
// stateful_set_utils.go, getStatefulSetMaxUnavailable
fn max_unavailable(limit: Option<&IntOrString>, replicas: usize) -> usize {
    let limit = match limit {
        Some(IntOrString::Int(limit)) => usize::try_from(*limit).unwrap_or_default(),
        Some(IntOrString::String(percent)) => {
            let percent: usize = percent.trim_end_matches('%').parse().unwrap_or_default();
            replicas * percent / 100
        }
        None => 1,
    };
    limit.max(1)
}

fn is_unavailable(set: &StatefulSet, pod: &Pod, now: jiff::Timestamp) -> bool {
    pod.metadata.deletion_timestamp.is_some() || !pod::is_available(pod, min_ready_seconds(set), now)
}

fn min_ready_seconds(set: &StatefulSet) -> i32 {
    set.spec.as_ref().and_then(|spec| spec.min_ready_seconds).unwrap_or_default()
}

fn spec(set: &StatefulSet) -> StatefulSetSpec {
    set.spec.clone().unwrap_or_default()
}

fn event(event: Event) -> Event {
    event.by(NAME)
}
