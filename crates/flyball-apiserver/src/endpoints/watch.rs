//! GET of changes, for as long as the client listens.

use crate::endpoints::filter::Filter;
use crate::endpoints::page;
use crate::registry::{Kind, object};
use crate::request::context::ResourceRequest;
use crate::request::options::ListOptions;
use crate::request::options::list::parse_resource_version;
use crate::response::{ApiResponse, Change, WatchEvent};
use crate::server::ApiServer;
use crate::status::{Reason, Result, Status};
use bytes::Bytes;
use flyball_store::{Error, Event, Range, Watch};
use futures::{StreamExt, stream};
use http::StatusCode;
use serde_json::json;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch::Receiver;
use tokio::time::{Instant, Sleep};

/// How often a watch says where it is, if it may.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// How long before its end a watch says where it is, if it may.
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);

/// Answers with the changes of what a request means.
pub(crate) async fn watch(request: &ResourceRequest) -> Result<ApiResponse> {
    let options = ListOptions::watch(&request.info.query)?;
    let filter = Filter::read(request, &options)?;
    let version = match options.resource_version.as_deref().map(parse_resource_version).transpose() {
        Ok(version) => version.unwrap_or(0),
        Err(why) => return Err(Status::without_reason(StatusCode::INTERNAL_SERVER_ERROR, why)),
    };
    if options.timeout_seconds.is_some_and(|seconds| seconds < 0) {
        let late =
            Status::failure(StatusCode::INTERNAL_SERVER_ERROR, Reason::InternalError, "context deadline exceeded");
        let event = WatchEvent::new(Change::Error, late.to_value().to_string().into());
        return Ok(ApiResponse::Watch {
            kind: request.kind.clone(),
            events: stream::iter([event]).boxed(),
        });
    }
    let with_state = options.send_initial_events.unwrap_or(version == 0);
    let (mut first, after) = match (with_state, version) {
        (true, version) => initial(request, &options, &filter, version).await?,
        (false, 0) => (Vec::new(), request.store().revision()),
        (false, version) => (Vec::new(), version),
    };
    let prefix = request.kind.prefix(request.namespace());
    let feed = match request.store().watch(prefix, after.min(request.store().revision())).await {
        Ok(watch) => Some(Feed::new(request, filter, &options, watch, after)),
        Err(Error::Compacted { requested, oldest }) => {
            first.push(expired(requested, oldest));
            None
        }
        Err(error) => return request.store_failed(error),
    };
    let live = stream::unfold(feed, |feed| async {
        let mut feed = feed?;
        let event = feed.next().await?;
        Some((event, Some(feed)))
    });
    Ok(ApiResponse::Watch {
        kind: request.kind.clone(),
        events: stream::iter(first).chain(live).boxed(),
    })
}

/// What there is, as if it had just been made, and the revision from which on changes follow.
async fn initial(
    request: &ResourceRequest,
    options: &ListOptions,
    filter: &Filter,
    at_least: u64,
) -> Result<(Vec<WatchEvent>, u64)> {
    page::wait_for(request, at_least).await?;
    let range = Range::prefix(request.kind.prefix(request.namespace()));
    let page = match request.store().range(range).await {
        Ok(page) => page,
        Err(error) => return request.store_failed(error),
    };
    let present = |entry: flyball_store::Entry| request.kind.present(&entry.value, entry.revision);
    let objects = page.entries.into_iter().map(present).filter(|object| filter.matches(object));
    let mut events: Vec<WatchEvent> = objects.map(|object| WatchEvent::new(Change::Added, object)).collect();
    if options.allow_watch_bookmarks {
        let annotations = json!({"annotations": {"k8s.io/initial-events-end": "true"}});
        events.push(bookmark(&request.kind, page.revision, annotations));
    }
    Ok((events, page.revision))
}

/// What goes on after the beginning of a watch.
struct Feed {
    server: ApiServer,
    kind: Arc<Kind>,
    filter: Filter,
    watch: Watch,
    /// The revision after which changes matter; it may be yet to come.
    after: u64,
    bookmarks: bool,
    end: Instant,
    wake: Pin<Box<Sleep>>,
    /// Turns true when the kind, one of a CustomResourceDefinition, is not served any more.
    withdrawn: Option<Receiver<bool>>,
    over: bool,
}

