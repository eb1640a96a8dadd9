//! A volume: available, bound to its claim, released, or deleted with it.

use super::{NAME, PROVISIONED_BY, PROVISIONER};
use crate::refusal;
use flyball::{Action, Context, Controller, Event, Key, Result};
use k8s_openapi::{
    api::core::v1::{PersistentVolume, PersistentVolumeClaim, PersistentVolumeStatus},
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, PartialObjectMeta},
};
use std::sync::Arc;

/// The index of volumes by the claim that they are bound to.
const CLAIM: &str = "claim";

/// The controller of volumes.
pub(crate) fn controller() -> Controller<PersistentVolume> {
    Controller::new(reconcile)
        .named("persistentvolume")
        .index(CLAIM, |volume: &PersistentVolume| {
            claim_of(volume).map(|key| key.to_string()).into_iter().collect()
        })
        .watches(|claim: Arc<PartialObjectMeta<PersistentVolumeClaim>>, cache| {
            let volumes = cache.by_index::<PersistentVolume>(CLAIM, &Key::of(&*claim).to_string())?;
            Ok::<_, flyball::Error>(volumes.iter().map(|volume| Key::of(&**volume)).collect::<Vec<_>>())
        })
}

fn claim_of(volume: &PersistentVolume) -> Option<Key> {
    let claim = volume.spec.as_ref()?.claim_ref.as_ref()?;
    Some(Key::namespaced(claim.namespace.clone()?, claim.name.clone()?))
}

// pkg/controller/volume/persistentvolume/pv_controller.go, syncVolume
async fn reconcile(volume: Arc<PersistentVolume>, ctx: Context) -> Result {
    let spec = volume.spec.clone().unwrap_or_default();
    let Some(claim) = claim_of(&volume) else {
        return set_phase(&volume, "Available", &ctx).await;
    };
    let bound_uid = spec.claim_ref.and_then(|claim| claim.uid);
    if bound_uid.is_none() {
        return set_phase(&volume, "Available", &ctx).await;
    }
    let found = ctx.get::<PartialObjectMeta<PersistentVolumeClaim>>(claim.clone()).await?;
    let found = match found {
        Some(found) => Some(found.metadata.uid.clone()),
        // The cache may lag behind the volume.
        None => {
            let claims: Api<PersistentVolumeClaim> =
                Api::namespaced(ctx.client(), claim.namespace().unwrap_or_default());
            claims.get_metadata_opt(claim.name()).await?.map(|found| found.metadata.uid)
        }
    };
    if found == Some(bound_uid) {
        return set_phase(&volume, "Bound", &ctx).await;
    }
    let is_ours = volume.annotations().get(PROVISIONED_BY).is_some_and(|by| by == PROVISIONER);
    let released = set_phase(&volume, "Released", &ctx).await?;
    match spec.persistent_volume_reclaim_policy.as_deref() {
        Some("Delete") if is_ours => {
            match Api::<PersistentVolume>::all(ctx.client())
                .delete(&volume.name_any(), &DeleteParams::default())
                .await
            {
                Err(error) if !refusal::is_not_found(&error) => return Err(error.into()),
                _ => {}
            }
        }
        Some("Recycle") => {
            let note = "No recycler plugin found for the volume!";
            ctx.event(Event::warning("VolumeFailedRecycle", note).by(NAME));
            return set_phase(&volume, "Failed", &ctx).await;
        }
        _ => {}
    }
    Ok(released)
}

async fn set_phase(volume: &PersistentVolume, phase: &str, ctx: &Context) -> Result {
    let known = volume.status.clone().unwrap_or_default();
    let since = known.last_phase_transition_time.filter(|_| known.phase.as_deref() == Some(phase));
    let status = PersistentVolumeStatus {
        phase: Some(phase.into()),
        last_phase_transition_time: since.or_else(|| Some(Time(ctx.now().0))),
        ..PersistentVolumeStatus::default()
    };
    ctx.set_status(status).await?;
    Ok(Action::await_change())
}
