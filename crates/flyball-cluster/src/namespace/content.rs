//! Deletes what is in a namespace, kind by kind.

use super::condition::Report;
use crate::kinds::{Kind, Kinds};
use flyball::Context;
use futures::future::join_all;
use kube::{
    Api,
    api::{DeleteParams, DynamicObject, ListParams, ObjectMeta},
};

/// Deletes the pods, so that they do not outlive what they are allowed to talk to.
// KEP-5080, "Ordered Namespace Deletion"
pub(super) async fn delete_pods(namespace: &str, kinds: &Kinds, report: &mut Report, ctx: &Context) {
    if let Some(pods) = kinds.named("v1", "Pod") {
        report.add(&pods, delete_all(namespace, &pods, ctx).await);
    }
}

/// Deletes everything but pods.
pub(super) async fn delete_rest(namespace: &str, kinds: &Kinds, report: &mut Report, ctx: &Context) {
    let is_pod = |kind: &Kind| kind.resource.group.is_empty() && kind.resource.kind == "Pod";
    let contents = kinds.all().into_iter().filter(|kind| kind.namespaced && kind.can(&["delete", "list"]));
    let contents: Vec<_> = contents.filter(|kind| !is_pod(kind)).collect();
    let left = join_all(contents.iter().map(|kind| delete_all(namespace, kind, ctx))).await;
    contents.iter().zip(left).for_each(|(kind, left)| report.add(kind, left));
}

/// Deletes the objects of a kind; what is left waits for somebody.
async fn delete_all(namespace: &str, kind: &Kind, ctx: &Context) -> kube::Result<Vec<ObjectMeta>> {
    let api: Api<DynamicObject> = Api::namespaced_with(ctx.client(), namespace, &kind.resource);
    if left(&api).await?.is_empty() {
        return Ok(Vec::new());
    }
    let background = DeleteParams::background();
    if kind.can(&["deletecollection"]) {
        api.delete_collection(&background, &ListParams::default()).await?;
    } else {
        for object in left(&api).await? {
            let name = object.name.as_deref().unwrap_or_default();
            if let Err(error) = api.delete(name, &background).await
                && !crate::refusal::is_not_found(&error)
            {
                return Err(error);
            }
        }
    }
    left(&api).await
}

async fn left(api: &Api<DynamicObject>) -> kube::Result<Vec<ObjectMeta>> {
    let list = api.list_metadata(&ListParams::default()).await?;
    Ok(list.items.into_iter().map(|object| object.metadata).collect())
}
