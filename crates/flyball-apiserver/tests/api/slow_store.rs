//! A store that takes its time, so that requests can be dropped in the middle.

use bytes::Bytes;
use flyball_store::{Backend, Committed, Entry, Health, Op, Page, Range, Result, Snapshot, Store, Watch};
use futures::future::BoxFuture;
use std::time::Duration;

/// How long each commit takes.
pub const COMMIT: Duration = Duration::from_millis(10);

/// A store in memory whose commits take time, as those of a disk do.
pub struct SlowStore(pub Store);

impl Backend for SlowStore {
    fn get<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Entry>>> {
        Box::pin(self.0.get(key))
    }

    fn range(&self, range: Range) -> BoxFuture<'_, Result<Page>> {
        Box::pin(self.0.range(range))
    }

    fn snapshot(&self) -> BoxFuture<'_, Result<Snapshot>> {
        Box::pin(self.0.snapshot())
    }

    fn commit(&self, ops: Vec<Op>) -> BoxFuture<'_, Result<Committed>> {
        Box::pin(async {
            tokio::time::sleep(COMMIT).await;
            self.0.commit(ops).await
        })
    }

    fn watch(&self, prefix: Bytes, after: u64) -> BoxFuture<'_, Result<Watch>> {
        Box::pin(self.0.watch(prefix, after))
    }

    fn compact(&self, revision: u64) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.0.compact(revision))
    }

    fn revision(&self) -> u64 {
        self.0.revision()
    }

    fn reached(&self, revision: u64) -> BoxFuture<'_, ()> {
        Box::pin(self.0.reached(revision))
    }

    fn health(&self) -> BoxFuture<'_, Health> {
        Box::pin(self.0.health())
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.0.close())
    }
}
