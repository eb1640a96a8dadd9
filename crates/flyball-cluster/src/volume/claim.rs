//! A volume claim: bound to a volume that fits, to a new one, or waiting.

use super::{
    BETA_STORAGE_PROVISIONER, BIND_COMPLETED, BOUND_BY_CONTROLLER, NAME, PROVISIONED_BY, PROVISIONER, SELECTED_NODE,
    STORAGE_PROVISIONER, class,
};
use crate::{refusal, resources};
use flyball::{Action, Cache, Context, Controller, Event, Key, Result};
use k8s_openapi::api::{
    core::v1::{PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimSpec, PersistentVolumeClaimStatus},
    storage::v1::StorageClass,
};
use kube::{
    Api, Resource, ResourceExt,
    api::{Patch, PatchParams, PostParams},
    core::{Selector, SelectorExt},
};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};

/// How often a claim that waits says so again.
const RETRY: Duration = Duration::from_secs(15);

/// The index of volumes that are free, by storage class.
const FREE: &str = "free";
/// The index of claims that wait for a volume.
const WAITING: &str = "waiting";

/// The controller of volume claims.
pub(crate) fn controller() -> Controller<PersistentVolumeClaim> {
    Controller::new(reconcile)
        .named("persistentvolume-binder")
        .reads::<PersistentVolume>()
        .reads::<StorageClass>()
        .index(FREE, |volume: &PersistentVolume| free(volume).into_iter().collect())
        .index(WAITING, |claim: &PersistentVolumeClaim| {
            let waits = !is_bound(claim) && volume_name(claim).is_none();
            waits.then(|| WAITING.to_owned()).into_iter().collect()
        })
        .watches(claims_of)
        .watches(|_: Arc<StorageClass>, cache| waiting(&cache))
}

/// The claim of a volume, or all that wait if the volume is free.
fn claims_of(volume: Arc<PersistentVolume>, cache: Cache) -> Result<Vec<Key>> {
    let claim = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref());
    match claim.and_then(|claim| Some(Key::namespaced(claim.namespace.clone()?, claim.name.clone()?))) {
        Some(claim) => Ok(vec![claim]),
        None => waiting(&cache),
    }
}

fn waiting(cache: &Cache) -> Result<Vec<Key>> {
    let claims = cache.by_index::<PersistentVolumeClaim>(WAITING, WAITING)?;
    Ok(claims.iter().map(|claim| Key::of(&**claim)).collect())
}

// pkg/controller/volume/persistentvolume/pv_controller.go, syncClaim
async fn reconcile(claim: Arc<PersistentVolumeClaim>, ctx: Context) -> Result {
    match volume_name(&claim) {
        Some(name) => match ctx.get::<PersistentVolume>(Key::cluster(name)).await? {
            Some(volume) => bind(&claim, &volume, &ctx).await,
            None if is_bound(&claim) => lose(&claim, &ctx).await,
            None => pend(&ctx).await,
        },
        None => find(&claim, &ctx).await,
    }
}

async fn find(claim: &PersistentVolumeClaim, ctx: &Context) -> Result {
    if class::name(claim).is_none()
        && let Some(class) = class::default(ctx).await?
    {
        let patch = Patch::Merge(json!({ "spec": { "storageClassName": class.name_any() } }));
        api(claim, ctx).patch(&claim.name_any(), &PatchParams::default(), &patch).await?;
        return Ok(Action::await_change());
    }
    if let Some(volume) = matching(claim, ctx).await? {
        return bind(claim, &volume, ctx).await;
    }
    set_phase("Pending", ctx).await?;
    let Some(class) = class::of(claim, ctx).await? else {
        let note = match class::name(claim).filter(|name| !name.is_empty()) {
            Some(name) => {
                ctx.event(warning("ProvisioningFailed", format!("storageclass.storage.k8s.io {name:?} not found")));
                return Ok(Action::requeue_after(RETRY));
            }
            None => "no persistent volumes available for this claim and no storage class is set",
        };
        ctx.event(normal("FailedBinding", note.into()));
        return Ok(Action::requeue_after(RETRY));
    };
    let delayed = class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer");
    if delayed && !claim.annotations().contains_key(SELECTED_NODE) {
        let note = "waiting for first consumer to be created before binding";
        ctx.event(normal("WaitForFirstConsumer", note.into()));
        return Ok(Action::requeue_after(RETRY));
    }
    provision(claim, &class, ctx).await
}

