//! Finds a node for each pod that has none, or says why there is none.

mod fit;

use crate::{pod, refusal};
use flyball::{Action, Cache, Context, Controller, Event, Key, Result};
use k8s_openapi::api::core::v1::{Binding, Node, ObjectReference, Pod, PodCondition, PodSpec};
use kube::{Api, Resource, ResourceExt, api::PostParams};
use std::sync::Arc;

/// The name by which pods ask for this scheduler; also who its events are from.
const NAME: &str = "default-scheduler";

/// The controller that schedules pods.
pub(crate) fn controller() -> Controller<Pod> {
    Controller::new(schedule)
        .named("scheduler")
        .reads::<Node>()
        .watches(|_: Arc<Node>, cache| waiting(&cache))
        .watches(freed)
}

async fn schedule(pod: Arc<Pod>, ctx: Context) -> Result {
    let spec = pod.spec.clone().unwrap_or_default();
    if !is_waiting(&pod) {
        return Ok(Action::await_change());
    }
    let nodes: Vec<Arc<Node>> = ctx.list::<Node>().await?;
    let placed = if fit::asks_for_resources(&spec) {
        ctx.cache().list::<Pod>()?
    } else {
        Vec::new()
    };
    match fit::choose(&spec, &nodes, &placed) {
        Ok(node) => bind(&pod, &node.name_any(), &ctx).await?,
        Err(why) => refuse(&pod, &why, &ctx).await?,
    }
    Ok(Action::await_change())
}

async fn bind(pod: &Pod, node: &str, ctx: &Context) -> Result<()> {
    let pods: Api<Pod> = Api::namespaced(ctx.client(), &pod.namespace().unwrap_or_default());
    let mut binding = Binding {
        target: ObjectReference {
            kind: Some("Node".into()),
            name: Some(node.into()),
            ..ObjectReference::default()
        },
        ..Binding::default()
    };
    (binding.metadata.name, binding.metadata.uid) = (pod.metadata.name.clone(), pod.metadata.uid.clone());
    let (name, params) = (pod.name_any(), PostParams::default());
    let bound: kube::Result<kube::core::Status> = pods.create_subresource("binding", &name, &params, &binding).await;
    match bound {
        // Gone, or bound already and the cache does not know yet.
        Err(error) if refusal::is_not_found(&error) || refusal::is_conflict(&error) => return Ok(()),
        bound => bound?,
    };
    let note = format!("Successfully assigned {} to {node}", Key::of(pod));
    ctx.event(Event::normal("Scheduled", note).action("Binding").by(NAME));
    Ok(())
}

/// Says why a pod has to wait.
async fn refuse(pod: &Pod, why: &str, ctx: &Context) -> Result<()> {
    let known = pod::condition(pod, "PodScheduled");
    if known.is_some_and(|known| known.status == "False" && known.message.as_deref() == Some(why)) {
        return Ok(());
    }
    let mut status = pod.status.clone().unwrap_or_default();
    let conditions = status.conditions.get_or_insert_default();
    conditions.retain(|condition| condition.type_ != "PodScheduled");
    conditions.push(PodCondition {
        type_: "PodScheduled".into(),
        status: "False".into(),
        reason: Some("Unschedulable".into()),
        message: Some(why.into()),
        last_transition_time: Some(ctx.now()),
        observed_generation: pod.metadata.generation,
        ..PodCondition::default()
    });
    ctx.set_status(status).await?;
    ctx.event(Event::warning("FailedScheduling", why).action("Scheduling").by(NAME));
    Ok(())
}

fn is_waiting(pod: &Pod) -> bool {
    let asks_for_us = |spec: &PodSpec| {
        let gated = spec.scheduling_gates.iter().flatten().next().is_some();
        spec.scheduler_name.as_deref() == Some(NAME) && !gated
    };
    pod::node(pod).is_none() && !pod::has_ended(pod) && pod.spec.as_ref().is_some_and(asks_for_us)
}

/// All pods that wait: a node has changed.
fn waiting(cache: &Cache) -> Result<Vec<Key>> {
    let pods = cache.list::<Pod>()?.into_iter();
    Ok(pods.filter(|pod| is_waiting(pod)).map(|pod| Key::of(&*pod)).collect())
}

/// All pods that wait, if this pod has left and made room.
fn freed(pod: Arc<Pod>, cache: Cache) -> Result<Vec<Key>> {
    let left = pod::has_ended(&pod) || cache.get::<Pod>(Key::of(&*pod))?.is_none();
    let made_room = left && pod.spec.as_ref().is_some_and(fit::asks_for_resources);
    if made_room && pod.meta().uid.is_some() {
        waiting(&cache)
    } else {
        Ok(Vec::new())
    }
}
