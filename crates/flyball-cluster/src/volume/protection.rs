//! Keeps claims that pods use, and volumes that claims use, from being removed: by a finalizer.

use crate::{
    lookup::{self, CHILDREN},
    pod, refusal,
    scheduler::volumes::claim_names,
};
use flyball::{Action, Context, Controller, Key, Reconciler, Result};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use kube::{
    Api, Resource, ResourceExt,
    api::{Patch, PatchParams},
};
use serde::de::DeserializeOwned;
use serde_json::json;
use std::{fmt::Debug, sync::Arc};

const CLAIM_FINALIZER: &str = "kubernetes.io/pvc-protection";
const VOLUME_FINALIZER: &str = "kubernetes.io/pv-protection";

/// The controller that protects claims.
pub(crate) fn claim_protection() -> Controller<PersistentVolumeClaim> {
    Controller::new(Claims)
        .named("pvc-protection")
        .reads::<Pod>()
        .watches(|pod: Arc<Pod>, _| {
            let namespace = pod.namespace().unwrap_or_default();
            claim_names(&pod)
                .into_iter()
                .map(|name| Key::namespaced(&*namespace, name))
                .collect::<Vec<_>>()
        })
}

/// The controller that protects volumes.
pub(crate) fn volume_protection() -> Controller<PersistentVolume> {
    Controller::new(Volumes).named("pv-protection")
}

struct Claims;

// pkg/controller/volume/pvcprotection/pvc_protection_controller.go
impl Reconciler<PersistentVolumeClaim> for Claims {
    async fn reconcile(&self, claim: Arc<PersistentVolumeClaim>, ctx: Context) -> Result {
        let api = Api::namespaced(ctx.client(), &claim.namespace().unwrap_or_default());
        add(&*claim, CLAIM_FINALIZER, &api).await
    }

    async fn terminating(&self, claim: Arc<PersistentVolumeClaim>, ctx: Context) -> Result {
        let namespace = claim.namespace().unwrap_or_default();
        let value = lookup::using_claim(&namespace, &claim.name_any());
        let users = ctx.by_index::<Pod>(CHILDREN, &value).await?;
        if users
            .iter()
            .any(|user| !(pod::has_ended(user) && user.metadata.deletion_timestamp.is_none()))
        {
            return Ok(Action::await_change());
        }
        remove(&*claim, CLAIM_FINALIZER, &Api::namespaced(ctx.client(), &namespace)).await
    }
}

struct Volumes;

// pkg/controller/volume/pvprotection/pv_protection_controller.go
impl Reconciler<PersistentVolume> for Volumes {
    async fn reconcile(&self, volume: Arc<PersistentVolume>, ctx: Context) -> Result {
        add(&*volume, VOLUME_FINALIZER, &Api::all(ctx.client())).await
    }

    async fn terminating(&self, volume: Arc<PersistentVolume>, ctx: Context) -> Result {
        let is_bound = volume.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Bound");
        if is_bound {
            return Ok(Action::await_change());
        }
        remove(&*volume, VOLUME_FINALIZER, &Api::all(ctx.client())).await
    }
}

async fn add<K>(object: &K, finalizer: &str, api: &Api<K>) -> Result
where
    K: Resource<DynamicType = ()> + DeserializeOwned + Clone + Debug,
{
    if object.finalizers().iter().any(|held| held == finalizer) {
        return Ok(Action::await_change());
    }
    let finalizers: Vec<_> = object.finalizers().iter().cloned().chain([finalizer.to_owned()]).collect();
    set(object, finalizers, api).await
}

async fn remove<K>(object: &K, finalizer: &str, api: &Api<K>) -> Result
where
    K: Resource<DynamicType = ()> + DeserializeOwned + Clone + Debug,
{
    if !object.finalizers().iter().any(|held| held == finalizer) {
        return Ok(Action::await_change());
    }
    set(
        object,
        object.finalizers().iter().filter(|held| *held != finalizer).cloned().collect(),
        api,
    )
    .await
}

async fn set<K>(object: &K, finalizers: Vec<String>, api: &Api<K>) -> Result
where
    K: Resource<DynamicType = ()> + DeserializeOwned + Clone + Debug,
{
    let metadata =
        json!({ "uid": object.uid(), "resourceVersion": object.resource_version(), "finalizers": finalizers });
    let patch = Patch::Merge(json!({ "metadata": metadata }));
    match api.patch(&object.name_any(), &PatchParams::default(), &patch).await {
        // An object that has changed since it was read comes back by that change.
        Err(error) if refusal::is_not_found(&error) || refusal::is_conflict(&error) => {}
        patched => drop(patched?),
    }
    Ok(Action::await_change())
}
