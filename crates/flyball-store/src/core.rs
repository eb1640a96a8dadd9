//! The state that memory and disk share: the latest records, the recent changes and who watches. A backend decides when a
//! plan is applied; nothing here waits.

use crate::{Entry, Error, Options, Page, Range, Result, Snapshot, Watch};
use crate::{
    history::{self, Change, Chunk, History},
    index::{Index, Span},
    leaf::Leaf,
    plan::Plan,
    record::Record,
    watchers::Watchers,
};
use bytes::Bytes;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use tokio::sync::watch;

/// What a store knows, for many readers and one writer.
pub(crate) struct Core {
    pub options: Options,
    state: RwLock<State>,
    watchers: Arc<Watchers>,
    revision: watch::Sender<u64>,
}

/// The latest records and the changes that led to them.
#[derive(Default)]
pub(crate) struct State {
    pub index: Index,
    pub history: History,
    pub revision: u64,
}

impl Core {
    pub fn new(options: Options, state: State) -> Core {
        let revision = state.revision;
        Core {
            watchers: Arc::new(Watchers::new(options.watch_bytes, revision)),
            revision: watch::Sender::new(revision),
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

    pub fn get(&self, key: &[u8]) -> Option<Entry> {
        let record = self.state().index.get(key).cloned();
        record.as_ref().map(Record::entry)
    }

    pub fn range(&self, range: &Range) -> Result<Page> {
        let state = self.state();
        let current = state.revision;
        let revision = range.revision.unwrap_or(current);
        state.check(revision)?;
        if revision == current {
            let span = state.index.span(&range.prefix, range.from(), range.limit.unwrap_or(usize::MAX));
            drop(state);
            return Ok(latest_page(range, &span, revision));
        }
        let span = state.index.span(&range.prefix, range.from(), usize::MAX);
        let chunks = state.history.since(revision);
        drop(state);
        Ok(past_page(range, &span, &chunks, revision))
    }

    pub fn snapshot(&self) -> Snapshot {
        let state = self.state();
        let (leaves, revision) = (state.index.span(b"", b"", usize::MAX).leaves, state.revision);
        drop(state);
        let entries = |leaf: Arc<Leaf>| leaf.records().iter().map(Record::entry).collect::<Vec<_>>();
        Snapshot::of(revision, leaves.into_iter().flat_map(entries))
    }

    pub fn watch(&self, prefix: Bytes, after: u64) -> Result<Watch> {
        self.watchers.add(prefix, after, || {
            let state = self.state();
            state.check(after)?;
            Ok((state.history.since(after), state.revision))
        })
    }

    /// Reads the state as only the writer may rely on it between a plan and its application.
    pub fn state(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes planned changes visible to readers and forgets the history up to a revision.
    pub fn apply(&self, plan: &Plan, cut: u64) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let gone = state.history.cut(cut);
        plan.changes.iter().for_each(|change| state.apply(change.clone()));
        state.revision = plan.revision;
        drop(state);
        drop(gone);
        self.revision
            .send_if_modified(|revision| std::mem::replace(revision, plan.revision) != plan.revision);
    }

    /// Hands applied changes to those who watch them.
    pub fn publish(&self, plan: &Plan) {
        self.watchers.publish(&plan.changes, plan.revision);
    }

    /// Ends every watch.
    pub fn close(&self) {
        self.watchers.close();
    }
}

impl State {
    /// Takes a change into the index and the history.
    pub fn apply(&mut self, change: Change) {
        if change.record.is_removal() {
            self.index.remove(change.record.key());
        } else {
            self.index.insert(change.record.clone());
        }
        self.history.push(change);
    }

    /// Takes a record as it is read back, in the order of revisions; `None` where it cannot follow the ones before.
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

fn latest_page(range: &Range, span: &Span, revision: u64) -> Page {
    let limit = range.limit.unwrap_or(usize::MAX);
    let mut entries = Vec::with_capacity(limit.min(span.count));
    entries.extend(records(range, span).take(limit).map(Record::entry));
    page(entries, revision, span.count)
}

fn past_page(range: &Range, span: &Span, chunks: &[Arc<Chunk>], revision: u64) -> Page {
    let undo = history::undo(chunks, range, revision);
    let entries = history::rewind(records(range, span), &undo, range.limit.unwrap_or(usize::MAX));
    let came = undo.values().filter(|(_, is)| *is).count();
    let were = undo.values().filter(|(was, _)| was.is_some()).count();
    page(entries, revision, span.count - came + were)
}

fn records<'a>(range: &'a Range, span: &'a Span) -> impl Iterator<Item = &'a Record> {
    span.leaves.iter().flat_map(|leaf| leaf.within(&range.prefix, range.from()))
}

fn page(entries: Vec<Entry>, revision: u64, count: usize) -> Page {
    let remaining = (count - entries.len()) as u64;
    Page { entries, revision, more: remaining > 0, remaining }
}
