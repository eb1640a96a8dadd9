//! What a Deployment's controller writes: ReplicaSets, their sizes and annotations, and the Deployment's status.

use super::{
    NAME, annotation,
    condition::{self, PROGRESSING},
    limits::{Limits, recreates},
    rollout::{Size, grow_new},
    sets::{self, Sets, replicas, size},
    status::deadline,
    step::Step,
};
use crate::{owner, refusal, template_hash};
use flyball::{Context, Event, Result};
use k8s_openapi::{
    api::apps::v1::{Deployment, ReplicaSet, ReplicaSetSpec},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions},
};
use serde_json::{Value, json};
use std::sync::Arc;

/// Takes a step of the rollout.
pub(super) async fn take(step: Step, deployment: &mut Deployment, sets: &Sets, ctx: &Context) -> Result<()> {
    match step {
        Step::Settled => Ok(()),
        Step::Create => create(deployment, sets, ctx).await,
        Step::Scale(targets) => {
            for (set, size) in targets {
                scale(deployment, &set, size, ctx).await?;
            }
            Ok(())
        }
    }
}

/// Gives the current ReplicaSet the annotations and the patience of its Deployment, and the Deployment its revision.
// sync.go, getNewReplicaSet
pub(super) async fn keep_annotations(deployment: &mut Deployment, sets: Sets, ctx: &Context) -> Result<Sets> {
    let Some(new) = sets.new.clone() else { return Ok(sets) };
    let annotations = annotation::of_new(deployment, &new.metadata, annotation::next_revision(&sets.old));
    let patience = deployment.spec.as_ref().and_then(|spec| spec.min_ready_seconds).unwrap_or_default();
    let known = new.spec.as_ref().and_then(|spec| spec.min_ready_seconds).unwrap_or_default();
    let mut sets = sets;
    if Some(&annotations) != new.metadata.annotations.as_ref() || patience != known {
        let patch = json!({
            "metadata": { "uid": new.metadata.uid, "annotations": annotations },
            "spec": { "minReadySeconds": patience },
        });
        sets.new = Some(Arc::new(patch_set(&new, patch, ctx).await?));
    }
    if let Some(revision) = annotations.get(annotation::REVISION) {
        let annotations = deployment.metadata.annotations.get_or_insert_default();
        annotations.insert(annotation::REVISION.into(), revision.clone());
    }
    let status = deployment.status.get_or_insert_default();
    if condition::get(status, PROGRESSING).is_none() && deadline(deployment).is_some() {
        progress(
            deployment,
            "FoundNewReplicaSet",
            format!("Found new replica set {:?}", new.name_any()),
            ctx,
        );
    }
    Ok(sets)
}

async fn create(deployment: &mut Deployment, sets: &Sets, ctx: &Context) -> Result<()> {
    let revision = annotation::next_revision(&sets.old);
    let set = new_set(deployment, sets, revision);
    let (name, size) = (set.name_any(), replicas(&set));
    match api(deployment, ctx).create(&PostParams::default(), &set).await {
        Ok(_) => {
            if size > 0 {
                let note = format!("Scaled up replica set {name} from 0 to {size}");
                ctx.event(Event::normal("ScalingReplicaSet", note).by(NAME));
            }
            progress(deployment, "NewReplicaSetCreated", format!("Created new replica set {name:?}"), ctx);
        }
        Err(error) if refusal::already_exists(&error) => return avoid_collision(deployment, &name, ctx).await,
        Err(error) if refusal::is_namespace_terminating(&error) => return Ok(()),
        Err(error) => {
            let note = format!("Failed to create new replica set {name:?}: {}", refusal::message(&error));
            ctx.event(Event::warning("ReplicaSetCreateError", note.clone()).by(NAME));
            fail(deployment, note, ctx).await?;
            return Err(error.into());
        }
    }
    let annotations = deployment.metadata.annotations.get_or_insert_default();
    annotations.insert(annotation::REVISION.into(), revision.to_string());
    Ok(())
}

/// The ReplicaSet of the current template, as large as it may be at first.
fn new_set(deployment: &Deployment, sets: &Sets, revision: i64) -> ReplicaSet {
    let spec = deployment.spec.clone().unwrap_or_default();
    let collisions = deployment.status.as_ref().and_then(|status| status.collision_count);
    let hash = template_hash::of(&spec.template, collisions);
    let (mut template, mut selector) = (spec.template, spec.selector);
    let labels = template.metadata.get_or_insert_default().labels.get_or_insert_default();
    labels.insert(template_hash::LABEL.into(), hash.clone());
    let labels = labels.clone();
    selector
        .match_labels
        .get_or_insert_default()
        .insert(template_hash::LABEL.into(), hash.clone());

    let limits = Limits::of(deployment);
    let old: Vec<Size> = sets.old.iter().map(|set| size(set)).collect();
    let size = if recreates(deployment) {
        limits.wanted
    } else {
        grow_new(limits, 0, &old)
    };
    let mut annotations = annotation::of_new(deployment, &ObjectMeta::default(), revision);
    annotations.extend(annotation::sizes(limits));
    ReplicaSet {
        metadata: ObjectMeta {
            name: Some(set_name(&deployment.name_any(), &hash)),
            namespace: deployment.namespace(),
            labels: Some(labels),
            annotations: Some(annotations),
            owner_references: Some(vec![owner::reference(deployment)]),
            ..ObjectMeta::default()
        },
        spec: Some(ReplicaSetSpec {
            replicas: Some(size),
            min_ready_seconds: spec.min_ready_seconds,
            selector,
            template: Some(template),
        }),
        status: None,
    }
}

