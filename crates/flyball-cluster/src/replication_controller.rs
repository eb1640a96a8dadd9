//! ReplicationControllers, which are ReplicaSets under an older name.

use crate::{
    claim, lookup,
    replica_set::{scale, status},
};
use flyball::{Action, Cache, Context, Controller, Error, Key, Result};
use k8s_openapi::{
    api::{
        apps::v1::{ReplicaSet, ReplicaSetCondition, ReplicaSetSpec, ReplicaSetStatus},
        core::v1::{Pod, ReplicationController, ReplicationControllerCondition, ReplicationControllerStatus},
    },
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};
use kube::api::PartialObjectMeta;
use status::Pods;
use std::sync::Arc;

/// Who a ReplicationController's events are from.
const NAME: &str = "replication-controller";

/// The controller of ReplicationControllers.
pub(crate) fn controller() -> Controller<ReplicationController> {
    let controller = Controller::new(reconcile).owns::<Pod>().reads::<Pod>().watches(adopters);
    lookup::index_selectors(controller, |it: &ReplicationController| Some(selector(it)))
}

fn adopters(pod: Arc<PartialObjectMeta<Pod>>, cache: Cache) -> Result<Vec<Key>> {
    if crate::owner::controller(&pod.metadata).is_some() {
        return Ok(Vec::new());
    }
    let selecting = lookup::selecting::<ReplicationController>(&pod.metadata, &cache)?;
    let adopts = |it: &&Arc<ReplicationController>| {
        claim::selector(Some(&selector(it))).is_some_and(|selector| claim::selects(&selector, &pod.metadata))
    };
    Ok(selecting.iter().filter(adopts).map(|it| Key::of(&**it)).collect())
}

fn selector(controller: &ReplicationController) -> LabelSelector {
    LabelSelector {
        match_labels: controller.spec.as_ref().and_then(|spec| spec.selector.clone()),
        match_expressions: None,
    }
}

// pkg/controller/replication/conversion.go
async fn reconcile(controller: Arc<ReplicationController>, ctx: Context) -> Result {
    let labels = selector(&controller);
    if claim::selector(Some(&labels)).is_none() {
        return Err(Error::permanent("a ReplicationController must select pods"));
    }
    let set = replica_set(&controller);
    let pods = Pods::of(claim::claim(&*controller, &labels, &ctx).await?);
    let scaled = scale::scale(&*controller, &set, NAME, &pods.active, &ctx).await;
    let pods = Pods::of(claim::claim(&*controller, &labels, &ctx).await?);
    let now = ctx.now();
    let failure = scaled.as_ref().err().map(crate::refusal::message);
    ctx.set_status(converted(status::of(&set, &pods, failure.as_deref(), &now))).await?;
    scaled?;
    Ok(status::next_check(&set, &pods, &now).map_or(Action::await_change(), Action::requeue_after))
}

/// The same as a ReplicaSet.
fn replica_set(controller: &ReplicationController) -> ReplicaSet {
    let spec = controller.spec.clone().unwrap_or_default();
    let known = controller.status.clone().unwrap_or_default();
    let condition = |it: ReplicationControllerCondition| ReplicaSetCondition {
        type_: it.type_,
        status: it.status,
        reason: it.reason,
        message: it.message,
        last_transition_time: it.last_transition_time,
    };
    ReplicaSet {
        metadata: controller.metadata.clone(),
        spec: Some(ReplicaSetSpec {
            replicas: spec.replicas,
            min_ready_seconds: spec.min_ready_seconds,
            selector: selector(controller),
            template: spec.template,
        }),
        status: Some(ReplicaSetStatus {
            conditions: known.conditions.map(|conditions| conditions.into_iter().map(condition).collect()),
            ..ReplicaSetStatus::default()
        }),
    }
}

fn converted(status: ReplicaSetStatus) -> ReplicationControllerStatus {
    let condition = |it: ReplicaSetCondition| ReplicationControllerCondition {
        type_: it.type_,
        status: it.status,
        reason: it.reason,
        message: it.message,
        last_transition_time: it.last_transition_time,
    };
    ReplicationControllerStatus {
        replicas: status.replicas,
        fully_labeled_replicas: status.fully_labeled_replicas,
        ready_replicas: status.ready_replicas,
        available_replicas: status.available_replicas,
        observed_generation: status.observed_generation,
        conditions: status.conditions.map(|conditions| conditions.into_iter().map(condition).collect()),
    }
}
