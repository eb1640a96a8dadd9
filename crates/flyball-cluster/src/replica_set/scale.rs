//! Creates the pods that a ReplicaSet lacks, and deletes those that it has too many of.

use super::rank::rank;
use crate::{
    claim::Member,
    lookup::{CHILDREN, controlled_by},
    owner, refusal, template,
};
use flyball::{Context, Event, Result};
use futures::future::join_all;
use k8s_openapi::api::{apps::v1::ReplicaSet, core::v1::Pod};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, PartialObjectMeta, PostParams, Preconditions},
};
use std::{collections::BTreeSet, sync::Arc};

/// The most pods that are created or deleted at once.
const BURST: usize = 500;

/// Brings the number of pods to what a set asks for, which `owner` is or stands for. An error says why it could not be done.
// pkg/controller/replicaset/replica_set.go, manageReplicas
pub(crate) async fn scale<K: Member>(
    owner: &K,
    set: &ReplicaSet,
    name: &'static str,
    active: &[Arc<Pod>],
    ctx: &Context,
) -> Result<(), kube::Error> {
    let template = set.spec.as_ref().and_then(|spec| spec.template.clone()).unwrap_or_default();
    let new = template::pod(&template, owner);
    let wanted = set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1).max(0) as usize;
    match (active.len(), wanted) {
        (some, more) if some < more => create(&new, (more - some).min(BURST), name, ctx).await,
        (some, fewer) if some > fewer => {
            let mut pods = active.to_vec();
            if fewer > 0 {
                rank(&mut pods, &related(set, ctx).await.unwrap_or_default(), ctx.now().0);
            }
            pods.truncate((some - fewer).min(BURST));
            let deleted = join_all(pods.iter().map(|pod| delete(pod, name, ctx))).await;
            deleted.into_iter().collect()
        }
        _ => Ok(()),
    }
}

/// Creates pods in batches that double, so that what will fail a thousand times fails once.
async fn create(new: &Pod, count: usize, name: &'static str, ctx: &Context) -> Result<(), kube::Error> {
    let (mut left, mut batch) = (count, 1);
    while left > 0 {
        let now = batch.min(left);
        let created = join_all((0..now).map(|_| create_one(new, name, ctx))).await;
        created.into_iter().collect::<Result<(), _>>()?;
        (left, batch) = (left - now, batch * 2);
    }
    Ok(())
}

async fn create_one(new: &Pod, from: &'static str, ctx: &Context) -> Result<(), kube::Error> {
    match api(new, ctx).create(&PostParams::default(), new).await {
        Ok(pod) => ctx.event(Event::normal("SuccessfulCreate", format!("Created pod: {}", pod.name_any())).by(from)),
        Err(error) if refusal::is_namespace_terminating(&error) => {}
        Err(error) => {
            let note = format!("Error creating: {}", refusal::message(&error));
            ctx.event(Event::warning("FailedCreate", note).by(from));
            return Err(error);
        }
    }
    Ok(())
}

async fn delete(pod: &Pod, from: &'static str, ctx: &Context) -> Result<(), kube::Error> {
    let name = pod.name_any();
    let params = DeleteParams {
        preconditions: Some(Preconditions { uid: pod.uid(), resource_version: None }),
        ..DeleteParams::default()
    };
    match api(pod, ctx).delete(&name, &params).await {
        Ok(_) => ctx.event(Event::normal("SuccessfulDelete", format!("Deleted pod: {name}")).by(from)),
        Err(error) if refusal::is_not_found(&error) || refusal::is_conflict(&error) => {}
        Err(error) => {
            let note = format!("Error deleting: {}", refusal::message(&error));
            ctx.event(Event::warning("FailedDelete", note).by(from));
            return Err(error);
        }
    }
    Ok(())
}

/// The pods of all ReplicaSets of the same Deployment.
async fn related(set: &ReplicaSet, ctx: &Context) -> Result<Vec<Arc<Pod>>> {
    let sets = match owner::controller(&set.metadata) {
        Some(owner) => {
            ctx.by_index::<PartialObjectMeta<ReplicaSet>>(CHILDREN, &controlled_by(&owner.uid))
                .await?
        }
        None => Vec::new(),
    };
    let siblings = sets.iter().filter_map(|set| set.metadata.uid.as_ref()).chain(&set.metadata.uid);
    let mut pods = Vec::new();
    for uid in siblings.collect::<BTreeSet<_>>() {
        pods.extend(ctx.by_index::<Pod>(CHILDREN, &controlled_by(uid)).await?);
    }
    Ok(pods)
}

fn api(pod: &Pod, ctx: &Context) -> Api<Pod> {
    Api::namespaced(ctx.client(), &pod.namespace().unwrap_or_default())
}
