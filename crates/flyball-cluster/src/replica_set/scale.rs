//! Creates the pods that a ReplicaSet lacks, and deletes those that it has too many of.

use super::rank::rank;
use crate::{owner, refusal};
use flyball::{Context, Event, Result};
use futures::future::join_all;
use k8s_openapi::{
    api::{apps::v1::ReplicaSet, core::v1::Pod},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, PostParams, Preconditions},
};
use std::sync::Arc;

/// The most pods that are created or deleted at once.
const BURST: usize = 500;

/// Brings the number of pods to what the ReplicaSet asks for. An error says why it could not be done.
// pkg/controller/replicaset/replica_set.go, manageReplicas
pub(crate) async fn scale(set: &ReplicaSet, active: &[Arc<Pod>], ctx: &Context) -> Result<(), kube::Error> {
    let wanted = set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1).max(0) as usize;
    match (active.len(), wanted) {
        (some, more) if some < more => create(set, (more - some).min(BURST), ctx).await,
        (some, fewer) if some > fewer => {
            let mut pods = active.to_vec();
            if fewer > 0 {
                rank(&mut pods, &related(set, ctx).await, ctx.now().0);
            }
            pods.truncate((some - fewer).min(BURST));
            let deleted = join_all(pods.iter().map(|pod| delete(set, pod, ctx))).await;
            deleted.into_iter().collect()
        }
        _ => Ok(()),
    }
}

/// Creates pods in batches that double, so that what will fail a thousand times fails once.
async fn create(set: &ReplicaSet, count: usize, ctx: &Context) -> Result<(), kube::Error> {
    let (mut left, mut batch) = (count, 1);
    while left > 0 {
        let now = batch.min(left);
        let created = join_all((0..now).map(|_| create_one(set, ctx))).await;
        created.into_iter().collect::<Result<(), _>>()?;
        (left, batch) = (left - now, batch * 2);
    }
    Ok(())
}

async fn create_one(set: &ReplicaSet, ctx: &Context) -> Result<(), kube::Error> {
    match api(set, ctx).create(&PostParams::default(), &pod(set)).await {
        Ok(pod) => ctx.event(event(Event::normal("SuccessfulCreate", format!("Created pod: {}", pod.name_any())))),
        Err(error) if refusal::is_namespace_terminating(&error) => {}
        Err(error) => {
            let note = format!("Error creating: {}", refusal::message(&error));
            ctx.event(event(Event::warning("FailedCreate", note)));
            return Err(error);
        }
    }
    Ok(())
}

async fn delete(set: &ReplicaSet, pod: &Pod, ctx: &Context) -> Result<(), kube::Error> {
    let name = pod.name_any();
    let params = DeleteParams {
        preconditions: Some(Preconditions { uid: pod.uid(), resource_version: None }),
        ..DeleteParams::default()
    };
    match api(set, ctx).delete(&name, &params).await {
        Ok(_) => ctx.event(event(Event::normal("SuccessfulDelete", format!("Deleted pod: {name}")))),
        Err(error) if refusal::is_not_found(&error) || refusal::is_conflict(&error) => {}
        Err(error) => {
            let note = format!("Error deleting: {}", refusal::message(&error));
            ctx.event(event(Event::warning("FailedDelete", note)));
            return Err(error);
        }
    }
    Ok(())
}

/// A pod of the set's template. The API server gives it a name.
fn pod(set: &ReplicaSet) -> Pod {
    let template = set.spec.as_ref().and_then(|spec| spec.template.clone()).unwrap_or_default();
    let meta = template.metadata.unwrap_or_default();
    let metadata = ObjectMeta {
        generate_name: Some(format!("{}-", set.name_any())),
        namespace: set.namespace(),
        labels: meta.labels,
        annotations: meta.annotations,
        finalizers: meta.finalizers,
        owner_references: Some(vec![owner::reference(set)]),
        ..ObjectMeta::default()
    };
    Pod { metadata, spec: template.spec, status: None }
}

/// The pods of all ReplicaSets of the same Deployment.
async fn related(set: &ReplicaSet, ctx: &Context) -> Vec<Arc<Pod>> {
    let owner = owner::controller(&set.metadata).map(|owner| owner.uid.as_str());
    let sets = ctx.list::<ReplicaSet>().await.unwrap_or_default();
    let is_sibling = |other: &&Arc<ReplicaSet>| {
        other.metadata.uid == set.metadata.uid || (owner.is_some() && owner::is_controlled_by(&other.metadata, owner))
    };
    let siblings: Vec<_> = sets.iter().filter(is_sibling).filter_map(|set| set.metadata.uid.as_deref()).collect();
    let pods = ctx.list::<Pod>().await.unwrap_or_default().into_iter();
    pods.filter(|pod| siblings.iter().any(|uid| owner::is_controlled_by(&pod.metadata, Some(uid))))
        .collect()
}

fn event(event: Event) -> Event {
    event.by("replicaset-controller")
}

fn api(set: &ReplicaSet, ctx: &Context) -> Api<Pod> {
    Api::namespaced(ctx.client(), &set.namespace().unwrap_or_default())
}
