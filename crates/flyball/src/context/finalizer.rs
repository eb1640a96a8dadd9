//! The finalizer that stands for a controller's `cleanup`: added before the first reconcile, removed after the cleanup, or
//! when the object need not wait for it any longer.

use crate::cache::object::Object;
use crate::context::attempt;
use crate::declare::controller::ControllerSpec;
use crate::{Action, Context, Error, Event, Result};
use jiff::Timestamp;
use kube::api::{GetParams, Patch, PatchParams, Request};
use serde_json::json;
use std::{sync::Arc, time::Duration};
use tokio::time::timeout;

/// How often the list is read and written anew that others write at the same time, before that is an error.
const MAX_CONFLICTS: usize = 3;

/// Set to `true` on an object, this annotation lets it go without its cleanup.
const SKIP: &str = "flyball.dev/skip-cleanup";

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
    let json = object.json();
    let meta = json.meta();
    match (object.terminating, meta.finalizers.iter().any(|held| held == finalizer)) {
        (false, true) => Stage::Reconcile,
        (false, false) => Stage::Add,
        (true, true) => Stage::CleanUp,
        (true, false) => Stage::Terminating,
    }
}

/// Adds the finalizer and gives back the context of the object as it is then.
pub(crate) async fn add(ctx: &Context, finalizer: &str) -> Result<Context> {
    let added = |finalizers: &mut Vec<String>| {
        finalizers.retain(|held| held != finalizer);
        finalizers.push(finalizer.into());
    };
    let object = write(ctx, "add finalizer to", added).await?;
    Ok(Context { object: Arc::new(object), ..ctx.clone() })
}

/// Runs the cleanups in order, then releases the object; at once if the cleanups are skipped or their deadline has passed.
pub(crate) async fn clean_up(controller: &ControllerSpec, ctx: &Context, finalizer: &str) -> Result {
    if ctx.current().json().meta().annotation(SKIP).as_deref() == Some("true") {
        return give_up(ctx, finalizer, &format!("the annotation {SKIP} says so")).await;
    }
    let left = time_left(controller, &ctx.object, ctx.operator.clock.now());
    let cleanups = async {
        for cleanup in &controller.cleanup {
            cleanup(ctx.object.clone(), ctx.clone()).await?;
        }
        Ok(())
    };
    let cleaned = match left {
        None => Ok(cleanups.await),
        Some(left) if left.is_zero() => Err(()),
        Some(left) => timeout(left, cleanups).await.map_err(|_| ()),
    };
    match cleaned {
        Ok(Ok(())) => {
            remove(ctx, finalizer).await?;
            Ok(Action::await_change())
        }
        Ok(Err(error)) => Err(error),
        Err(()) => give_up(ctx, finalizer, "it did not succeed in time").await,
    }
}

/// When an object is to go that is being deleted, whatever its cleanup says; nothing if it is not, or may stay for ever.
pub(crate) fn time_left(controller: &ControllerSpec, object: &Object, now: Timestamp) -> Option<Duration> {
    let deadline = controller
        .cleanup_deadline
        .filter(|_| object.terminating && !controller.cleanup.is_empty())?;
    let json = object.json();
    let meta = json.meta();
    let deleted: Option<Timestamp> = meta.deletion_time().and_then(|time| time.parse().ok());
    let passed = deleted.map(|deleted| now.duration_since(deleted));
    let passed = passed.and_then(|passed| Duration::try_from(passed).ok()).unwrap_or_default();
    Some(deadline.saturating_sub(passed))
}

async fn give_up(ctx: &Context, finalizer: &str, why: &str) -> Result {
    tracing::warn!(why, "the object goes without its cleanup");
    ctx.event(Event::warning("CleanupSkipped", format!("let go without cleanup: {why}")).action("CleanUp"));
    remove(ctx, finalizer).await?;
    Ok(Action::await_change())
}

/// Removes the finalizer; if it was the last one, the object is gone.
pub(crate) async fn remove(ctx: &Context, finalizer: &str) -> Result<()> {
    let removed = |finalizers: &mut Vec<String>| finalizers.retain(|held| held != finalizer);
    match write(ctx, "remove finalizer of", removed).await {
        Err(error) if is_refused(&error, 404) => Ok(()),
        answer => answer.map(|_| ()),
    }
}

fn is_refused(error: &Error, code: u16) -> bool {
    matches!(error.find(), Some(kube::Error::Api(status)) if status.code == code)
}

/// Changes the list, and only in the version that it was read from: others keep finalizers there, too.
async fn write(ctx: &Context, verb: &'static str, change: impl Fn(&mut Vec<String>)) -> Result<Object> {
    let mut object = ctx.current();
    let mut overtaken = 0;
    loop {
        match patch(ctx, verb, &object, &change).await {
            Err(error) if is_refused(&error, 409) && overtaken < MAX_CONFLICTS => overtaken += 1,
            answer => return answer,
        }
        let collection = Request::new(ctx.kind().path(ctx.object.key.namespace()));
        let live = collection.get(ctx.object.key.name(), &GetParams::default())?;
        object = Arc::new(send(ctx, verb, live).await?);
    }
}

async fn patch(
    ctx: &Context,
    verb: &'static str,
    object: &Object,
    change: impl Fn(&mut Vec<String>),
) -> Result<Object> {
    let mut finalizers = object.json().meta().finalizers;
    change(&mut finalizers);
    let version = object.resource_version();
    let patch =
        json!({ "metadata": { "uid": &*ctx.object.uid, "resourceVersion": version, "finalizers": finalizers } });
    let collection = Request::new(ctx.kind().path(ctx.object.key.namespace()));
    let params = PatchParams {
        field_manager: Some(ctx.operator.name.clone()),
        ..PatchParams::default()
    };
    send(ctx, verb, collection.patch(ctx.object.key.name(), &params, &Patch::Merge(patch))?).await
}

async fn send(ctx: &Context, verb: &'static str, request: http::Request<Vec<u8>>) -> Result<Object> {
    let text = ctx.operator.client.request_text(request).await;
    Ok(Object::parse(text.map_err(attempt(verb, ctx.kind(), &ctx.object.key))?)?)
}
