//! An object and its owners: which of them are there, and what becomes of the object if they are not.

use super::{Collector, FOREGROUND, ORPHAN, has_finalizer, waits_for_dependents};
use crate::refusal;
use flyball::{Context, Error, Event, Result};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::{
    Api,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, Preconditions, PropagationPolicy},
};
use serde_json::json;
use std::time::Duration;

/// How long a kind that nobody has defined yet is waited for.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// An object's owners, by what they mean for it.
#[derive(Debug, Default)]
pub(super) struct Owners {
    /// Those that are there and keep it.
    pub(super) solid: Vec<OwnerReference>,
    /// Those that are gone, or were replaced by others of their name.
    pub(super) dangling: Vec<OwnerReference>,
    /// Those that wait for its end to end themselves.
    pub(super) waiting: Vec<OwnerReference>,
}

/// Finds out about the owners of an object: from the cache, and from the server before one is called gone.
// garbagecollector.go, classifyReferences, isDangling
pub(super) async fn classify(collector: &Collector, object: &ObjectMeta, ctx: &Context) -> Result<Owners> {
    let mut owners = Owners::default();
    for (reference, cached) in ctx.owners() {
        let owner = match cached {
            Some(owner) => Some(owner.object.metadata.clone()),
            None => find(collector, &reference, object, ctx).await?,
        };
        match owner {
            None => owners.dangling.push(reference),
            Some(owner) if waits_for_dependents(&owner) => owners.waiting.push(reference),
            Some(_) => owners.solid.push(reference),
        }
    }
    Ok(owners)
}

/// Asks the server for an owner; none if there is no such object with that uid.
async fn find(
    collector: &Collector,
    reference: &OwnerReference,
    object: &ObjectMeta,
    ctx: &Context,
) -> Result<Option<ObjectMeta>> {
    let OwnerReference { api_version, kind: name, .. } = reference;
    let Some(kind) = collector.kinds.named(api_version, name) else {
        return if collector.kinds.is_withdrawn(api_version, name) {
            Ok(None)
        } else {
            let source = format!("the owner's kind {name} of {api_version} is not served");
            Err(Error::retry_after(LOOK_AGAIN, source))
        };
    };
    let namespace = match (kind.namespaced, &object.namespace) {
        (true, None) => {
            let note = format!("ownerRef {} does not exist in namespace \"\"", describe(reference));
            ctx.event(Event::warning("OwnerRefInvalidNamespace", note).by("garbage-collector-controller"));
            return Err(Error::permanent("a cluster-scoped object cannot belong to one in a namespace"));
        }
        (true, namespace) => namespace.as_deref(),
        (false, _) => None,
    };
    let found = super::api(&kind.resource, namespace, ctx).get_metadata_opt(&reference.name).await?;
    Ok(found
        .map(|found| found.metadata)
        .filter(|found| found.uid.as_ref() == Some(&reference.uid)))
}

/// An owner as upstream's messages write it.
fn describe(reference: &OwnerReference) -> String {
    let OwnerReference { api_version, kind, name, uid, .. } = reference;
    format!("[{api_version}/{kind}, namespace: , name: {name}, uid: {uid}]")
}

/// What becomes of the dependents of an object that nobody owns any more: what its finalizers say already.
pub(super) fn policy(object: &ObjectMeta) -> PropagationPolicy {
    if has_finalizer(object, ORPHAN) {
        PropagationPolicy::Orphan
    } else if has_finalizer(object, FOREGROUND) {
        PropagationPolicy::Foreground
    } else {
        PropagationPolicy::Background
    }
}

/// Deletes an object as it was looked at; if it has changed since, it is looked at again.
pub(super) async fn delete(api: &Api<DynamicObject>, object: &ObjectMeta, policy: PropagationPolicy) -> Result<()> {
    let params = DeleteParams {
        propagation_policy: Some(policy),
        preconditions: Some(Preconditions {
            uid: object.uid.clone(),
            resource_version: object.resource_version.clone(),
        }),
        ..DeleteParams::default()
    };
    settled(api.delete(name(object), &params).await.map(|_| ()))
}

/// Removes owners from an object.
pub(super) async fn strip(api: &Api<DynamicObject>, object: &ObjectMeta, uids: &[&str]) -> Result<()> {
    let mut owners = object.owner_references.clone().unwrap_or_default();
    owners.retain(|owner| !uids.contains(&owner.uid.as_str()));
    set_owners(api, object, owners).await
}

/// Writes an object's owners.
pub(super) async fn set_owners(
    api: &Api<DynamicObject>,
    object: &ObjectMeta,
    owners: Vec<OwnerReference>,
) -> Result<()> {
    patch(api, object, "ownerReferences", json!(owners)).await
}

/// Removes a finalizer from an object.
pub(super) async fn remove_finalizer(api: &Api<DynamicObject>, object: &ObjectMeta, finalizer: &str) -> Result<()> {
    let mut finalizers = object.finalizers.clone().unwrap_or_default();
    finalizers.retain(|held| held != finalizer);
    patch(api, object, "finalizers", json!(finalizers)).await
}

/// Replaces a list in an object's metadata as it was read.
async fn patch(api: &Api<DynamicObject>, object: &ObjectMeta, field: &str, list: serde_json::Value) -> Result<()> {
    let patch = json!({ "metadata": { "uid": object.uid, "resourceVersion": object.resource_version, field: list } });
    settled(
        api.patch_metadata(name(object), &PatchParams::default(), &Patch::Merge(patch))
            .await
            .map(|_| ()),
    )
}

/// An object that is gone needs nothing more.
fn settled(answer: kube::Result<()>) -> Result<()> {
    match answer {
        Err(error) if refusal::is_not_found(&error) => Ok(()),
        answer => Ok(answer?),
    }
}

fn name(object: &ObjectMeta) -> &str {
    object.name.as_deref().unwrap_or_default()
}
