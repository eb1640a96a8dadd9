//! The events that were published about an object.

use crate::{Objects, objects::done, wait::MAX_WAIT};
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::events::v1::Event;
use kube::{
    Api,
    api::ListParams,
    runtime::{
        WatchStreamExt,
        watcher::{self, watcher},
    },
};
use std::{fmt::Write, panic::Location};
use tokio::time::timeout;

impl<'a, K> Objects<'a, K> {
    /// The events about an object so far. Operators publish theirs after the reconcile: see [`Objects::until_event`].
    #[track_caller]
    pub fn events(self, name: &str) -> impl Future<Output = Vec<Event>> {
        let (caller, about) = (Location::caller(), self.about(name));
        async move { about.list(caller).await }
    }

    /// Waits until there is an event with this reason about an object.
    #[track_caller]
    pub fn until_event(self, name: &str, reason: &str) -> impl Future<Output = Event> {
        let (caller, about, reason) = (Location::caller(), self.about(name), reason.to_owned());
        async move {
            let changes = watcher(about.api.clone(), watcher::Config::default()).default_backoff().applied_objects();
            let found = changes.try_filter(|event| {
                let found = about.concerns(event) && event.reason.as_ref() == Some(&reason);
                std::future::ready(found)
            });
            let mut found = std::pin::pin!(found.filter_map(|event| std::future::ready(event.ok())));
            match timeout(MAX_WAIT, found.next()).await {
                Ok(event) => event.expect("a watch goes on until it is dropped"),
                Err(_) => {
                    let (what, seen) = (&about.what, about.list(caller).await);
                    let reported = self.cluster.report(what);
                    panic!("{caller}: {what} has no event {reason}; it has:{}{reported}", lines(&seen))
                }
            }
        }
    }

    fn about(&self, name: &str) -> About {
        let (place, kind) = (self.place(name), self.kind().to_owned());
        let namespace = place.namespace.as_deref().unwrap_or("default");
        About {
            api: Api::namespaced(self.cluster.client(), namespace),
            kind,
            name: place.name,
            what: place.what,
        }
    }
}

/// The object that events are about.
struct About {
    api: Api<Event>,
    kind: String,
    name: String,
    what: String,
}

impl About {
    async fn list(&self, caller: &Location<'_>) -> Vec<Event> {
        let found = self.api.list(&ListParams::default()).await;
        let mut events = done(caller, "list the events of", &self.what, found).items;
        events.retain(|event| self.concerns(event));
        events.sort_by(|one, other| one.event_time.cmp(&other.event_time));
        events
    }

    fn concerns(&self, event: &Event) -> bool {
        let regarding = event.regarding.clone().unwrap_or_default();
        regarding.kind.as_ref() == Some(&self.kind) && regarding.name.as_ref() == Some(&self.name)
    }
}

fn lines(events: &[Event]) -> String {
    let mut lines = String::new();
    for event in events {
        let (reason, note) = (event.reason.as_deref().unwrap_or("?"), event.note.as_deref().unwrap_or_default());
        write!(lines, "\n  {reason}: {note}").expect("a String grows");
    }
    match lines.is_empty() {
        true => " none".into(),
        false => lines,
    }
}