/// Makes a simulated volume, or leaves it to the class's provisioner.
async fn provision(claim: &PersistentVolumeClaim, class: &StorageClass, ctx: &Context) -> Result {
    let provisioner = &class.provisioner;
    if provisioner == "kubernetes.io/no-provisioner" {
        let note = "no persistent volumes available for this claim and no storage class is set";
        ctx.event(normal("FailedBinding", note.into()));
        return Ok(Action::requeue_after(RETRY));
    }
    if claim.annotations().get(STORAGE_PROVISIONER) != Some(provisioner) {
        let annotations = json!({ STORAGE_PROVISIONER: provisioner, BETA_STORAGE_PROVISIONER: provisioner });
        let patch = Patch::Merge(json!({ "metadata": { "annotations": annotations } }));
        api(claim, ctx).patch(&claim.name_any(), &PatchParams::default(), &patch).await?;
    }
    if provisioner != PROVISIONER {
        let note = format!(
            "Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually by the system \
             administrator. If volume creation is delayed, please verify that the provisioner is running and correctly registered."
        );
        ctx.event(normal("ExternalProvisioning", note));
        return Ok(Action::requeue_after(RETRY));
    }
    let volume = simulated(claim, class);
    match Api::<PersistentVolume>::all(ctx.client()).create(&PostParams::default(), &volume).await {
        Err(error) if !refusal::already_exists(&error) => return Err(error.into()),
        Err(_) => {}
        Ok(_) => ctx.event(normal(
            "ProvisioningSucceeded",
            format!("Successfully provisioned volume {}", volume.name_any()),
        )),
    }
    bind(claim, &volume, ctx).await
}

fn simulated(claim: &PersistentVolumeClaim, class: &StorageClass) -> PersistentVolume {
    let spec = spec(claim);
    let name = format!("pvc-{}", claim.uid().unwrap_or_default());
    let affinity = claim.annotations().get(SELECTED_NODE).map(|node| {
        let term =
            json!({ "matchExpressions": [{ "key": "kubernetes.io/hostname", "operator": "In", "values": [node] }] });
        json!({ "required": { "nodeSelectorTerms": [term] } })
    });
    let volume = json!({
        "metadata": { "name": name, "annotations": { PROVISIONED_BY: PROVISIONER } },
        "spec": {
            "accessModes": spec.access_modes,
            "capacity": { "storage": requested(claim) },
            "claimRef": reference(claim),
            "hostPath": { "path": format!("/var/lib/flyball/volumes/{name}"), "type": "DirectoryOrCreate" },
            "nodeAffinity": affinity,
            "persistentVolumeReclaimPolicy": class.reclaim_policy,
            "storageClassName": class.name_any(),
            "volumeMode": spec.volume_mode,
        },
    });
    serde_json::from_value(volume).expect("a volume is one")
}

/// Binds a claim and a volume to each other.
async fn bind(claim: &PersistentVolumeClaim, volume: &PersistentVolume, ctx: &Context) -> Result {
    let bound_to = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref());
    let is_ours = bound_to.is_some_and(|bound| {
        (&bound.namespace, &bound.name) == (&claim.namespace(), &claim.metadata.name)
            && bound.uid.as_ref().is_none_or(|uid| Some(uid) == claim.metadata.uid.as_ref())
    });
    if bound_to.is_some() && !is_ours {
        return pend(ctx).await;
    }
    let name = volume.name_any();
    if bound_to.is_none_or(|bound| bound.uid.is_none()) {
        let mut patch = json!({ "spec": { "claimRef": reference(claim) } });
        if bound_to.is_none() {
            patch["metadata"] = json!({ "annotations": { BOUND_BY_CONTROLLER: "yes" } });
        }
        let volumes: Api<PersistentVolume> = Api::all(ctx.client());
        volumes.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await?;
    }
    if !is_bound(claim) || volume_name(claim).is_none() {
        let mut annotations = json!({ BIND_COMPLETED: "yes" });
        if volume_name(claim).is_none() {
            annotations[BOUND_BY_CONTROLLER] = "yes".into();
        }
        let patch = json!({ "metadata": { "annotations": annotations }, "spec": { "volumeName": name } });
        api(claim, ctx)
            .patch(&claim.name_any(), &PatchParams::default(), &Patch::Merge(patch))
            .await?;
    }
    let spec = volume.spec.clone().unwrap_or_default();
    ctx.set_status(PersistentVolumeClaimStatus {
        phase: Some("Bound".into()),
        access_modes: spec.access_modes,
        capacity: spec.capacity,
        ..PersistentVolumeClaimStatus::default()
    })
    .await?;
    Ok(Action::await_change())
}

