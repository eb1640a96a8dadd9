//! Empties a namespace that is being deleted, pods first, and then lets it go.

mod condition;
mod content;

use crate::{kinds::Kinds, owner, refusal};
use condition::Report;
use flyball::{Action, Context, Controller, Key, Result};
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::{
    Api, ResourceExt,
    api::{ObjectMeta, PartialObjectMeta, PostParams},
};
use std::{sync::Arc, time::Duration};

/// What this controller removes from a namespace's finalizers.
const FINALIZER: &str = "kubernetes";

/// The controller of namespaces.
pub(crate) fn controller(kinds: &Kinds) -> Controller<Namespace> {
    let kinds = kinds.clone();
    let live = |_: Arc<Namespace>, _: Context| async { Ok(Action::await_change()) };
    Controller::new(live)
        .named("namespace")
        .terminating(move |namespace, ctx| {
            let kinds = kinds.clone();
            async move { empty(namespace, ctx, kinds).await }
        })
        .watches(|pod: Arc<PartialObjectMeta<Pod>>, _| ending(&pod.metadata))
}

/// The namespace that waits for a pod which is about to end, if any does.
fn ending(pod: &ObjectMeta) -> Option<Key> {
    pod.namespace.clone().filter(|_| owner::is_terminating(pod)).map(Key::from)
}

// pkg/controller/namespace/deletion/namespaced_resources_deleter.go, Delete
async fn empty(namespace: Arc<Namespace>, ctx: Context, kinds: Kinds) -> Result {
    if finalizers(&namespace).next().is_none() {
        return Ok(Action::await_change());
    }
    let mut report = Report::default();
    let name = namespace.name_any();
    content::delete_pods(&name, &kinds, &mut report, &ctx).await;
    if report.is_empty() {
        content::delete_rest(&name, &kinds, &mut report, &ctx).await;
    }
    let status = report.status(&namespace, &ctx.now());
    if Some(&status) != namespace.status.as_ref() {
        ctx.set_status(&status).await?;
    }
    match report.wait() {
        Some(wait) => Ok(Action::requeue_after(wait)),
        None => finalize(&namespace, &ctx).await,
    }
}

/// Takes this controller's finalizer away; if no other is left, the namespace is gone.
async fn finalize(namespace: &Namespace, ctx: &Context) -> Result {
    let mut next = namespace.clone();
    let left = finalizers(namespace)
        .filter(|finalizer| *finalizer != FINALIZER)
        .map(str::to_owned)
        .collect();
    next.spec.get_or_insert_default().finalizers = Some(left);
    next.metadata.resource_version = None;
    let api: Api<Namespace> = Api::all(ctx.client());
    let finalized = api.replace_subresource("finalize", &next.name_any(), &PostParams::default(), &next).await;
    match finalized {
        Err(error) if refusal::is_not_found(&error) => {}
        finalized => drop(finalized?),
    }
    Ok(Action::await_change())
}

fn finalizers(namespace: &Namespace) -> impl Iterator<Item = &str> {
    let finalizers = namespace.spec.as_ref().and_then(|spec| spec.finalizers.as_ref());
    finalizers.into_iter().flatten().map(String::as_str)
}

/// How long to wait for what is left, if nothing says better.
const WAIT: Duration = Duration::from_secs(5);
