//! The events of one watch: the initial state, then changes as selectors show them, and bookmarks.

use crate::endpoints::filter::Filter;
use crate::endpoints::watch::initial::Initial;
use crate::endpoints::watch::{bookmark, error_event, failure};
use crate::registry::Kind;
use crate::request::context::ResourceRequest;
use crate::request::options::ListOptions;
use crate::response::{Change, WatchEvent};
use crate::server::ApiServer;
use crate::status::Result;
use flyball_store::{Error, Event, Watch};
use serde_json::json;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch::Receiver;
use tokio::time::{Instant, Sleep};

/// How often a watch with bookmarks sends one.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// How long before its end a watch with bookmarks sends the last one.
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);

/// Where the events of a watch come from.
pub(super) struct Feed {
    server: ApiServer,
    kind: Arc<Kind>,
    filter: Filter,
    initial: Option<Initial>,
    watch: Watch,
    /// The revision after which changes are sent; it may be yet to come.
    after: u64,
    bookmarks: bool,
    end: Instant,
    wake: Pin<Box<Sleep>>,
    /// Turns true when the kind, one of a CustomResourceDefinition, is not served any more.
    withdrawn: Option<Receiver<bool>>,
    has_failed: bool,
}

impl Feed {
    pub fn new(
        request: &ResourceRequest,
        filter: Filter,
        options: &ListOptions,
        (initial, watch): (Option<Initial>, Watch),
        (after, end): (u64, Instant),
    ) -> Feed {
        let mut feed = Feed {
            server: request.server.clone(),
            kind: request.kind.clone(),
            filter,
            initial,
            watch,
            after,
            bookmarks: options.allow_watch_bookmarks,
            end,
            wake: Box::pin(tokio::time::sleep_until(end)),
            withdrawn: request.kind.custom.as_ref().map(|custom| custom.withdrawn.subscribe()),
            has_failed: false,
        };
        feed.sleep();
        feed
    }

    /// The next event; none when the watch is over.
    pub async fn next(&mut self) -> Option<WatchEvent> {
        if let Some(initial) = &mut self.initial {
            match initial.next(&self.kind, &self.filter).await {
                Ok(Some(event)) => return Some(event),
                Ok(None) => self.initial = None,
                Err(status) => return self.end(error_event(&status)),
            }
        }
        while !self.has_failed {
            tokio::select! {
                biased;
                event = self.watch.next() => match event? {
                    Ok(event) => match self.select(&event).await {
                        Ok(Some(event)) => return Some(event),
                        Ok(None) => {}
                        Err(status) => return self.end(error_event(&status)),
                    },
                    Err(error) => return self.fail(error),
                },
                () = &mut self.wake => {
                    if Instant::now() >= self.end {
                        return None;
                    }
                    self.sleep();
                    return Some(bookmark(&self.kind, self.watch.revision().max(self.after), json!({})));
                }
                () = withdrawn(&mut self.withdrawn) => return None,
            }
        }
        None
    }

    fn fail(&mut self, error: Error) -> Option<WatchEvent> {
        self.initial = None;
        self.has_failed = true;
        failure(error)
    }

    /// Ends the watch with an event.
    fn end(&mut self, event: WatchEvent) -> Option<WatchEvent> {
        self.initial = None;
        self.has_failed = true;
        Some(event)
    }

    /// A change as the selectors show it; none if they do not.
    async fn select(&self, event: &Arc<Event>) -> Result<Option<WatchEvent>> {
        if event.revision <= self.after {
            return Ok(None);
        }
        let cached = self.server.frames().get(&self.kind, event);
        cached.convert(&self.filter).await?;
        if self.filter.is_empty() {
            return Ok(Some(cached.event(match (event.created, &event.value) {
                (true, _) => Change::Added,
                (false, Some(_)) => Change::Modified,
                (false, None) => Change::Deleted,
            })));
        }
        let matches = |attributes| self.filter.matches(&self.kind, attributes);
        let (is_selected, was_selected) = (
            cached.attributes().is_some_and(matches),
            cached.previous_attributes().is_some_and(matches),
        );
        Ok(match (was_selected, is_selected) {
            (false, false) => None,
            (true, true) => Some(cached.event(Change::Modified)),
            (false, true) => Some(cached.event(Change::Added)),
            (true, false) if event.value.is_none() => Some(cached.event(Change::Deleted)),
            (true, false) => cached.left(),
        })
    }

    /// Sleeps until the next bookmark or the end.
    fn sleep(&mut self) {
        let now = Instant::now();
        let last = self.end - BOOKMARK_BEFORE_END.min(self.end - now);
        let mut until = self.end;
        if self.bookmarks && last > now {
            until = last.min(now + BOOKMARK_EVERY);
        }
        self.wake.as_mut().reset(until);
    }
}

/// Waits until a kind is not served any more; for ever if it is a built-in one.
async fn withdrawn(withdrawn: &mut Option<Receiver<bool>>) {
    match withdrawn {
        // A closed channel means the same: nothing serves the kind.
        Some(withdrawn) => drop(withdrawn.wait_for(|withdrawn| *withdrawn).await),
        None => std::future::pending().await,
    }
}
