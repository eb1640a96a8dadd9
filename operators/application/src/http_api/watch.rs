//! Applications as server-sent events: all that are there, then every change.

use super::applications;
use axum::{
    extract::State,
    response::sse::{Event, KeepAlive, Sse},
};
use futures::{Stream, StreamExt, future};
use kube::{
    Client, ResourceExt,
    api::DynamicObject,
    runtime::{WatchStreamExt, watcher},
};
use serde_json::{Value, json};
use std::{collections::HashSet, convert::Infallible};

/// Streams `{"type": "ADDED" | "MODIFIED" | "DELETED", "object": …}`, one message a change.
pub async fn watch(State(client): State<Client>) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let changes = watcher(applications(client, None), watcher::Config::default()).default_backoff();
    let messages = changes
        .filter_map(|change| future::ready(change.ok()))
        .scan(HashSet::new(), |known, change| future::ready(Some(message(known, change))));
    let events = messages.filter_map(|message| future::ready(message.map(|data| Ok(event(data)))));
    Sse::new(events).keep_alive(KeepAlive::default())
}

fn message(known: &mut HashSet<String>, change: watcher::Event<DynamicObject>) -> Option<Value> {
    match change {
        watcher::Event::InitApply(object) | watcher::Event::Apply(object) => {
            let new = known.insert(object.uid().unwrap_or_default());
            Some(json!({ "type": if new { "ADDED" } else { "MODIFIED" }, "object": object }))
        }
        watcher::Event::Delete(object) => {
            known.remove(&object.uid().unwrap_or_default());
            Some(json!({ "type": "DELETED", "object": object }))
        }
        watcher::Event::Init | watcher::Event::InitDone => None,
    }
}

fn event(data: Value) -> Event {
    Event::default().data(data.to_string())
}
