//! GET of changes, until the watch's timeout or until the client leaves.

mod expiring;
mod feed;
mod initial;

use crate::endpoints::filter::Filter;
use crate::registry::Kind;
use crate::request::context::ResourceRequest;
use crate::request::options::ListOptions;
use crate::request::options::list::parse_resource_version;
use crate::response::{ApiResponse, Change, WatchEvent};
use crate::status::{Reason, Result, Status};
use expiring::Expiring;
use feed::Feed;
use flyball_store::Error;
use futures::{StreamExt, stream};
use http::StatusCode;
use initial::Initial;
use serde_json::json;
use std::time::Duration;
use tokio::time::Instant;

/// How long after its timeout a watch is released whose client does not read what it was sent.
const RELEASE_AFTER: Duration = Duration::from_secs(5);

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
    let (initial, after) = match (with_state, version) {
        (true, version) => {
            let initial = Initial::read(request, &options, version).await?;
            let revision = initial.revision;
            (Some(initial), revision)
        }
        (false, 0) => (None, request.store().revision()),
        (false, version) => (None, version),
    };
    let prefix = request.kind.prefix(request.namespace());
    let end = Instant::now() + timeout(&options);
    let events = match request.store().watch(prefix, after.min(request.store().revision())).await {
        Ok(watch) => {
            let feed = Feed::new(request, filter, &options, (initial, watch), (after, end));
            let events = stream::unfold(feed, |mut feed| async { Some((feed.next().await?, feed)) });
            Expiring::new(events.boxed(), end + RELEASE_AFTER).boxed()
        }
        Err(Error::Compacted { requested, oldest }) => stream::iter([expired(requested, oldest)]).boxed(),
        Err(error) => return request.store_failed(error),
    };
    Ok(ApiResponse::Watch { kind: request.kind.clone(), events })
}

/// How long a watch lasts: what the client says, else half an hour to an hour.
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
    error_event(&expired_status(requested, oldest))
}

fn expired_status(requested: u64, oldest: u64) -> Status {
    Status::expired(format!("too old resource version: {requested} ({oldest})"))
}

/// The ERROR event that ends a watch.
fn error_event(status: &Status) -> WatchEvent {
    WatchEvent::new(Change::Error, status.to_value().to_string().into())
}

/// The ERROR event of a watch that cannot go on; none where the client only has to watch again.
fn failure(error: Error) -> Option<WatchEvent> {
    match error {
        Error::Compacted { requested, oldest } => Some(expired(requested, oldest)),
        // A real server, too, closes slow watches, and all watches when it stops, without an event.
        Error::Lagged { .. } | Error::Closed => None,
        error => {
            let status = Status::store_failed(error);
            Some(WatchEvent::new(Change::Error, status.to_value().to_string().into()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn a_watch_that_cannot_be_read_any_more_says_so() {
        let source = std::io::Error::other("a sector is gone");
        let error = Error::Read { path: "data".into(), source: std::sync::Arc::new(source) };

        let event = failure(error).unwrap();

        let status: Value = serde_json::from_slice(&event.object).unwrap();
        assert_eq!(
            (event.change, &status["kind"], &status["code"]),
            (Change::Error, &json!("Status"), &json!(500))
        );
        assert!(failure(Error::Closed).is_none());
    }
}