/// The smallest free volume that fits a claim.
// pkg/volume/util (FindMatchingVolume)
async fn matching(claim: &PersistentVolumeClaim, ctx: &Context) -> Result<Option<Arc<PersistentVolume>>> {
    let spec = spec(claim);
    let selector = spec.selector.clone().and_then(|selector| Selector::try_from(selector).ok());
    let needed = spec.resources.as_ref().and_then(|resources| resources.requests.as_ref());
    let needed = resources::amounts(needed).remove("storage").unwrap_or_default();
    let modes = spec.access_modes.clone().unwrap_or_default();
    let size = |volume: &PersistentVolume| {
        let capacity = volume.spec.as_ref().and_then(|spec| spec.capacity.as_ref());
        resources::amounts(capacity).remove("storage").unwrap_or_default()
    };
    let class = class::name(claim).unwrap_or_default();
    let mut volumes = ctx.by_index::<PersistentVolume>(FREE, &format!("class/{class}")).await?;
    volumes.retain(|volume| {
        let offered = volume.spec.clone().unwrap_or_default();
        let offers = offered.access_modes.unwrap_or_default();
        size(volume) >= needed
            && modes.iter().all(|mode| offers.contains(mode))
            && offered.volume_mode == spec.volume_mode
            && selector.as_ref().is_none_or(|selector| selector.matches(volume.labels()))
            && offered.volume_attributes_class_name == spec.volume_attributes_class_name
    });
    let reserved = ctx
        .by_index::<PersistentVolume>(FREE, &claim_value(claim.namespace(), claim.name_any()))
        .await?;
    let smallest = volumes.into_iter().min_by_key(|volume| (size(volume), volume.name_any()));
    Ok(reserved.into_iter().next().or(smallest))
}

/// By what a free volume is found: its class, or the claim that it is reserved for.
fn free(volume: &PersistentVolume) -> Option<String> {
    let spec = volume.spec.as_ref()?;
    if volume.metadata.deletion_timestamp.is_some() {
        return None;
    }
    match &spec.claim_ref {
        None => Some(format!("class/{}", spec.storage_class_name.as_deref().unwrap_or_default())),
        Some(claim) if claim.uid.is_none() => Some(claim_value(claim.namespace.clone(), claim.name.clone()?)),
        Some(_) => None,
    }
}

fn claim_value(namespace: Option<String>, name: String) -> String {
    format!("claim/{}/{name}", namespace.unwrap_or_default())
}

async fn pend(ctx: &Context) -> Result {
    set_phase("Pending", ctx).await?;
    Ok(Action::await_change())
}

async fn set_phase(phase: &str, ctx: &Context) -> Result<()> {
    let status = PersistentVolumeClaimStatus {
        phase: Some(phase.into()),
        ..PersistentVolumeClaimStatus::default()
    };
    ctx.set_status(status).await
}

async fn lose(claim: &PersistentVolumeClaim, ctx: &Context) -> Result {
    let known = claim.status.as_ref().and_then(|status| status.phase.as_deref());
    if known != Some("Lost") {
        let note = "Bound claim has lost its PersistentVolume. Data on the volume is lost!";
        ctx.event(warning("ClaimLost", note.into()));
    }
    set_phase("Lost", ctx).await?;
    Ok(Action::await_change())
}

fn reference(claim: &PersistentVolumeClaim) -> Value {
    let mut reference = claim.object_ref(&());
    reference.resource_version = claim.resource_version();
    json!(reference)
}

fn requested(claim: &PersistentVolumeClaim) -> Value {
    let requests = spec(claim).resources.and_then(|resources| resources.requests);
    json!(requests.and_then(|mut requests| requests.remove("storage")))
}

fn spec(claim: &PersistentVolumeClaim) -> PersistentVolumeClaimSpec {
    claim.spec.clone().unwrap_or_default()
}

fn volume_name(claim: &PersistentVolumeClaim) -> Option<&str> {
    let name = claim.spec.as_ref().and_then(|spec| spec.volume_name.as_deref());
    name.filter(|name| !name.is_empty())
}

fn is_bound(claim: &PersistentVolumeClaim) -> bool {
    claim.annotations().contains_key(BIND_COMPLETED)
}

fn normal(reason: &str, note: String) -> Event {
    Event::normal(reason, note).by(NAME)
}

fn warning(reason: &str, note: String) -> Event {
    Event::warning(reason, note).by(NAME)
}

fn api(claim: &PersistentVolumeClaim, ctx: &Context) -> Api<PersistentVolumeClaim> {
    Api::namespaced(ctx.client(), &claim.namespace().unwrap_or_default())
}
