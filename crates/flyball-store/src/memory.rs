//! The backend in memory: everything happens at once under one lock, in the task that asks.

use crate::{Backend, Committed, Entry, Error, Health, Op, Options, Page, Range, Result, Snapshot, Watch};
use crate::{
    ahead::Ahead,
    core::{Core, State},
    plan::Plan,
    wish::Wish,
};
use bytes::Bytes;
use futures::future::{self, BoxFuture, FutureExt};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A store that is gone with its process.
pub(crate) struct Memory {
    core: Core,
    writer: Mutex<Writer>,
}

/// Whoever holds it writes.
#[derive(Default)]
struct Writer {
    is_closed: bool,
}

impl Memory {
    pub fn new(options: Options) -> Memory {
        Memory {
            core: Core::new(options, State::default()),
            writer: Mutex::default(),
        }
    }

    fn write(&self, ops: Vec<Op>) -> Result<Committed> {
        let _writer = self.writer()?;
        let wish = Wish::prepare(&self.core, ops)?;
        let (mut ahead, mut plan) = (Ahead::at(wish.seen), Plan::default());
        let committed = ahead.add(&mut plan, || self.core.state(), wish).answer()?;
        let state = self.core.state();
        let cut = state.history.excess(&self.core.options, plan.cost(), ahead.revision);
        drop(state);
        self.core.cut(cut);
        self.core.apply(&mut plan, |_| {});
        self.core.publish(&plan);
        Ok(committed)
    }

    fn cut(&self, revision: u64) -> Result<()> {
        let _writer = self.writer()?;
        let state = self.core.state();
        state.check(revision)?;
        drop(state);
        self.core.cut(revision);
        Ok(())
    }

    fn writer(&self) -> Result<MutexGuard<'_, Writer>> {
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if writer.is_closed {
            Err(Error::Closed)
        } else {
            Ok(writer)
        }
    }
}

impl Backend for Memory {
    fn get<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Entry>>> {
        future::ready(self.core.get(key)).boxed()
    }

    fn range(&self, range: Range) -> BoxFuture<'_, Result<Page>> {
        future::ready(self.core.find(range).and_then(|found| self.core.read(&found))).boxed()
    }

    fn snapshot(&self) -> BoxFuture<'_, Result<Snapshot>> {
        future::ready(Ok(self.core.snapshot())).boxed()
    }

    fn commit(&self, ops: Vec<Op>) -> BoxFuture<'_, Result<Committed>> {
        future::ready(self.write(ops)).boxed()
    }

    fn watch(&self, prefix: Bytes, after: u64) -> BoxFuture<'_, Result<Watch>> {
        future::ready(self.core.watch(prefix, after)).boxed()
    }

    fn compact(&self, revision: u64) -> BoxFuture<'_, Result<()>> {
        future::ready(self.cut(revision)).boxed()
    }

    fn revision(&self) -> u64 {
        self.core.revision()
    }

    fn reached(&self, revision: u64) -> BoxFuture<'_, ()> {
        self.core.reached(revision).boxed()
    }

    fn health(&self) -> BoxFuture<'_, Health> {
        let health = self.writer().map_or_else(|error| Health::unavailable(&error), |_| Health::Healthy);
        future::ready(health).boxed()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        if let Ok(mut writer) = self.writer() {
            writer.is_closed = true;
            self.core.close();
        }
        future::ready(()).boxed()
    }
}
