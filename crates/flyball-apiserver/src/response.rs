//! What a handler answers, before `negotiate` puts it into the client's media type.

use crate::registry::Kind;
use crate::status::Status;
use bytes::Bytes;
use futures::stream::BoxStream;
use http::StatusCode;
use serde_json::Value;
use std::sync::Arc;

/// What a handler answers.
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
    /// Changes of objects of a kind, until the stream ends.
    Watch {
        /// The kind of the objects.
        kind: Arc<Kind>,
        /// The changes.
        events: BoxStream<'static, WatchEvent>,
    },
    /// An object of no stored kind, such as a Scale.
    Other {
        /// 200, or 201 if the request created it.
        code: StatusCode,
        /// The object.
        object: Value,
    },
    /// That a request was done, where there is no object to show.
    Done(Status),
}

/// Objects of a kind.
pub struct List {
    /// The kind of the objects.
    pub kind: Arc<Kind>,
    /// The revision that the list shows.
    pub resource_version: u64,
    /// Where the next page begins.
    pub continue_: Option<String>,
    /// How many objects follow this page.
    pub remaining_item_count: Option<u64>,
    /// The objects in JSON, each with its `apiVersion` and `kind`.
    pub items: Vec<Bytes>,
}

/// One change.
#[derive(Clone)]
pub struct WatchEvent {
    /// What happened.
    pub change: Change,
    /// The object in JSON; of an `ERROR`, a Status.
    pub object: Bytes,
    /// The whole line in JSON, if it has been made for another watcher.
    pub frame: Option<Bytes>,
}

impl WatchEvent {
    /// A change that no other watcher sees.
    pub fn new(change: Change, object: Bytes) -> WatchEvent {
        WatchEvent { change, object, frame: None }
    }
}

/// What happened to an object.
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
    /// The `type` of the watch event.
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
