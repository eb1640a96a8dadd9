//! The state that memory and disk share: the latest records, the recent changes and who watches. A backend decides when a
//! plan is applied; nothing here waits.

use crate::{Entry, Error, Options, Page, Range, Result, Snapshot, Watch};
use crate::{
    courtesy::Courtesy,
    disk::Engine,
    found::Found,
    history::{Change, History},
    index::Index,
    plan::Plan,
    record::Record,
    resident::Residents,
    slab::Slab,
    view::View,
    watchers::Watchers,
};
use bytes::{Bytes, BytesMut};
use std::{
    ops::Deref,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard},
};
use tokio::sync::watch;

/// So many records are kept in memory before somebody else may write.
const KEPT_AT_ONCE: usize = 128;

/// So many changes are applied before somebody else may read.
const APPLIED_AT_ONCE: usize = 32;

/// So many changes are forgotten before somebody else may read.
const CUT_AT_ONCE: usize = 1_024;

/// What a store knows, for many readers and one writer.
pub(crate) struct Core {
    pub options: Options,
    state: RwLock<State>,
    watchers: Arc<Watchers>,
    revision: watch::Sender<u64>,
    /// Where values do not stay in memory: those that are written one after the other leave it so, too.
    slab: Option<Slab>,
}

/// The latest records and the changes that led to them.
#[derive(Default)]
pub(crate) struct State {
    pub index: Index,
    pub history: History,
    pub revision: u64,
    /// Where the values are that are not in memory, and which of them are; `None` where all are in memory.
    pub disk: Option<(Arc<Engine>, Residents)>,
}

/// The state, which does not change while this is held.
pub(crate) struct Known<'a>(RwLockReadGuard<'a, State>);

impl Deref for Known<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        &self.0
    }
}

