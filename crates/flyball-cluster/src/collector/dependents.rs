//! An object and its dependents: who blocks its end, and who is set free by it.

use super::{Collector, owners, waits_for_dependents};
use flyball::{Context, RelatedObject, Result};
use futures::future::try_join_all;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::PropagationPolicy;

/// The dependents that keep the object being reconciled from going.
pub(super) async fn blocking(object: &ObjectMeta, ctx: &Context) -> Result<Vec<RelatedObject>> {
    let blocks =
        |owner: &OwnerReference| Some(&owner.uid) == object.uid.as_ref() && owner.block_owner_deletion == Some(true);
    let dependents = ctx.dependents().await?.into_iter();
    Ok(dependents.filter(|dependent| references(dependent).iter().any(blocks)).collect())
}

/// Takes the object being reconciled out of its dependents' owners.
// garbagecollector.go, attemptToOrphanWorker
pub(super) async fn set_free(object: &ObjectMeta, ctx: &Context) -> Result<()> {
    let uid = object.uid.as_deref().unwrap_or_default();
    let dependents = ctx.dependents().await?;
    let freed = dependents.iter().map(|dependent| {
        let meta = &dependent.object.metadata;
        let api = super::api(&dependent.resource, meta.namespace.as_deref(), ctx);
        async move { owners::strip(&api, meta, &[uid]).await }
    });
    try_join_all(freed).await?;
    Ok(())
}

/// Deletes an object whose owner waits for its end. If it has dependents itself, they go before it.
///
/// Where one of those waits for its own dependents already, the two might wait for each other: the object then stops
/// blocking its owners.
// garbagecollector.go, attemptToDeleteItem, the case of waitingForDependentsDeletion
pub(super) async fn delete_for_waiting_owner(collector: &Collector, object: &ObjectMeta, ctx: &Context) -> Result<()> {
    let api = collector.api(object, ctx);
    let dependents = ctx.dependents().await?;
    if dependents.is_empty() {
        return owners::delete(&api, object, owners::policy(object)).await;
    }
    let in_a_circle = dependents.iter().any(|dependent| waits_for_dependents(&dependent.object.metadata));
    if in_a_circle
        && object
            .owner_references
            .iter()
            .flatten()
            .any(|owner| owner.block_owner_deletion == Some(true))
    {
        // The change brings the object back here.
        return owners::set_owners(&api, object, unblocked(object)).await;
    }
    owners::delete(&api, object, PropagationPolicy::Foreground).await
}

fn unblocked(object: &ObjectMeta) -> Vec<OwnerReference> {
    let mut owners = object.owner_references.clone().unwrap_or_default();
    owners.iter_mut().for_each(|owner| owner.block_owner_deletion = Some(false));
    owners
}

fn references(dependent: &RelatedObject) -> &[OwnerReference] {
    dependent.object.metadata.owner_references.as_deref().unwrap_or_default()
}
