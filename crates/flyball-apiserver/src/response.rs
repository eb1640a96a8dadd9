//! The response of an endpoint, before `ResponseEncoder` encodes it for the client.

use crate::registry::Kind;
use crate::status::Status;
use bytes::Bytes;
use futures::stream::BoxStream;
use http::StatusCode;
use serde_json::Value;
use std::sync::Arc;

/// The response of an endpoint, not encoded yet.
pub enum ApiResponse {
    /// One object of a kind, as it is stored.
    Object {
        /// 200, or 201 if the request created it.
        code: StatusCode,
        /// The kind of the object.
        kind: Arc<Kind>,
        /// The object in JSON.
        object: Bytes,
    },
    /// Objects of a kind.
    List(List),
    /// Watch events of a kind, until the stream ends.
    Watch {
        /// The kind of the objects.
        kind: Arc<Kind>,
        /// The events.
        events: BoxStream<'static, WatchEvent>,
    },
    /// An object of no stored kind, such as a Scale.
    Other {
        /// 200, or 201 if the request created it.
        code: StatusCode,
        /// The object.
        object: Value,
    },
    /// Success, without an object.
    Done(Status),
}

/// Objects of a kind.
pub struct List {
    /// The kind of the objects.
    pub kind: Arc<Kind>,
    /// The revision that the list shows.
    pub resource_version: u64,
    /// The token of the next page.
    pub continue_: Option<String>,
    /// The number of objects after this page.
    pub remaining_item_count: Option<u64>,
    /// The objects in JSON, each with its `apiVersion` and `kind`.
    pub items: Vec<Bytes>,
}

/// One watch event.
#[derive(Clone)]
pub struct WatchEvent {
    /// The type of the event.
    pub change: Change,
    /// The object in JSON; of an `ERROR`, a Status.
    pub object: Bytes,
    /// The encoded line in JSON, if another watcher needed it before.
    pub frame: Option<Bytes>,
}

impl WatchEvent {
    /// An event for one watcher only.
    pub fn new(change: Change, object: Bytes) -> WatchEvent {
        WatchEvent { change, object, frame: None }
    }
}

/// The type of a watch event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each is the event type of its name")]
pub enum Change {
    Added,
    Modified,
    Deleted,
    Bookmark,
    Error,
}

impl Change {
    /// The type, as the API writes it.
    pub fn name(self) -> &'static str {
        match self {
            Change::Added => "ADDED",
            Change::Modified => "MODIFIED",
            Change::Deleted => "DELETED",
            Change::Bookmark => "BOOKMARK",
            Change::Error => "ERROR",
        }
    }
}
