//! Decides what a batch of commits changes, in order, before anything is written.

use crate::{Committed, Entry, Error, Expect, Op, Result};
use crate::{core::State, history::Change, index::Index, record::Place, record::Record};
use bytes::Bytes;
use std::collections::{HashMap, HashSet};

/// The changes of some commits on top of an index that they have not reached yet.
pub(crate) struct Plan {
    pub revision: u64,
    pub changes: Vec<Change>,
    latest: HashMap<Bytes, usize>,
    /// What was asked for. It is freed with the plan, when everybody has been answered.
    spent: Vec<Op>,
}

impl Plan {
    /// Starts a plan on top of an index at a revision.
    pub fn new(revision: u64) -> Plan {
        Plan {
            revision,
            changes: Vec::new(),
            latest: HashMap::new(),
            spent: Vec::new(),
        }
    }

    /// Adds a commit as the next revision; adds nothing where it is refused or changes nothing.
    pub fn add(&mut self, state: &State, ops: Vec<Op>) -> Result<Committed> {
        refuse_duplicates(&ops)?;
        let found = ops.iter().map(|op| self.check(state, op)).collect::<Result<Vec<_>>>()?;
        let before = self.changes.len();
        let positions = found.into_iter().zip(0..);
        let entries = ops
            .iter()
            .zip(positions)
            .map(|(op, (previous, at))| self.apply(op, previous, at))
            .collect();
        self.spent.extend(ops);
        if self.changes.len() > before {
            self.revision += 1;
        }
        Ok(Committed { revision: self.revision, entries })
    }

    /// Says what the history will keep because of the planned changes.
    pub fn cost(&self) -> usize {
        self.changes.iter().map(Change::cost).sum()
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

    fn apply(&mut self, op: &Op, previous: Option<Record>, position: u32) -> Option<Entry> {
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
        self.latest.insert(record.key_bytes(), self.changes.len());
        self.changes.push(Change { record, previous });
        Some(entry)
    }

    fn current<'a>(&'a self, index: &'a Index, key: &[u8]) -> Option<&'a Record> {
        match self.latest.get(key) {
            Some(at) => Some(&self.changes[*at].record).filter(|record| !record.is_removal()),
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
