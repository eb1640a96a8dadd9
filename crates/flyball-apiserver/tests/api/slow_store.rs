//! A store that takes its time, so that requests can be dropped in the middle, and that counts and fails reads.

use bytes::Bytes;
use flyball_store::{Backend, Committed, Entry, Health, Op, Page, Range, Result, Snapshot, Store, Watch};
use futures::future::BoxFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// How long each commit takes.
pub const COMMIT: Duration = Duration::from_millis(10);

/// A store in memory whose commits take time, as those of a disk do.
pub struct SlowStore(pub Store);

/// A store in memory that counts range reads.
pub fn counting(store: &Store) -> (Store, Arc<AtomicUsize>) {
    let ranges = Arc::new(AtomicUsize::new(0));
    let counting = CountingStore { store: store.clone(), ranges: ranges.clone() };
    (Store::new(counting), ranges)
}

struct CountingStore {
    store: Store,
    ranges: Arc<AtomicUsize>,
}

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

impl Backend for CountingStore {
    fn get<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Entry>>> {
        Box::pin(self.store.get(key))
    }

    fn range(&self, range: Range) -> BoxFuture<'_, Result<Page>> {
        self.ranges.fetch_add(1, Ordering::SeqCst);
        Box::pin(self.store.range(range))
    }

    fn snapshot(&self) -> BoxFuture<'_, Result<Snapshot>> {
        Box::pin(self.store.snapshot())
    }

    fn commit(&self, ops: Vec<Op>) -> BoxFuture<'_, Result<Committed>> {
        Box::pin(self.store.commit(ops))
    }

    fn watch(&self, prefix: Bytes, after: u64) -> BoxFuture<'_, Result<Watch>> {
        Box::pin(self.store.watch(prefix, after))
    }

    fn compact(&self, revision: u64) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.store.compact(revision))
    }

    fn revision(&self) -> u64 {
        self.store.revision()
    }

    fn reached(&self, revision: u64) -> BoxFuture<'_, ()> {
        Box::pin(self.store.reached(revision))
    }

    fn health(&self) -> BoxFuture<'_, Health> {
        Box::pin(self.store.health())
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.store.close())
    }
}
