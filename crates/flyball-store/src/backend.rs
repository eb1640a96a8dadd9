//! What a place that keeps values must do. [`crate::Store`] erases it.

use crate::{Committed, Entry, Health, Op, Page, Range, Result, Snapshot, Watch};
use bytes::Bytes;
use futures::future::BoxFuture;

/// A place that keeps values under one monotonic revision; [`crate::Store`] documents each operation.
pub trait Backend: Send + Sync + 'static {
    /// Reads the latest value of a key.
    fn get<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Entry>>>;

    /// Reads the entries under a prefix at one revision.
    fn range(&self, range: Range) -> BoxFuture<'_, Result<Page>>;

    /// Reads everything at one revision, however long that takes.
    fn snapshot(&self) -> BoxFuture<'_, Result<Snapshot>>;

    /// Writes all operations as one revision, or none of them.
    fn commit(&self, ops: Vec<Op>) -> BoxFuture<'_, Result<Committed>>;

    /// Hands out every change under a prefix above a revision.
    fn watch(&self, prefix: Bytes, after: u64) -> BoxFuture<'_, Result<Watch>>;

    /// Forgets the history below a revision.
    fn compact(&self, revision: u64) -> BoxFuture<'_, Result<()>>;

    /// Returns the revision of the latest commit that this process knows of.
    fn revision(&self) -> u64;

    /// Waits until that revision is reached or passed.
    fn reached(&self, revision: u64) -> BoxFuture<'_, ()>;

    /// Reports whether the backend can read and write right now; must answer within seconds.
    fn health(&self) -> BoxFuture<'_, Health>;

    /// Whether other processes may commit to the same place.
    fn is_shared(&self) -> bool {
        false
    }

    /// Finishes what is queued and releases what is held.
    fn close(&self) -> BoxFuture<'_, ()>;
}
