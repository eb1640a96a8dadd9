//! Keeps the pods of a Deployment at its template, by way of one ReplicaSet per template.

mod annotation;
mod condition;
mod limits;
mod rollout;
mod sets;
mod status;
mod step;
mod write;

use crate::{claim, lookup};
use flyball::{Action, Cache, Context, Controller, Event, Key, Result};
use k8s_openapi::{
    api::apps::v1::{Deployment, DeploymentStatus, ReplicaSet},
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};
use kube::api::PartialObjectMeta;
use sets::Sets;
use std::sync::Arc;
use step::Step;

/// The controller of Deployments.
pub(crate) fn controller() -> Controller<Deployment> {
    let controller = Controller::new(reconcile)
        .terminating(report)
        .owns::<ReplicaSet>()
        .reads::<ReplicaSet>()
        .watches(adopters);
    let controller = lookup::index_children::<_, ReplicaSet>(controller);
    lookup::index_selectors(controller, |deployment: &Deployment| selector(deployment).cloned())
}

async fn reconcile(deployment: Arc<Deployment>, ctx: Context) -> Result {
    let Some(selector) = selector(&deployment).filter(|labels| claim::selector(Some(labels)).is_some()) else {
        return refuse(&deployment, &ctx).await;
    };
    let sets = Sets::of(&deployment, claim::claim(&*deployment, selector, &ctx).await?);
    let mut next = (*deployment).clone();
    status::note_pause(&deployment, next.status.get_or_insert_default(), ctx.now().0);
    let sets = write::keep_annotations(&mut next, sets, &ctx).await?;

    let only_scales = step::only_scales(&next, &sets);
    let step = step::next(&next, &sets, has_old_pods(&sets));
    if step == Step::Settled && (is_paused(&next) || status::is_complete(&next, &status_of(&next))) {
        write::forget_history(&next, &sets.old, &ctx).await?;
    }
    write::take(step, &mut next, &sets, &ctx).await?;

    let sets = Sets::of(&next, ctx.owned().await?);
    let now = ctx.now().0;
    let mut counted = status::count(&next, &sets, now);
    if !only_scales {
        status::judge_progress(&next, &sets, &mut counted, now);
    }
    next.status = Some(counted);
    write::status(&deployment, &next, &ctx).await?;
    let check = status::next_check(&next, &status_of(&next), now).filter(|_| !only_scales);
    Ok(check.map_or(Action::await_change(), Action::requeue_after))
}

/// Only counts what is left of a Deployment that is being deleted.
async fn report(deployment: Arc<Deployment>, ctx: Context) -> Result {
    let sets = Sets::of(&deployment, ctx.owned().await?);
    let status = status::count(&deployment, &sets, ctx.now().0);
    let next = Deployment { status: Some(status), ..(*deployment).clone() };
    write::status(&deployment, &next, &ctx).await?;
    Ok(Action::await_change())
}

async fn refuse(deployment: &Deployment, ctx: &Context) -> Result {
    let note = "This deployment is selecting all pods. A non-empty selector is required.";
    ctx.event(Event::warning("SelectingAll", note).by(NAME));
    let mut next = deployment.clone();
    next.status.get_or_insert_default().observed_generation = deployment.metadata.generation;
    write::status(deployment, &next, ctx).await?;
    Ok(Action::await_change())
}

/// Who a Deployment's events are from.
const NAME: &str = "deployment-controller";

/// Whether a ReplicaSet of an older template still has pods, or has not yet said that it has none.
fn has_old_pods(sets: &Sets) -> bool {
    sets.old.iter().any(|set| {
        let status = sets::status(set).cloned().unwrap_or_default();
        let observed = status.observed_generation >= set.metadata.generation;
        !observed || status.replicas > 0 || status.terminating_replicas.unwrap_or_default() > 0
    })
}

fn is_paused(deployment: &Deployment) -> bool {
    deployment.spec.as_ref().and_then(|spec| spec.paused).unwrap_or_default()
}

fn status_of(deployment: &Deployment) -> DeploymentStatus {
    deployment.status.clone().unwrap_or_default()
}

fn adopters(set: Arc<PartialObjectMeta<ReplicaSet>>, cache: Cache) -> Result<Vec<Key>> {
    claim::adopters::<Deployment>(&set.metadata, &cache, selector)
}

fn selector(deployment: &Deployment) -> Option<&LabelSelector> {
    deployment.spec.as_ref().map(|spec| &spec.selector)
}
