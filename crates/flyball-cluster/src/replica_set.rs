//! Keeps as many pods of one template as a ReplicaSet asks for.

mod rank;
mod scale;
mod status;

use crate::claim;
use flyball::{Action, Cache, Context, Controller, Error, Key, Result};
use k8s_openapi::{
    api::{apps::v1::ReplicaSet, core::v1::Pod},
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};
use kube::api::PartialObjectMeta;
use status::Pods;
use std::sync::Arc;

/// The controller of ReplicaSets.
pub(crate) fn controller() -> Controller<ReplicaSet> {
    Controller::new(reconcile)
        .terminating(report)
        .owns::<Pod>()
        .reads::<Pod>()
        .watches(adopters)
}

async fn reconcile(set: Arc<ReplicaSet>, ctx: Context) -> Result {
    let Some(selector) = claim::selector(selector(&set)) else {
        return Err(Error::permanent("a ReplicaSet must select pods"));
    };
    let pods = Pods::of(claim::claim(&*set, &selector, &ctx).await?);
    let scaled = scale::scale(&set, &pods.active, &ctx).await;
    let pods = Pods::of(claim::claim(&*set, &selector, &ctx).await?);
    let now = ctx.now();
    let failure = scaled.as_ref().err().map(crate::refusal::message);
    ctx.set_status(status::of(&set, &pods, failure.as_deref(), &now)).await?;
    scaled?;
    Ok(status::next_check(&set, &pods, &now).map_or(Action::await_change(), Action::requeue_after))
}

/// Only counts what is left.
async fn report(set: Arc<ReplicaSet>, ctx: Context) -> Result {
    let pods = Pods::of(ctx.owned().await?);
    ctx.set_status(status::of(&set, &pods, None, &ctx.now())).await?;
    Ok(Action::await_change())
}

fn adopters(pod: Arc<PartialObjectMeta<Pod>>, cache: Cache) -> Result<Vec<Key>> {
    claim::adopters(&pod.metadata, || cache.list::<ReplicaSet>(), selector)
}

fn selector(set: &ReplicaSet) -> Option<&LabelSelector> {
    set.spec.as_ref().map(|spec| &spec.selector)
}
