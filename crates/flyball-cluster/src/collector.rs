//! The garbage collector: deletes what its owners have left behind, and lets owners go when their dependents have gone or
//! were set free. One controller per kind; owners are matched by uid.

mod definition;
mod dependents;
mod owners;

use crate::{
    kinds::{Kind, Kinds},
    owner, refusal,
};
use flyball::{Action, Context, Controller, Reconciler, Result};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{
    Api,
    api::{DynamicObject, PartialObjectMeta},
};
use std::sync::Arc;

/// An object of whatever kind, as the collector sees it.
type Object = PartialObjectMeta<DynamicObject>;

/// Keeps an owner until those dependents are gone that block its deletion.
const FOREGROUND: &str = "foregroundDeletion";
/// Keeps an owner until its dependents know it no more.
const ORPHAN: &str = "orphan";

pub(crate) use definition::definitions;

/// The controllers of all built-in kinds; [`definitions`] starts those of custom resources.
pub(crate) fn controllers(kinds: &Kinds) -> impl Iterator<Item = Controller<Object>> {
    let built_in = kinds.built_in().into_iter().filter(is_collected);
    built_in.map(|kind| controller(kind, kinds))
}

fn is_collected(kind: &Kind) -> bool {
    kind.can(&["delete", "list", "watch"]) && !kind.is_event()
}

/// The controller of one kind.
fn controller(kind: Kind, kinds: &Kinds) -> Controller<Object> {
    let resource = kind.resource.clone();
    let name = format!("garbage-collector-{}.{}", resource.plural, resource.group);
    Controller::of(resource, Collector { kind, kinds: kinds.clone() })
        .named(name.trim_end_matches('.'))
        .follows_owners()
        .follows_dependents()
}

/// Collects the objects of one kind.
struct Collector {
    kind: Kind,
    kinds: Kinds,
}

impl Reconciler<Object> for Collector {
    async fn reconcile(&self, object: Arc<Object>, ctx: Context) -> Result {
        self.collect(&object.metadata, &ctx).await
    }

    async fn terminating(&self, object: Arc<Object>, ctx: Context) -> Result {
        self.let_go(&object.metadata, &ctx).await
    }
}

impl Collector {
    /// Deletes an object whose owners are all gone or wait for its end, and clears it of those that are, if any is left.
    // pkg/controller/garbagecollector/garbagecollector.go, attemptToDeleteItem
    async fn collect(&self, object: &ObjectMeta, ctx: &Context) -> Result {
        if object.owner_references.iter().flatten().next().is_none() {
            return Ok(Action::await_change());
        }
        let owners = owners::classify(self, object, ctx).await?;
        let done = if !owners.solid.is_empty() {
            let gone: Vec<_> = owners.dangling.iter().chain(&owners.waiting).map(|owner| owner.uid.as_str()).collect();
            if gone.is_empty() {
                return Ok(Action::await_change());
            }
            owners::strip(&self.api(object, ctx), object, &gone).await
        } else if owners.waiting.is_empty() {
            owners::delete(&self.api(object, ctx), object, owners::policy(object)).await
        } else {
            dependents::delete_for_waiting_owner(self, object, ctx).await
        };
        settle(done)
    }

    /// Lets an object go that is being deleted, once its dependents are gone or free.
    async fn let_go(&self, object: &ObjectMeta, ctx: &Context) -> Result {
        let finalizer = if has_finalizer(object, ORPHAN) {
            dependents::set_free(object, ctx).await?;
            ORPHAN
        } else if has_finalizer(object, FOREGROUND) && dependents::blocking(object, ctx).await?.is_empty() {
            FOREGROUND
        } else {
            return Ok(Action::await_change());
        };
        settle(owners::remove_finalizer(&self.api(object, ctx), object, finalizer).await)
    }

    fn api(&self, beside: &ObjectMeta, ctx: &Context) -> Api<DynamicObject> {
        api(&self.kind.resource, beside.namespace.as_deref(), ctx)
    }
}

/// An object that has changed since it was read comes back by that change.
fn settle(done: Result<()>) -> Result {
    match done {
        Err(error) if error.find().is_some_and(refusal::is_conflict) => {}
        done => done?,
    }
    Ok(Action::await_change())
}

fn api(resource: &kube::api::ApiResource, namespace: Option<&str>, ctx: &Context) -> Api<DynamicObject> {
    match namespace {
        Some(namespace) => Api::namespaced_with(ctx.client(), namespace, resource),
        None => Api::all_with(ctx.client(), resource),
    }
}

fn has_finalizer(object: &ObjectMeta, finalizer: &str) -> bool {
    object.finalizers.iter().flatten().any(|held| held == finalizer)
}

/// Whether an object waits for the end of its dependents.
fn waits_for_dependents(object: &ObjectMeta) -> bool {
    owner::is_terminating(object) && has_finalizer(object, FOREGROUND)
}
