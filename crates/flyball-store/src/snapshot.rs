//! All of a store at one revision.

use crate::{Entry, Result};
use futures::{
    Stream, StreamExt,
    stream::{self, BoxStream},
};
use std::{
    pin::Pin,
    task::{Context, Poll},
};

/// Every entry of a store at one revision, in the order of the keys, whatever is written meanwhile; a stream that ends after
/// its first error.
pub struct Snapshot {
    revision: u64,
    entries: BoxStream<'static, Result<Entry>>,
}

impl Snapshot {
    /// Makes a snapshot of entries that were all read at one revision.
    pub fn new(revision: u64, entries: impl Stream<Item = Result<Entry>> + Send + 'static) -> Snapshot {
        Snapshot { revision, entries: entries.boxed() }
    }

    pub(crate) fn of(revision: u64, entries: impl Iterator<Item = Entry> + Send + 'static) -> Snapshot {
        Snapshot::new(revision, stream::iter(entries.map(Ok)))
    }

    /// Returns the revision at which everything is read.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Reads the next entry; `None` after the last, or after an error.
    pub async fn next(&mut self) -> Option<Result<Entry>> {
        self.entries.next().await
    }
}

impl Stream for Snapshot {
    type Item = Result<Entry>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().entries.poll_next_unpin(cx)
    }
}
