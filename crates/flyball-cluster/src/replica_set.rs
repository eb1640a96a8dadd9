//! Keeps as many pods of one template as a ReplicaSet asks for.

pub(crate) mod rank;
pub(crate) mod scale;
pub(crate) mod status;

use crate::{claim, lookup};
use flyball::{Action, Cache, Context, Controller, Error, Key, Result};
use k8s_openapi::{
    api::{apps::v1::ReplicaSet, core::v1::Pod},
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};
use kube::api::PartialObjectMeta;
use status::Pods;
use std::sync::Arc;

/// Who a ReplicaSet's events are from.
const NAME: &str = "replicaset-controller";

/// The controller of ReplicaSets.
pub(crate) fn controller() -> Controller<ReplicaSet> {
    let controller = Controller::new(reconcile)
        .terminating(report)
        .owns::<Pod>()
        .reads::<Pod>()
        .watches(adopters);
    lookup::index_selectors(controller, |set: &ReplicaSet| selector(set).cloned())
}

async fn reconcile(set: Arc<ReplicaSet>, ctx: Context) -> Result {
    let Some(selector) = selector(&set).filter(|labels| claim::selector(Some(labels)).is_some()) else {
        return Err(Error::permanent("a ReplicaSet must select pods"));
    };
    let pods = Pods::of(claim::claim(&*set, selector, &ctx).await?);
    let scaled = scale::scale(&*set, &set, NAME, &pods.active, &ctx).await;
    let pods = Pods::of(claim::claim(&*set, selector, &ctx).await?);
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
    claim::adopters::<ReplicaSet>(&pod.metadata, &cache, selector)
}

fn selector(set: &ReplicaSet) -> Option<&LabelSelector> {
    set.spec.as_ref().map(|spec| &spec.selector)
}
