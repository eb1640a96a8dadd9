//! Deletes Events an hour after they were last seen, as kube-apiserver does (`--event-ttl`).

use crate::refusal;
use flyball::{Action, Context, Controller, Result};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Event;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Preconditions},
};
use std::sync::Arc;

const EVENT_TTL: SignedDuration = SignedDuration::from_hours(1);

/// The controller of expired Events.
pub(crate) fn controller() -> Controller<Event> {
    Controller::new(reconcile).named("event-ttl")
}

async fn reconcile(event: Arc<Event>, ctx: Context) -> Result {
    let age = ctx.now().0.duration_since(last_seen(&event));
    let left = EVENT_TTL - age;
    if let Some(left) = left.try_into().ok().filter(|_| left.is_positive()) {
        return Ok(Action::requeue_after(left));
    }
    let events: Api<Event> = Api::namespaced(ctx.client(), &event.namespace().unwrap_or_default());
    // An Event that is counted up meanwhile is kept.
    let params = DeleteParams::default()
        .preconditions(Preconditions { uid: event.uid(), resource_version: event.resource_version() });
    match events.delete(&event.name_any(), &params).await {
        Err(error) if !(refusal::is_not_found(&error) || refusal::is_conflict(&error)) => Err(error.into()),
        _ => Ok(Action::await_change()),
    }
}

/// When an Event was created or last counted up, whichever is later.
fn last_seen(event: &Event) -> Timestamp {
    let times = [
        event.metadata.creation_timestamp.as_ref().map(|time| time.0),
        event.last_timestamp.as_ref().map(|time| time.0),
        event
            .series
            .as_ref()
            .and_then(|series| series.last_observed_time.as_ref())
            .map(|time| time.0),
    ];
    times.into_iter().flatten().max().unwrap_or(Timestamp::MIN)
}
