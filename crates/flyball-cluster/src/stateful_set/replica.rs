//! One pod of a StatefulSet: made, kept as it should be, or deleted.

use super::{claims, event, identity, is_unavailable};
use crate::{history::HASH_LABEL, pod, refusal, template};
use flyball::{Context, Event, Result};
use k8s_openapi::api::{
    apps::v1::StatefulSet,
    core::v1::{Pod, PodTemplateSpec},
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions},
};
use serde_json::json;
use std::{cmp::Reverse, ops::ControlFlow, sync::Arc};

/// The revisions between which a set moves, by name.
pub(super) struct Templates {
    pub(super) current: (String, PodTemplateSpec),
    pub(super) updated: (String, PodTemplateSpec),
}

/// A place in the set, and the pod in it.
pub(super) struct Replica {
    pub(super) name: String,
    ordinal: i32,
    pub(super) pod: Option<Arc<Pod>>,
    /// What a new pod is made of.
    revision: (String, PodTemplateSpec),
}

/// The places of a set in order, and the pods that are too many, the highest ordinal first.
pub(super) fn sort(set: &StatefulSet, templates: &Templates, pods: &[Arc<Pod>]) -> (Vec<Replica>, Vec<Arc<Pod>>) {
    let range = identity::range(set);
    let ordinal = |pod: &Pod| identity::ordinal(&pod.name_any()).unwrap_or(-1);
    let (kept, mut condemned): (Vec<_>, Vec<_>) = pods.iter().cloned().partition(|pod| range.contains(&ordinal(pod)));
    condemned.sort_by_key(|pod| Reverse(ordinal(pod)));
    let replicas = range.clone().map(|number| Replica {
        name: identity::pod_name(set, number),
        ordinal: number,
        pod: kept.iter().find(|pod| ordinal(pod) == number).cloned(),
        revision: revision(set, templates, number, &kept).clone(),
    });
    (replicas.collect(), condemned)
}

/// The revision of a new pod: the current one below the partition, or as long as a rollout has not come so far.
// stateful_set_utils.go, newVersionedStatefulSetPod
fn revision<'a>(
    set: &StatefulSet,
    templates: &'a Templates,
    ordinal: i32,
    pods: &[Arc<Pod>],
) -> &'a (String, PodTemplateSpec) {
    let strategy = set.spec.as_ref().and_then(|spec| spec.update_strategy.clone()).unwrap_or_default();
    let start = identity::range(set).start;
    let is_current =
        |pod: &&Arc<Pod>| pod.metadata.deletion_timestamp.is_none() && identity::revision(pod) == templates.current.0;
    let current_replicas = match set.status.as_ref() {
        Some(status) => status.current_replicas.unwrap_or_default(),
        None => pods.iter().filter(is_current).count() as i32,
    };
    let rolling = strategy.type_.as_deref() != Some("OnDelete");
    let below = match strategy.rolling_update {
        None => start + current_replicas,
        Some(rolling) => start + rolling.partition.unwrap_or_default(),
    };
    if rolling && ordinal < below {
        &templates.current
    } else {
        &templates.updated
    }
}

/// Makes a missing pod, replaces one that has ended, and keeps its identity. Breaks if the next pod has to wait for this one.
// stateful_set_control.go, processReplica
pub(super) async fn keep(
    set: &StatefulSet,
    replica: &Replica,
    ordered: bool,
    ctx: &Context,
) -> Result<ControlFlow<()>> {
    let Some(pod) = &replica.pod else {
        if claims::are_stale(set, replica.ordinal, ctx).await? {
            return Ok(ControlFlow::Break(()));
        }
        create(set, replica, ctx).await?;
        return Ok(ControlFlow::Break(()));
    };
    if pod::has_ended(pod) {
        if pod.metadata.deletion_timestamp.is_none() {
            delete(set, pod, ctx).await?;
        }
        return Ok(ControlFlow::Break(()));
    }
    if pod::phase(pod) == "Pending" {
        claims::create(set, replica.ordinal, ctx).await?;
        claims::keep_owners(set, pod, ctx).await?;
    }
    if ordered && (pod.metadata.deletion_timestamp.is_some() || is_unavailable(set, pod, ctx.now().0)) {
        return Ok(ControlFlow::Break(()));
    }
    claims::keep_owners(set, pod, ctx).await?;
    if !identity::matches(pod) {
        let labels = json!({ identity::POD_NAME: replica.name, identity::POD_INDEX: replica.ordinal.to_string() });
        let patch = Patch::Merge(json!({ "metadata": { "labels": labels } }));
        api(set, ctx).patch(&replica.name, &PatchParams::default(), &patch).await?;
        let note = format!("Update Pod {} in StatefulSet {} successful", replica.name, set.name_any());
        ctx.event(event(Event::normal("SuccessfulUpdate", note)));
    }
    Ok(ControlFlow::Continue(()))
}

async fn create(set: &StatefulSet, replica: &Replica, ctx: &Context) -> Result<()> {
    let created = async {
        claims::create(set, replica.ordinal, ctx).await?;
        let created = api(set, ctx).create(&PostParams::default(), &pod_of(set, replica)).await?;
        claims::keep_owners(set, &created, ctx).await
    };
    let name = set.name_any();
    match created.await {
        Ok(()) => {
            let note = format!("Create Pod {} in StatefulSet {name} successful", replica.name);
            ctx.event(event(Event::normal("SuccessfulCreate", note)));
            Ok(())
        }
        Err(error) if error.find().is_some_and(refusal::is_namespace_terminating) => Ok(()),
        Err(error) if error.find().is_some_and(refusal::already_exists) => Err(error),
        Err(error) => {
            let why = error.find().map_or_else(|| error.to_string(), refusal::message);
            let note = format!("Create Pod {} in StatefulSet {name} failed error: {why}", replica.name);
            ctx.event(event(Event::warning("FailedCreate", note)));
            Err(error)
        }
    }
}

fn pod_of(set: &StatefulSet, replica: &Replica) -> Pod {
    let (revision, template) = &replica.revision;
    let mut pod = template::pod(template, set);
    identity::set_identity(&mut pod, set, replica.ordinal);
    pod.metadata.labels.get_or_insert_default().insert(HASH_LABEL.into(), revision.clone());
    let spec = pod.spec.get_or_insert_default();
    spec.hostname = Some(replica.name.clone());
    spec.subdomain = set.spec.as_ref().and_then(|spec| spec.service_name.clone());
    claims::mount(spec, set, replica.ordinal);
    pod
}

/// Deletes a pod, and says so.
pub(super) async fn delete(set: &StatefulSet, pod: &Pod, ctx: &Context) -> Result<()> {
    let (name, owner) = (pod.name_any(), set.name_any());
    let params = DeleteParams {
        preconditions: Some(Preconditions { uid: pod.uid(), resource_version: None }),
        ..DeleteParams::default()
    };
    match api(set, ctx).delete(&name, &params).await {
        Err(error) if !refusal::is_not_found(&error) => {
            let note = format!("Delete Pod {name} in StatefulSet {owner} failed error: {}", refusal::message(&error));
            ctx.event(event(Event::warning("FailedDelete", note)));
            Err(error.into())
        }
        _ => {
            let note = format!("Delete Pod {name} in StatefulSet {owner} successful");
            ctx.event(event(Event::normal("SuccessfulDelete", note)));
            Ok(())
        }
    }
}

fn api(set: &StatefulSet, ctx: &Context) -> Api<Pod> {
    Api::namespaced(ctx.client(), &set.namespace().unwrap_or_default())
}
