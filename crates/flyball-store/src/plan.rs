//! Decides what a batch of commits changes, in order, before anything is written.

use crate::{Committed, Entry, Error, Expect, Op, Result};
use crate::{core::State, history::Change, index::Index, record::Place, record::Record};
use bytes::Bytes;
use std::collections::{HashMap, HashSet};

/// What the disk has around each record, roughly.
const OVERHEAD: usize = 40;

/// The changes of some commits, in order.
#[derive(Default)]
pub(crate) struct Plan {
    pub changes: Vec<Change>,
}

/// What is planned and has not reached the index: the next plan builds on it.
pub(crate) struct Ahead {
    pub revision: u64,
    latest: HashMap<Bytes, Record>,
}

impl Plan {
    /// Says what the history will keep because of the planned changes.
    pub fn cost(&self) -> usize {
        self.changes.iter().map(Change::cost).sum()
    }

    /// How many bytes the planned versions take on disk, roughly.
    pub fn size(&self) -> usize {
        self.changes.iter().map(|change| change.record.size() + OVERHEAD).sum()
    }

    /// The revision that the last change leads to.
    pub fn revision(&self) -> Option<u64> {
        self.changes.last().map(Change::revision)
    }
}

impl Ahead {
    /// Starts where nothing is planned on top of an index at a revision.
    pub fn at(revision: u64) -> Ahead {
        Ahead { revision, latest: HashMap::new() }
    }

    /// Whether the index has reached everything.
    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.latest.is_empty()
    }

    /// Plans a commit as the next revision; plans nothing where it is refused or changes nothing.
    pub fn add(&mut self, plan: &mut Plan, state: &State, ops: &[Op]) -> Result<Committed> {
        refuse_duplicates(ops)?;
        let found = ops.iter().map(|op| self.check(state, op)).collect::<Result<Vec<_>>>()?;
        let before = plan.changes.len();
        let positions = found.into_iter().zip(0..);
        let entries = ops
            .iter()
            .zip(positions)
            .map(|(op, (previous, at))| self.apply(plan, op, previous, at))
            .collect();
        if plan.changes.len() > before {
            self.revision += 1;
        }
        Ok(Committed { revision: self.revision, entries })
    }

    /// Forgets a plan that the index has reached, or that came to nothing.
    pub fn forget(&mut self, plan: &Plan) {
        for Change { record, .. } in &plan.changes {
            let is_last = |latest: &Record| latest.revision() <= record.revision();
            if self.latest.get(record.key()).is_some_and(is_last) {
                self.latest.remove(record.key());
            }
        }
    }

    /// Finds what an operation replaces, as a whole where it removes it; refuses the operation where it expects something
    /// else.
    fn check(&self, state: &State, op: &Op) -> Result<Option<Record>> {
        let current = self.current(&state.index, op.key());
        let expect = op.expect();
        let as_expected = match expect {
            Expect::Anything => true,
            Expect::Absent => current.is_none(),
            Expect::Revision(revision) => current.is_some_and(|record| record.revision() == revision),
        };
        if !as_expected {
            let current = current.map(|record| state.view().entry(record)).transpose()?.map(Box::new);
            return Err(Error::Conflict { key: op.key().clone(), expect, current });
        }
        match op {
            Op::Put { key, value, .. } => Record::check(key, value).map(|()| current.cloned()),
            Op::Delete { .. } => current.map(|record| state.whole(record)).transpose(),
        }
    }

    fn apply(&mut self, plan: &mut Plan, op: &Op, previous: Option<Record>, position: u32) -> Option<Entry> {
        let revision = self.revision + 1;
        let (record, entry) = match op {
            Op::Put { key, value, .. } => {
                let created = previous.as_ref().map_or(revision, Record::created);
                let record = Record::put(key, value, Place { revision, created, position });
                let entry = record.entry()?;
                (record, entry)
            }
            Op::Delete { key, .. } => {
                let entry = previous.as_ref()?.entry()?.removed_at(revision);
                (Record::removal(key, revision, position), entry)
            }
        };
        self.latest.insert(record.key_bytes(), record.clone());
        plan.changes.push(Change { record, previous });
        Some(entry)
    }

    fn current<'a>(&'a self, index: &'a Index, key: &[u8]) -> Option<&'a Record> {
        match self.latest.get(key) {
            Some(record) => Some(record).filter(|record| !record.is_removal()),
            None => index.get(key),
        }
    }
}

/// Refuses a commit that names a key twice.
pub(crate) fn refuse_duplicates(ops: &[Op]) -> Result<()> {
    let mut seen = HashSet::new();
    match ops.iter().find(|op| ops.len() > 1 && !seen.insert(op.key())) {
        Some(op) => Err(Error::Duplicate { key: op.key().clone() }),
        None => Ok(()),
    }
}