/// The Deployment's name, cut so that it is one with the hash, too.
fn set_name(deployment: &str, hash: &str) -> String {
    const LONGEST: usize = 253;
    let end = deployment.len().min(LONGEST - 1 - hash.len());
    format!("{}-{hash}", &deployment[..end])
}

/// The name is taken: by our own ReplicaSet, which is fine, or by another one, which makes us take another name.
async fn avoid_collision(deployment: &mut Deployment, name: &str, ctx: &Context) -> Result<()> {
    let taken = api(deployment, ctx).get_opt(name).await?;
    let template = deployment.spec.as_ref().map(|spec| sets::unlabelled(&spec.template));
    let is_ours = taken.is_some_and(|set| {
        owner::is_controlled_by(&set.metadata, deployment.metadata.uid.as_deref())
            && sets::template_of(&set).map(sets::unlabelled) == template
    });
    if !is_ours {
        *deployment.status.get_or_insert_default().collision_count.get_or_insert(0) += 1;
    }
    Ok(())
}

// sync.go, scaleReplicaSet
async fn scale(deployment: &Deployment, set: &ReplicaSet, size: i32, ctx: &Context) -> Result<()> {
    let recorded: serde_json::Map<String, Value> = annotation::sizes(Limits::of(deployment))
        .into_iter()
        .map(|(name, value)| (name, value.into()))
        .collect();
    let patch = json!({
        "metadata": { "uid": set.metadata.uid, "annotations": recorded },
        "spec": { "replicas": size },
    });
    patch_set(set, patch, ctx).await?;
    let (before, name) = (replicas(set), set.name_any());
    if before != size {
        let direction = if before < size { "up" } else { "down" };
        let note = format!("Scaled {direction} replica set {name} from {before} to {size}");
        ctx.event(Event::normal("ScalingReplicaSet", note).by(NAME));
    }
    Ok(())
}

/// Deletes old ReplicaSets beyond those that are kept for going back to.
// sync.go, cleanupDeployment
pub(super) async fn forget_history(deployment: &Deployment, old: &[Arc<ReplicaSet>], ctx: &Context) -> Result<()> {
    let limit = deployment.spec.as_ref().and_then(|spec| spec.revision_history_limit);
    let Some(limit) = limit.filter(|limit| *limit != i32::MAX) else {
        return Ok(());
    };
    let mut kept: Vec<_> = old.iter().filter(|set| !owner::is_terminating(&set.metadata)).collect();
    kept.sort_by_key(|set| annotation::revision(set));
    let beyond = kept.len().saturating_sub(limit.max(0) as usize);
    for set in &kept[..beyond] {
        let status = sets::status(set).cloned().unwrap_or_default();
        if status.replicas != 0 || replicas(set) != 0 || status.observed_generation < set.metadata.generation {
            continue;
        }
        let preconditions = Some(Preconditions { uid: set.uid(), resource_version: None });
        let params = DeleteParams { preconditions, ..DeleteParams::default() };
        match api(deployment, ctx).delete(&set.name_any(), &params).await {
            Err(error) if !refusal::is_not_found(&error) => return Err(error.into()),
            _ => {}
        }
    }
    Ok(())
}

/// Notes that the rollout got on.
fn progress(deployment: &mut Deployment, reason: &str, message: String, ctx: &Context) {
    if deadline(deployment).is_some() {
        let condition = condition::new(PROGRESSING, "True", reason, message, ctx.now().0);
        condition::set(deployment.status.get_or_insert_default(), condition);
    }
}

/// Says at once that the rollout cannot get on; the caller gives up.
async fn fail(deployment: &Deployment, message: String, ctx: &Context) -> Result<()> {
    let mut next = deployment.clone();
    if deadline(deployment).is_some() {
        let condition = condition::new(PROGRESSING, "False", "ReplicaSetCreateError", message, ctx.now().0);
        condition::set(next.status.get_or_insert_default(), condition);
    }
    status(deployment, &next, ctx).await
}

/// Writes the status and the revision, if they changed.
///
/// The revision goes with the status: a change of annotations by another way would count as a new generation.
pub(super) async fn status(before: &Deployment, next: &Deployment, ctx: &Context) -> Result<()> {
    let revision = |deployment: &Deployment| deployment.annotations().get(annotation::REVISION).cloned();
    if before.status == next.status && revision(before) == revision(next) {
        return Ok(());
    }
    let mut status = json!(next.status);
    if let (Value::Object(before), Value::Object(next)) = (json!(before.status), &mut status) {
        for (field, _) in before {
            next.entry(field).or_insert(Value::Null);
        }
    }
    let mut metadata = json!({ "uid": before.metadata.uid });
    if let Some(revision) = revision(next) {
        metadata["annotations"] = json!({ annotation::REVISION: revision });
    }
    let patch = Patch::Merge(json!({ "metadata": metadata, "status": status }));
    let api: Api<Deployment> = Api::namespaced(ctx.client(), &before.namespace().unwrap_or_default());
    match api.patch_status(&before.name_any(), &PatchParams::default(), &patch).await {
        Err(error) if refusal::is_not_found(&error) => Ok(()),
        patched => patched.map(|_| ()).map_err(Into::into),
    }
}

async fn patch_set(set: &ReplicaSet, patch: Value, ctx: &Context) -> Result<ReplicaSet> {
    let api: Api<ReplicaSet> = Api::namespaced(ctx.client(), &set.namespace().unwrap_or_default());
    Ok(api.patch(&set.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await?)
}

fn api(deployment: &Deployment, ctx: &Context) -> Api<ReplicaSet> {
    Api::namespaced(ctx.client(), &deployment.namespace().unwrap_or_default())
}
