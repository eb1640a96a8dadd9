//! The finalizer that stands for a controller's `cleanup`: added before the first reconcile, removed after the cleanup.

use crate::{Context, Result, context::attempt, object::Object};
use kube::api::{Patch, PatchParams, Request};
use serde_json::json;
use std::sync::Arc;

/// What is to be done with an object that has a cleanup.
pub(crate) enum Stage {
    /// The object lives and carries the finalizer.
    Reconcile,
    /// The object lives and does not carry it yet.
    Add,
    /// The object is being deleted and waits for the cleanup.
    CleanUp,
    /// The object is being deleted, and this finalizer does not hold it.
    Terminating,
}

/// The finalizer of an operator.
pub(crate) fn name(operator: &str) -> String {
    format!("flyball.dev/{operator}")
}

pub(crate) fn stage(object: &Object, finalizer: &str) -> Stage {
    let meta = object.meta();
    match (object.terminating, meta.finalizers.iter().any(|held| held == finalizer)) {
        (false, true) => Stage::Reconcile,
        (false, false) => Stage::Add,
        (true, true) => Stage::CleanUp,
        (true, false) => Stage::Terminating,
    }
}

/// Adds the finalizer and gives back the context of the object as it is then.
pub(crate) async fn add(ctx: &Context, finalizer: &str) -> Result<Context> {
    let mut finalizers = ctx.object.meta().finalizers;
    finalizers.push(finalizer.into());
    let object = write(ctx, "add finalizer to", finalizers).await?;
    Ok(Context { object: Arc::new(object), ..ctx.clone() })
}

/// Removes the finalizer; if it was the last one, the object is gone.
pub(crate) async fn remove(ctx: &Context, finalizer: &str) -> Result<()> {
    let mut finalizers = ctx.current().meta().finalizers;
    finalizers.retain(|held| held != finalizer);
    match write(ctx, "remove finalizer of", finalizers).await {
        Err(error)
            if error
                .find()
                .is_some_and(|error| matches!(error, kube::Error::Api(status) if status.code == 404)) =>
        {
            Ok(())
        }
        answer => answer.map(|_| ()),
    }
}

/// Writes the whole list, and only over the version that it was read from: others keep finalizers there, too.
async fn write(ctx: &Context, verb: &'static str, finalizers: Vec<String>) -> Result<Object> {
    let current = ctx.current();
    let version = current.meta().resource_version.into_owned();
    let patch =
        json!({ "metadata": { "uid": &*ctx.object.uid, "resourceVersion": version, "finalizers": finalizers } });
    let collection = Request::new(ctx.kind().path(ctx.object.key.namespace()));
    let params = PatchParams {
        field_manager: Some(ctx.operator.name.clone()),
        ..PatchParams::default()
    };
    let request = collection.patch(ctx.object.key.name(), &params, &Patch::Merge(patch))?;
    let text = ctx.operator.client.request_text(request).await;
    Ok(Object::parse(text.map_err(attempt(verb, ctx.kind(), &ctx.object.key))?)?)
}
