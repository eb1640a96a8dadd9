//! The backend in memory: every call is done at once under one lock, in the caller's task.

use crate::{Backend, Committed, Entry, Error, Health, Op, Options, Page, Range, Result, Snapshot, Watch};
use crate::{
    state::{Lookup, SharedState, State},
    txn::{Txn, WriteBatch},
};
use bytes::Bytes;
use futures::future::{self, BoxFuture, FutureExt};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A store that ends with its process.
pub(crate) struct Memory {
    state: SharedState,
    /// Whether the store is closed; locked while a commit or a compaction is applied.
    is_closed: Mutex<bool>,
}

impl Memory {
    pub fn new(options: Options) -> Memory {
        Memory {
            state: SharedState::new(options, State::default()),
            is_closed: Mutex::default(),
        }
    }

    fn write(&self, ops: Vec<Op>) -> Result<Committed> {
        let txn = Txn::new(ops)?;
        let _writer = self.writer()?;
        let state = self.state.read();
        let mut batch = WriteBatch::new(state.revision);
        let committed = batch.add(&state, txn).answer()?;
        let excess = state.history.excess(&self.state.options, batch.cost(), batch.revision);
        drop(state);
        self.state.compact(excess);
        self.state.apply(&batch);
        self.state.publish(&batch);
        Ok(committed)
    }

    fn compact_at(&self, revision: u64) -> Result<()> {
        let _writer = self.writer()?;
        self.state.read().check(revision)?;
        self.state.compact(revision);
        Ok(())
    }

    fn writer(&self) -> Result<MutexGuard<'_, bool>> {
        let is_closed = self.is_closed.lock().unwrap_or_else(PoisonError::into_inner);
        if *is_closed { Err(Error::Closed) } else { Ok(is_closed) }
    }
}

impl Backend for Memory {
    fn get<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Entry>>> {
        let entry = match self.state.lookup(key) {
            Lookup::Found(entry) => Ok(entry),
            Lookup::OnDisk(record, snapshot) => self.state.fetch(&record, &snapshot),
        };
        future::ready(entry).boxed()
    }

    fn range(&self, range: Range) -> BoxFuture<'_, Result<Page>> {
        future::ready(self.state.find(range).and_then(|query| self.state.run(&query))).boxed()
    }

    fn snapshot(&self) -> BoxFuture<'_, Result<Snapshot>> {
        future::ready(Ok(self.state.snapshot())).boxed()
    }

    fn commit(&self, ops: Vec<Op>) -> BoxFuture<'_, Result<Committed>> {
        future::ready(self.write(ops)).boxed()
    }

    fn watch(&self, prefix: Bytes, after: u64) -> BoxFuture<'_, Result<Watch>> {
        future::ready(self.state.watch(prefix, after)).boxed()
    }

    fn compact(&self, revision: u64) -> BoxFuture<'_, Result<()>> {
        future::ready(self.compact_at(revision)).boxed()
    }

    fn revision(&self) -> u64 {
        self.state.revision()
    }

    fn reached(&self, revision: u64) -> BoxFuture<'_, ()> {
        self.state.reached(revision).boxed()
    }

    fn health(&self) -> BoxFuture<'_, Health> {
        let health = self.writer().map_or_else(|error| Health::unavailable(&error), |_| Health::Healthy);
        future::ready(health).boxed()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        if let Ok(mut is_closed) = self.writer() {
            *is_closed = true;
            self.state.close();
        }
        future::ready(()).boxed()
    }
}