impl Core {
    pub fn new(options: Options, state: State) -> Core {
        let revision = state.revision;
        Core {
            watchers: Arc::new(Watchers::new(options.watch_bytes, revision)),
            revision: watch::Sender::new(revision),
            slab: state.disk.is_some().then(Slab::default),
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

    pub fn get(&self, key: &[u8]) -> Result<Option<Entry>> {
        let state = self.state();
        let Some(record) = state.index.get(key).cloned() else {
            return Ok(None);
        };
        if let Some(entry) = record.entry() {
            return Ok(Some(entry));
        }
        let view = state.view();
        drop(state);
        let record = view.whole(&record)?;
        let entry = record.entry();
        self.keep(vec![record]);
        Ok(entry)
    }

    /// Memory for a record that is about to be written.
    pub fn take(&self, length: usize) -> BytesMut {
        self.slab.as_ref().map_or_else(|| BytesMut::zeroed(length), |slab| slab.take(length))
    }

    /// Finds a range, to be read when nobody waits for it.
    pub fn find(&self, range: Range) -> Result<Found> {
        let state = self.state();
        let current = state.revision;
        let revision = range.revision.unwrap_or(current);
        state.check(revision)?;
        let (wanted, later) = if revision == current {
            (range.limit.unwrap_or(usize::MAX), None)
        } else {
            (usize::MAX, Some(state.history.since(revision)))
        };
        let span = state.index.span(&range.prefix, range.from(), wanted);
        let view = state.view();
        drop(state);
        Ok(Found { range, revision, span, later, view })
    }

    /// Reads a range, and keeps in memory what had to be fetched for it.
    pub fn read(&self, found: &Found) -> Result<Page> {
        let (page, fetched) = found.read()?;
        self.keep(fetched);
        Ok(page)
    }

    /// Keeps records in memory that were fetched, as far as there is room, and nobody has to wait for that.
    fn keep(&self, mut records: Vec<Record>) {
        let bytes = records.iter().map(Record::size).sum();
        while !records.is_empty() {
            let Ok(mut state) = self.state.try_write() else { return };
            let State { disk: Some((_, residents)), index, .. } = &mut *state else {
                return;
            };
            if !residents.has_room_for(bytes) {
                return;
            }
            let rest = records.split_off(records.len().min(KEPT_AT_ONCE));
            residents.keep(std::mem::replace(&mut records, rest), index);
        }
    }

    pub fn snapshot(&self) -> Snapshot {
        let state = self.state();
        let (leaves, revision, view) = (state.index.span(b"", b"", usize::MAX).leaves, state.revision, state.view());
        drop(state);
        Snapshot::of(revision, leaves, view)
    }

    pub fn watch(&self, prefix: Bytes, after: u64) -> Result<Watch> {
        self.watchers.add(prefix, after, || {
            let state = self.state();
            state.check(after)?;
            Ok((state.history.since(after), state.revision, state.view()))
        })
    }

    /// Reads the state, as long as nobody changes it.
    pub fn state(&self) -> Known<'_> {
        Known(self.state.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Forgets the history up to a revision, and returns it. What only that needed can be removed then: nobody who looks
    /// from now on will ask for it. Readers need not wait for all of it.
    pub fn cut(&self, revision: u64) -> Vec<Change> {
        let mut gone = Vec::new();
        let cut = |gone: &mut Vec<Change>| {
            let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
            state.history.cut_some(revision, CUT_AT_ONCE, gone)
        };
        let mut courtesy = Courtesy::new();
        while cut(&mut gone) {
            courtesy.give_way();
        }
        gone
    }

    /// Makes planned changes visible to readers, who need not wait for all of them; says how far it has come.
    pub fn apply(&self, plan: &mut Plan, mut reached: impl FnMut(u64)) {
        let mut outlines = std::mem::take(&mut plan.outlines).into_iter();
        let mut commits = plan.changes.chunk_by(|a, b| a.revision() == b.revision()).peekable();
        while commits.peek().is_some() {
            let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
            let mut applied = 0;
            while let Some(commit) = commits.next_if(|commit| applied == 0 || applied + commit.len() <= APPLIED_AT_ONCE)
            {
                commit.iter().for_each(|change| state.apply(change, outlines.next()));
                state.revision = commit[0].revision();
                applied += commit.len();
            }
            let revision = state.revision;
            drop(state);
            self.revision.send_replace(revision);
            reached(revision);
        }
    }

    /// Leaves outlines of so many values that as many bytes as said have room in memory, a few at a time.
    pub fn trim(&self, room: usize) {
        let mut courtesy = Courtesy::new();
        let mut is_over = true;
        while is_over {
            let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
            let State { disk: Some((_, residents)), index, .. } = &mut *state else {
                return;
            };
            is_over = residents.make_room(index, room);
            drop(state);
            courtesy.give_way();
        }
    }

    /// Hands applied changes to those who watch them.
    pub fn publish(&self, plan: &Plan) {
        if let Some(reached) = plan.revision() {
            self.watchers.publish(&plan.changes, reached, || self.state().view());
        }
    }

    /// Ends every watch, and reads only what is in memory from now on.
    pub fn close(&self) {
        self.watchers.close();
        let disk = self.state.write().unwrap_or_else(PoisonError::into_inner).disk.take();
        disk.into_iter().for_each(|(engine, _)| engine.close());
    }
}

impl State {
    /// Where the values are that are not in memory.
    pub fn view(&self) -> View {
        self.disk.as_ref().map(|(engine, _)| engine.view()).unwrap_or_default()
    }

    /// Takes a change into the index and the history, which keeps the outline of it where there is one.
    fn apply(&mut self, change: &Change, outline: Option<Change>) {
        let record = &change.record;
        if record.is_removal() {
            self.index.remove(record.key());
        } else {
            self.index.insert(record.clone());
        }
        let kept = outline.unwrap_or_else(|| change.clone());
        if let Some((_, residents)) = self.disk.as_mut().filter(|_| !record.is_removal()) {
            residents.add(kept.record.clone());
        }
        self.history.push(kept);
    }

    /// Takes the outline of a record as it is read back, in the order of revisions; `None` where it cannot follow the ones
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