impl Feed {
    fn new(request: &ResourceRequest, filter: Filter, options: &ListOptions, watch: Watch, after: u64) -> Feed {
        let end = Instant::now() + timeout(options);
        let mut feed = Feed {
            server: request.server.clone(),
            kind: request.kind.clone(),
            filter,
            watch,
            after,
            bookmarks: options.allow_watch_bookmarks,
            end,
            wake: Box::pin(tokio::time::sleep_until(end)),
            withdrawn: request.kind.custom.as_ref().map(|custom| custom.withdrawn.subscribe()),
            over: false,
        };
        feed.sleep();
        feed
    }

    /// The next change, bookmark or failure; none when the watch is over.
    async fn next(&mut self) -> Option<WatchEvent> {
        while !self.over {
            tokio::select! {
                biased;
                event = self.watch.next() => match event? {
                    Ok(event) => {
                        if let Some(event) = self.seen(&event) {
                            return Some(event);
                        }
                    }
                    Err(error) => return self.failed(&error),
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

    /// What a change looks like through the filter.
    fn seen(&self, event: &Arc<Event>) -> Option<WatchEvent> {
        if event.revision <= self.after {
            return None;
        }
        let change = match (event.created, &event.value) {
            (true, _) => Change::Added,
            (false, Some(_)) => Change::Modified,
            (false, None) => Change::Deleted,
        };
        if self.filter.is_empty() {
            return Some(self.whole(event, change));
        }
        let is_meant = event.value.as_ref().is_some_and(|value| self.means(value, event.revision));
        let previous = event.previous.as_ref();
        let was_meant = previous.is_some_and(|entry| self.means(&entry.value, entry.revision));
        match (was_meant, is_meant) {
            (false, false) => None,
            (true, true) => Some(self.whole(event, Change::Modified)),
            (false, true) => Some(self.whole(event, Change::Added)),
            (true, false) if event.value.is_none() => Some(self.whole(event, Change::Deleted)),
            (true, false) => {
                let last = object::restamp(previous?, event.revision);
                Some(WatchEvent::new(Change::Deleted, self.kind.present(&last, event.revision)))
            }
        }
    }

    fn means(&self, value: &Bytes, revision: u64) -> bool {
        self.filter.matches(&self.kind.present(value, revision))
    }

    fn whole(&self, event: &Arc<Event>, change: Change) -> WatchEvent {
        match self.kind.is_present(&event.last, event.revision) {
            true => self.server.frames().event(event, change),
            false => WatchEvent::new(change, self.kind.present(&event.last, event.revision)),
        }
    }

    fn failed(&mut self, error: &Error) -> Option<WatchEvent> {
        self.over = true;
        match error {
            Error::Compacted { requested, oldest } => Some(expired(*requested, *oldest)),
            // Too slow, or the store is closing: the client watches again from where it was.
            _ => None,
        }
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

/// When a watch ends: as the client says, else after half an hour to an hour.
fn timeout(options: &ListOptions) -> Duration {
    match options.timeout_seconds {
        Some(seconds) if seconds > 0 => Duration::from_secs(seconds.unsigned_abs()),
        _ => Duration::from_secs(1800 + u64::from(uuid::Uuid::new_v4().as_bytes()[0]) * 7),
    }
}

fn bookmark(kind: &Kind, revision: u64, metadata: serde_json::Value) -> WatchEvent {
    let mut metadata = metadata;
    metadata["resourceVersion"] = revision.to_string().into();
    let resource = &kind.resource;
    let object = json!({"kind": resource.kind, "apiVersion": resource.api_version(), "metadata": metadata});
    WatchEvent::new(Change::Bookmark, object.to_string().into())
}

fn expired(requested: u64, oldest: u64) -> WatchEvent {
    let status = Status::expired(format!("too old resource version: {requested} ({oldest})"));
    WatchEvent::new(Change::Error, status.to_value().to_string().into())
}
