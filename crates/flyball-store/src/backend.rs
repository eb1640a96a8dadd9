//! The trait that backends implement; [`crate::Store`] is a handle to one.

use crate::{Committed, Entry, Health, Op, Page, Range, Result, Snapshot, Watch};
use bytes::Bytes;
use futures::future::BoxFuture;

/// Storage of values under one monotonic revision; [`crate::Store`] documents each operation.
pub trait Backend: Send + Sync + 'static {
    /// Reads the latest value of a key.
    fn get<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Entry>>>;

    /// Reads the entries under a prefix at one revision.
    fn range(&self, range: Range) -> BoxFuture<'_, Result<Page>>;

    /// Reads everything at one revision, however long that takes.
    fn snapshot(&self) -> BoxFuture<'_, Result<Snapshot>>;

    /// Writes all operations as one revision, or none of them.
    fn commit(&self, ops: Vec<Op>) -> BoxFuture<'_, Result<Committed>>;

    /// Watches every change under a prefix above a revision.
    fn watch(&self, prefix: Bytes, after: u64) -> BoxFuture<'_, Result<Watch>>;

    /// Removes the history below a revision.
    fn compact(&self, revision: u64) -> BoxFuture<'_, Result<()>>;

    /// Returns the revision of the latest commit that this process knows of.
    fn revision(&self) -> u64;

    /// Waits until that revision is reached or passed.
    fn reached(&self, revision: u64) -> BoxFuture<'_, ()>;

    /// Reports whether the backend can read and write right now.
    fn health(&self) -> BoxFuture<'_, Health>;

    /// Whether other processes may commit to the same backend.
    fn is_shared(&self) -> bool {
        false
    }

    /// How many snapshots of the disk are held for reads and watches in progress.
    fn open_snapshots(&self) -> usize {
        0
    }

    /// Finishes queued commits and releases all resources.
    fn close(&self) -> BoxFuture<'_, ()>;
}
