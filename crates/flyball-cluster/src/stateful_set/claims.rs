//! The volume claims of a StatefulSet's pods: made before the pod, and owned as the retention policy says.

use super::{event, identity};
use crate::{owner, refusal};
use flyball::{Context, Error, Event, Key, Result};
use k8s_openapi::{
    api::{
        apps::v1::StatefulSet,
        core::v1::{PersistentVolumeClaim, PersistentVolumeClaimVolumeSource, Pod, PodSpec, Volume},
    },
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;

/// The claims of the pod with an ordinal, each with the name of its volume.
fn of(set: &StatefulSet, ordinal: i32) -> Vec<(String, PersistentVolumeClaim)> {
    let spec = set.spec.as_ref();
    let selected = spec.and_then(|spec| spec.selector.match_labels.clone()).unwrap_or_default();
    let templates = spec.and_then(|spec| spec.volume_claim_templates.clone()).unwrap_or_default();
    let claim = |mut claim: PersistentVolumeClaim| {
        let volume = claim.name_any();
        claim.metadata.name = Some(format!("{volume}-{}-{ordinal}", set.name_any()));
        claim.metadata.namespace = set.namespace();
        claim.metadata.labels.get_or_insert_default().extend(selected.clone());
        claim.status = None;
        (volume, claim)
    };
    templates.into_iter().map(claim).collect()
}

/// Mounts the claims of an ordinal into a pod.
// stateful_set_utils.go, updateStorage
pub(super) fn mount(spec: &mut PodSpec, set: &StatefulSet, ordinal: i32) {
    let claims = of(set, ordinal);
    let others = spec.volumes.take().unwrap_or_default();
    let others = others.into_iter().filter(|volume| claims.iter().all(|(name, _)| *name != volume.name));
    let mounted = claims.iter().map(|(name, claim)| Volume {
        name: name.clone(),
        persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
            claim_name: claim.name_any(),
            read_only: None,
        }),
        ..Volume::default()
    });
    let volumes: Vec<_> = mounted.chain(others).collect();
    spec.volumes = (!volumes.is_empty()).then_some(volumes);
}

/// Makes the claims of an ordinal that are missing.
pub(super) async fn create(set: &StatefulSet, ordinal: i32, ctx: &Context) -> Result<()> {
    let (pod, owner) = (identity::pod_name(set, ordinal), set.name_any());
    for (_, claim) in of(set, ordinal) {
        let name = claim.name_any();
        match ctx.get::<PersistentVolumeClaim>(&*name).await? {
            Some(known) if known.metadata.deletion_timestamp.is_some() => {
                return Err(Error::retry(format!("pvc {name} is being deleted")));
            }
            Some(_) => continue,
            None => {}
        }
        match api(set, ctx).create(&PostParams::default(), &claim).await {
            Err(error) if refusal::already_exists(&error) => {}
            Err(error) => {
                let why = refusal::message(&error);
                let note = format!("Create Claim {name} for Pod {pod} in StatefulSet {owner} failed error: {why}");
                ctx.event(event(Event::warning("FailedCreate", note)));
                return Err(error.into());
            }
            Ok(_) => {
                let note = format!("Create Claim {name} Pod {pod} in StatefulSet {owner} success");
                ctx.event(event(Event::normal("SuccessfulCreate", note)));
            }
        }
    }
    Ok(())
}

/// Whether a claim still belongs to an earlier pod of that ordinal, and is about to go with it.
pub(super) async fn are_stale(set: &StatefulSet, ordinal: i32, ctx: &Context) -> Result<bool> {
    if policy(set).1 == Retention::Retain {
        return Ok(false);
    }
    for (_, claim) in of(set, ordinal) {
        let known = ctx.get::<PersistentVolumeClaim>(claim.name_any()).await?;
        let pod = identity::pod_name(set, ordinal);
        let of_pod = |owner: &OwnerReference| owner.kind == "Pod" && owner.name == pod;
        if known.is_some_and(|known| known.owner_references().iter().any(of_pod)) {
            return Ok(true);
        }
    }
    Ok(false)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Retention {
    Retain,
    Delete,
}

/// What becomes of claims when the set is deleted, and when it is scaled.
fn policy(set: &StatefulSet) -> (Retention, Retention) {
    let policy = set.spec.as_ref().and_then(|spec| spec.persistent_volume_claim_retention_policy.clone());
    let policy = policy.unwrap_or_default();
    let read = |text: Option<String>| match text.as_deref() {
        Some("Delete") => Retention::Delete,
        _ => Retention::Retain,
    };
    (read(policy.when_deleted), read(policy.when_scaled))
}

/// Lets the claims of a pod be owned by what they go with: the set, the pod, or nothing.
// stateful_set_utils.go, updateClaimOwnerRefForSetAndPod
pub(super) async fn keep_owners(set: &StatefulSet, pod: &Pod, ctx: &Context) -> Result<()> {
    let Some(ordinal) = identity::ordinal(&pod.name_any()) else {
        return Ok(());
    };
    let is_condemned = !identity::range(set).contains(&ordinal);
    for (_, claim) in of(set, ordinal) {
        let key = Key::namespaced(set.namespace().unwrap_or_default(), claim.name_any());
        let Some(known) = ctx.get::<PersistentVolumeClaim>(key).await? else {
            continue;
        };
        let owners = known.owner_references();
        let is_ours = |owner: &OwnerReference| {
            (owner.kind == "StatefulSet" && owner.name == set.name_any())
                || (owner.kind == "Pod" && owner.name == pod.name_any())
        };
        let is_stale = |owner: &OwnerReference| {
            is_ours(owner) && owner.uid != set.uid().unwrap_or_default() && owner.uid != pod.uid().unwrap_or_default()
        };
        let controlled = owners.iter().any(|owner| owner.controller == Some(true) && !is_ours(owner));
        if owners.iter().any(is_stale) {
            continue;
        }
        let mut wanted: Vec<_> = owners.iter().filter(|owner| !is_ours(owner)).cloned().collect();
        if !controlled {
            wanted.extend(match policy(set) {
                (_, Retention::Delete) if is_condemned => Some(owner::reference(pod)),
                (Retention::Delete, _) => Some(owner::reference(set)),
                _ => None,
            });
        }
        if wanted != owners {
            let patch = Patch::Merge(json!({ "metadata": {
                "resourceVersion": known.metadata.resource_version,
                "ownerReferences": wanted,
            } }));
            api(set, ctx).patch(&known.name_any(), &PatchParams::default(), &patch).await?;
        }
    }
    Ok(())
}

fn api(set: &StatefulSet, ctx: &Context) -> Api<PersistentVolumeClaim> {
    Api::namespaced(ctx.client(), &set.namespace().unwrap_or_default())
}
