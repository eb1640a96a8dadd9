//! All of a store at one revision.

use crate::{Entry, Result, backup::blocking, index::Leaf, read_snapshot::ReadSnapshot, record::Record};
use futures::{
    Stream, StreamExt, TryStreamExt,
    stream::{self, BoxStream},
};
use std::{
    pin::Pin,
    sync::Arc,
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

    pub(crate) fn of(revision: u64, leaves: Vec<Arc<Leaf>>, snapshot: ReadSnapshot) -> Snapshot {
        let entries = stream::iter(leaves).then(move |leaf| read(leaf, snapshot.clone()));
        let entries = entries.map_ok(|entries| stream::iter(entries).map(Ok)).try_flatten();
        Snapshot::new(revision, entries)
    }

    /// Returns the revision at which everything is read.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Reads the next entry; `None` after the last, or after an error.
    pub async fn next(&mut self) -> Option<Result<Entry>> {
        futures::StreamExt::next(self).await
    }
}

/// Reads the entries of a leaf, on the blocking pool where some of them are on disk.
async fn read(leaf: Arc<Leaf>, snapshot: ReadSnapshot) -> Result<Vec<Entry>> {
    let is_in_memory = leaf.records().iter().all(Record::has_value);
    let entries = move || {
        let records: Vec<&Record> = leaf.records().iter().collect();
        snapshot.entries(&records).map(|(entries, _)| entries)
    };
    if is_in_memory {
        entries()
    } else {
        blocking(entries).await
    }
}

impl Stream for Snapshot {
    type Item = Result<Entry>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = std::task::ready!(self.entries.poll_next_unpin(cx));
        if let Some(Err(_)) = next {
            self.entries = stream::empty().boxed();
        }
        Poll::Ready(next)
    }
}
