//! The state that memory and disk share: the latest records, the recent changes and the watches. A backend decides when a
//! batch is applied; nothing here waits.

use crate::{Entry, Error, Options, Page, Range, Result, Snapshot, Watch};
use crate::{
    disk::Engine,
    history::{Change, History},
    index::Index,
    range_query::RangeQuery,
    read_snapshot::ReadSnapshot,
    record::Record,
    txn::WriteBatch,
    value_cache::ValueCache,
    watch_hub::WatchHub,
};
use bytes::Bytes;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use tokio::sync::watch;

/// The state of a store, for many readers and one writer.
pub(crate) struct SharedState {
    pub options: Options,
    state: RwLock<State>,
    watch_hub: Arc<WatchHub>,
    revision: watch::Sender<u64>,
}

/// The latest records and the changes that led to them.
#[derive(Default)]
pub(crate) struct State {
    pub index: Index,
    pub history: History,
    pub revision: u64,
    /// Where values are read that are not in memory, and which of them are in memory; `None` where all are.
    pub disk: Option<(Arc<Engine>, ValueCache)>,
}

/// What the index knows of a key.
pub(crate) enum Lookup {
    Found(Option<Entry>),
    /// The value has to be read from disk, with [`SharedState::fetch`].
    OnDisk(Record, ReadSnapshot),
}

impl SharedState {
    pub fn new(options: Options, state: State) -> SharedState {
        SharedState {
            watch_hub: Arc::new(WatchHub::new(options.watch_bytes, state.revision)),
            revision: watch::Sender::new(state.revision),
            state: RwLock::new(state),
            options,
        }
    }

    pub fn revision(&self) -> u64 {
        *self.revision.borrow()
    }

    pub async fn reached(&self, revision: u64) {
        let mut revisions = self.revision.subscribe();
        let reached = revisions.wait_for(|current| *current >= revision).await;
        reached.expect("the sender lives as long as the store");
    }

    /// Finds the latest version of a key.
    pub fn lookup(&self, key: &[u8]) -> Lookup {
        let state = self.read();
        match state.index.get(key) {
            Some(record) if !record.has_value() => Lookup::OnDisk(record.clone(), state.read_snapshot()),
            record => Lookup::Found(record.and_then(Record::entry)),
        }
    }

    /// Reads a value from disk, and keeps it in memory.
    pub fn fetch(&self, record: &Record, snapshot: &ReadSnapshot) -> Result<Option<Entry>> {
        let record = snapshot.with_value(record)?;
        let entry = record.entry();
        self.cache(vec![record]);
        Ok(entry)
    }

    /// Finds a range, to be read without the lock.
    pub fn find(&self, range: Range) -> Result<RangeQuery> {
        let state = self.read();
        let current = state.revision;
        let revision = range.revision.unwrap_or(current);
        state.check(revision)?;
        let (wanted, later) = if revision == current {
            (range.limit.unwrap_or(usize::MAX), None)
        } else {
            (usize::MAX, Some(state.history.since(revision)))
        };
        let span = state.index.span(&range.prefix, range.from(), wanted);
        let snapshot = state.read_snapshot();
        drop(state);
        Ok(RangeQuery { range, revision, span, later, snapshot })
    }

    /// Reads a range, and keeps in memory what had to be read from disk for it.
    pub fn run(&self, query: &RangeQuery) -> Result<Page> {
        let (page, fetched) = query.run()?;
        self.cache(fetched);
        Ok(page)
    }

    /// Keeps fetched records in memory; gives up where the state is in use, because readers must not wait for this.
    fn cache(&self, records: Vec<Record>) {
        let Ok(mut state) = self.state.try_write() else { return };
        if let State { disk: Some((_, cache)), index, .. } = &mut *state {
            cache.insert(records, index);
        }
    }

    pub fn snapshot(&self) -> Snapshot {
        let state = self.read();
        let leaves = state.index.span(b"", b"", usize::MAX).leaves;
        let (revision, snapshot) = (state.revision, state.read_snapshot());
        drop(state);
        Snapshot::of(revision, leaves, snapshot)
    }

    pub fn watch(&self, prefix: Bytes, after: u64) -> Result<Watch> {
        self.watch_hub.add(prefix, after, || {
            let state = self.read();
            state.check(after)?;
            let chunks = state.history.since(after);
            // A snapshot keeps fjall from removing old versions, so a watch at the latest revision has none.
            let snapshot = if chunks.is_empty() {
                ReadSnapshot::default()
            } else {
                state.read_snapshot()
            };
            Ok((chunks, state.revision, snapshot))
        })
    }

    /// Locks the state for reading.
    pub fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes the history up to a revision, and returns it. Records that only the removed history referenced may be
    /// deleted afterwards; no new reader can reach them.
    pub fn compact(&self, revision: u64) -> Vec<Change> {
        self.write().history.compact(revision)
    }

    /// Makes changes visible to readers.
    pub fn apply(&self, batch: &WriteBatch) {
        if batch.changes.is_empty() {
            return;
        }
        let mut state = self.write();
        batch.changes.iter().for_each(|change| state.apply(change));
        state.revision = batch.revision;
        if let State { disk: Some((_, cache)), index, .. } = &mut *state {
            cache.evict(index);
        }
        drop(state);
        self.revision.send_replace(batch.revision);
    }

    /// Queues applied changes to the watches.
    pub fn publish(&self, batch: &WriteBatch) {
        if !batch.changes.is_empty() {
            self.watch_hub.publish(&batch.changes, batch.revision, || self.read().read_snapshot());
        }
    }

    /// Ends every watch, and reads only what is in memory from now on.
    pub fn close(&self) {
        self.watch_hub.close();
        let disk = self.write().disk.take();
        disk.into_iter().for_each(|(engine, _)| engine.close());
    }
}

impl State {
    /// A snapshot of the values that are not in memory.
    pub fn read_snapshot(&self) -> ReadSnapshot {
        self.disk.as_ref().map(|(engine, _)| engine.snapshot()).unwrap_or_default()
    }

    /// Takes a change into the index and the history, which keeps no values where they are on disk.
    fn apply(&mut self, change: &Change) {
        let record = &change.record;
        if record.is_removal() {
            self.index.remove(record.key());
        } else {
            self.index.insert(record.clone());
        }
        let Some((_, cache)) = &mut self.disk else {
            return self.history.push(change.clone());
        };
        let header = change.header_only();
        if !record.is_removal() {
            cache.add(header.record.clone());
        }
        self.history.push(header);
    }

    /// Takes the header of a record as it is read back, in the order of revisions; `None` where it cannot follow the ones
    /// before.
    pub fn restore(&mut self, record: Record) -> Option<()> {
        let is_removal = record.is_removal();
        let previous = if is_removal {
            self.index.remove(record.key())
        } else {
            self.index.insert(record.clone())
        };
        let is_past = record.revision() <= self.history.compacted();
        let is_possible = record.revision() <= self.revision && (!is_removal || previous.is_some());
        if !is_possible || (is_past && (is_removal || previous.is_some())) {
            return None;
        }
        if !is_past {
            self.history.push(Change { record, previous });
        }
        Some(())
    }

    /// Refuses a revision that is not in the history.
    pub fn check(&self, requested: u64) -> Result<()> {
        let oldest = self.history.compacted();
        if requested < oldest {
            return Err(Error::Compacted { requested, oldest });
        }
        if requested > self.revision {
            return Err(Error::Future { requested, current: self.revision });
        }
        Ok(())
    }
}
