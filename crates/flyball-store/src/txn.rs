//! Evaluates transactions in their order, each against the index and the writes of the transactions before it in the same
//! batch. Nothing is applied here.

use crate::{Committed, Error, Expect, Op, Result};
use crate::{
    history::Change,
    read_snapshot::ReadSnapshot,
    record::{Record, RecordId},
    state::State,
};
use bytes::Bytes;
use std::collections::{HashMap, HashSet};

/// The operations of a commit, of which none is invalid by itself.
pub(crate) struct Txn(Vec<Op>);

impl Txn {
    /// Refuses what no state could allow: a key given twice, a value that is too large or has its stamp outside.
    pub fn new(ops: Vec<Op>) -> Result<Txn> {
        let mut seen = HashSet::new();
        for op in &ops {
            if ops.len() > 1 && !seen.insert(op.key()) {
                return Err(Error::Duplicate { key: op.key().clone() });
            }
            if let Op::Put { key, value, .. } = op {
                Record::check(key, value)?;
            }
        }
        Ok(Txn(ops))
    }

    #[cfg(feature = "etcd")]
    pub fn ops(&self) -> &[Op] {
        &self.0
    }

    /// How many bytes it writes, roughly.
    pub fn size(&self) -> usize {
        let size = |op: &Op| match op {
            Op::Put { key, value, .. } => key.len() + value.bytes.len(),
            Op::Delete { key, .. } | Op::Check { key, .. } => key.len(),
        };
        self.0.iter().map(size).sum()
    }
}

/// The changes of some transactions, in order, to be written and applied together.
pub(crate) struct WriteBatch {
    pub changes: Vec<Change>,
    /// The revision that the last change leads to.
    pub revision: u64,
    /// The place in `changes` of the latest change of each key.
    overlay: HashMap<Bytes, usize>,
}

/// What a transaction did or why it did nothing.
pub(crate) enum TxnResult {
    /// The revision, and the record that each operation wrote or removed.
    Committed(u64, Vec<Option<Found>>),
    /// A key is not as expected, and the record found there.
    Conflict(Bytes, Expect, Option<Found>),
}

/// A record, and the snapshot to read its value from where that is not in memory.
type Found = (Record, ReadSnapshot);

impl WriteBatch {
    /// Begins on top of a revision.
    pub fn new(revision: u64) -> WriteBatch {
        WriteBatch { changes: Vec::new(), revision, overlay: HashMap::new() }
    }

    /// Returns how many bytes the history will keep because of these changes.
    pub fn cost(&self) -> usize {
        self.changes.iter().map(Change::cost).sum()
    }

    /// Evaluates a transaction as the next revision; adds nothing where it conflicts or changes nothing.
    pub fn add(&mut self, state: &State, txn: Txn) -> TxnResult {
        let mut currents = Vec::with_capacity(txn.0.len());
        for op in &txn.0 {
            let current = self.current(state, op.key());
            let as_expected = match op.expect() {
                Expect::Anything => true,
                Expect::Absent => current.is_none(),
                Expect::Revision(revision) => current.as_ref().is_some_and(|record| record.revision() == revision),
            };
            if !as_expected {
                let current = current.map(|record| snapshot_of(state, record));
                return TxnResult::Conflict(op.key().clone(), op.expect(), current);
            }
            currents.push(current);
        }
        let (before, revision) = (self.changes.len(), self.revision + 1);
        let ops = txn.0.into_iter().zip(currents).zip(0..);
        let results = ops.map(|((op, previous), position)| self.apply(state, op, previous, revision, position));
        let results = results.collect();
        if self.changes.len() > before {
            self.revision = revision;
        }
        TxnResult::Committed(self.revision, results)
    }

    fn apply(
        &mut self,
        state: &State,
        op: Op,
        previous: Option<Record>,
        revision: u64,
        position: u32,
    ) -> Option<Found> {
        let (record, result) = match op {
            Op::Put { key, value, .. } => {
                let created = previous.as_ref().map_or(revision, Record::created);
                let record = Record::put(&key, &value, RecordId { revision, created, position });
                (record.clone(), (record, ReadSnapshot::default()))
            }
            Op::Delete { key, .. } => {
                let removed = snapshot_of(state, previous.clone()?);
                (Record::removal(&key, revision, position), removed)
            }
            Op::Check { .. } => return None,
        };
        self.overlay.insert(record.key_bytes(), self.changes.len());
        self.changes.push(Change { record, previous });
        Some(result)
    }

    fn current(&self, state: &State, key: &Bytes) -> Option<Record> {
        match self.overlay.get(key) {
            Some(at) => Some(&self.changes[*at].record).filter(|record| !record.is_removal()).cloned(),
            None => state.index.get(key).cloned(),
        }
    }
}

fn snapshot_of(state: &State, record: Record) -> Found {
    let snapshot = if record.has_value() {
        ReadSnapshot::default()
    } else {
        state.read_snapshot()
    };
    (record, snapshot)
}

impl TxnResult {
    /// Whether the answer needs no read from disk.
    pub fn is_in_memory(&self) -> bool {
        let has_value = |found: &Found| found.0.has_value();
        match self {
            TxnResult::Committed(_, results) => results.iter().flatten().all(has_value),
            TxnResult::Conflict(_, _, current) => current.iter().all(has_value),
        }
    }

    /// The answer to the caller; reads from disk the values that are not in memory.
    pub fn answer(self) -> Result<Committed> {
        let read = |(record, snapshot): Found| snapshot.entry(&record);
        let (revision, results) = match self {
            TxnResult::Committed(revision, results) => (revision, results),
            TxnResult::Conflict(key, expect, current) => {
                let current = current.map(read).transpose()?.map(Box::new);
                return Err(Error::Conflict { key, expect, current });
            }
        };
        let entries = results.into_iter().map(|found| {
            let entry = found.map(read).transpose()?;
            // One of an earlier revision was removed.
            Ok(entry.map(|entry| {
                if entry.revision < revision {
                    entry.removed_at(revision)
                } else {
                    entry
                }
            }))
        });
        Ok(Committed { revision, entries: entries.collect::<Result<_>>()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(key: &str, expect: Expect) -> Txn {
        Txn::new(vec![Op::put(key.to_owned(), "v", expect)]).unwrap()
    }

    #[test]
    fn a_transaction_sees_the_writes_of_those_before_it_in_the_batch() {
        let state = State::default();
        let mut batch = WriteBatch::new(0);
        assert_eq!(batch.add(&state, put("/a", Expect::Absent)).answer().unwrap().revision, 1);
        assert_eq!(batch.add(&state, put("/a", Expect::Revision(1))).answer().unwrap().revision, 2);
        let conflict = batch.add(&state, put("/a", Expect::Absent)).answer();
        assert!(matches!(conflict, Err(Error::Conflict { current: Some(found), .. }) if found.revision == 2));
        let delete = Txn::new(vec![Op::delete("/a", Expect::Revision(2))]).unwrap();
        assert_eq!(batch.add(&state, delete).answer().unwrap().revision, 3);
        assert_eq!(batch.add(&state, put("/a", Expect::Absent)).answer().unwrap().revision, 4);
        assert_eq!((batch.changes.len(), batch.revision), (4, 4));
    }
}
