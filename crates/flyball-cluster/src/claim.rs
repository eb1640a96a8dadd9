//! Which objects a controller's selector makes its own: what matches and belongs to nobody is adopted, what belongs to it and
//! matches no more is released.

use crate::{
    lookup::{self, CHILDREN},
    owner, refusal,
};
use flyball::{Cache, Context, Error, Key, Result};
use k8s_openapi::{
    NamespaceResourceScope,
    apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, OwnerReference},
};
use kube::{
    Api, Resource, ResourceExt,
    api::{PartialObjectMeta, Patch, PatchParams},
    core::{Selector, SelectorExt},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;
use std::{fmt::Debug, sync::Arc};

/// A kind that owns others, or is owned by others, within a namespace.
pub(crate) trait Member:
    Resource<DynamicType = (), Scope = NamespaceResourceScope> + Serialize + DeserializeOwned + Clone + Debug + Send + Sync
{
}

impl<K> Member for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Serialize
        + DeserializeOwned
        + Clone
        + Debug
        + Send
        + Sync
{
}

/// The selector of a spec; one that selects nothing if it cannot be read.
pub(crate) fn selector(selector: Option<&LabelSelector>) -> Option<Selector> {
    let selector = Selector::try_from(selector?.clone()).ok()?;
    (!selector.selects_all()).then_some(selector)
}

/// Whether a selector means an object.
pub(crate) fn selects(selector: &Selector, meta: &ObjectMeta) -> bool {
    selector.matches(meta.labels.as_ref().unwrap_or(&Default::default()))
}

/// The objects of kind `C` that `owner` controls and selects, after adopting and releasing.
///
/// Nothing is adopted or released by an owner that is being deleted, nor is anything that is itself being deleted.
// pkg/controller/controller_ref_manager.go, ClaimObject
pub(crate) async fn claim<K: Member, C: Member>(
    owner: &K,
    labels: &LabelSelector,
    ctx: &Context,
) -> Result<Vec<Arc<C>>> {
    let Some(selector) = &selector(Some(labels)) else {
        return Ok(Vec::new());
    };
    let (mut claimed, lost): (Vec<Arc<C>>, Vec<_>) =
        ctx.owned::<C>().await?.into_iter().partition(|object| selects(selector, object.meta()));
    if owner::is_terminating(owner.meta()) {
        return Ok(claimed);
    }
    for object in lost.iter().filter(|object| !owner::is_terminating(object.meta())) {
        release::<K, C>(owner, object.meta(), ctx).await?;
    }
    let anchor = lookup::anchor(owner.meta().namespace.as_deref(), labels);
    let loose = ctx.by_index::<PartialObjectMeta<C>>(CHILDREN, &lookup::orphaned(&anchor)).await?;
    let loose: Vec<_> = loose.into_iter().filter(|object| is_adoptable(selector, &object.metadata)).collect();
    if !loose.is_empty() && is_alive(owner, ctx).await? {
        for object in loose {
            claimed.extend(adopt::<K, C>(owner, &object.metadata, ctx).await?.map(Arc::new));
        }
    }
    Ok(claimed)
}

fn is_adoptable(selector: &Selector, meta: &ObjectMeta) -> bool {
    owner::controller(meta).is_none() && !owner::is_terminating(meta) && selects(selector, meta)
}

/// Those of a namespace's owners that would adopt an object which belongs to nobody.
pub(crate) fn adopters<K: Member>(
    object: &ObjectMeta,
    cache: &Cache,
    selector_of: fn(&K) -> Option<&LabelSelector>,
) -> Result<Vec<Key>> {
    if owner::controller(object).is_some() {
        return Ok(Vec::new());
    }
    let adopts = |owner: &Arc<K>| selector(selector_of(owner)).is_some_and(|selector| selects(&selector, object));
    let owners = lookup::selecting::<K>(object, cache)?.into_iter();
    Ok(owners.filter(adopts).map(|owner| Key::of(&*owner)).collect())
}

/// The cache may not know yet that the owner is being deleted; its children must not be taken along then.
async fn is_alive<K: Member>(owner: &K, ctx: &Context) -> Result<bool> {
    let found = api::<K>(owner.meta(), ctx).get_metadata_opt(&owner.name_any()).await?;
    Ok(found.is_some_and(|found| found.metadata.uid == owner.meta().uid && !owner::is_terminating(&found.metadata)))
}

/// An error ends the reconcile: an owner that could not adopt must not make another child instead.
async fn adopt<K: Member, C: Member>(owner: &K, child: &ObjectMeta, ctx: &Context) -> Result<Option<C>> {
    let mut references = child.owner_references.clone().unwrap_or_default();
    references.push(owner::reference(owner));
    set_owners(child, references, ctx).await
}

async fn release<K: Member, C: Member>(owner: &K, child: &ObjectMeta, ctx: &Context) -> Result<()> {
    let mut references = child.owner_references.clone().unwrap_or_default();
    references.retain(|reference| Some(&reference.uid) != owner.meta().uid.as_ref());
    set_owners::<C>(child, references, ctx).await?;
    Ok(())
}

/// Writes the owners of a child as it was read; none if it is gone.
async fn set_owners<C: Member>(child: &ObjectMeta, owners: Vec<OwnerReference>, ctx: &Context) -> Result<Option<C>> {
    let patch = json!({ "metadata": {
        "uid": child.uid,
        "resourceVersion": child.resource_version,
        "ownerReferences": owners,
    } });
    let name = child.name.as_deref().unwrap_or_default();
    let patched = api::<C>(child, ctx).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await;
    match patched {
        Err(error) if refusal::is_not_found(&error) => Ok(None),
        patched => patched.map(Some).map_err(Error::from),
    }
}

fn api<C: Member>(beside: &ObjectMeta, ctx: &Context) -> Api<C> {
    Api::namespaced(ctx.client(), beside.namespace.as_deref().unwrap_or_default())
}
