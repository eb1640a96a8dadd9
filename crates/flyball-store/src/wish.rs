//! A commit on its way: what can be prepared before its turn, and what can be answered after it, so that its turn is short.

use crate::{Committed, Entry, Error, Expect, Op, Result};
use crate::{core::State, record::Draft, record::Record, view::View};
use bytes::Bytes;
use std::{collections::HashSet, ops::Deref};

/// A commit that is prepared.
pub(crate) struct Wish {
    pub wants: Vec<Want>,
    /// The revision at which it was prepared.
    pub seen: u64,
    /// Whether the history keeps no values.
    pub has_outlines: bool,
}

/// One operation of it.
pub(crate) struct Want {
    pub key: Bytes,
    pub expect: Expect,
    /// What is to be written, or nothing where the key is to be removed.
    pub draft: Option<Draft>,
    /// What was there when it was prepared.
    pub found: Option<Record>,
}

/// What was decided.
pub(crate) enum Outcome {
    /// For each operation what it wrote or removed.
    Done(u64, Vec<Option<Made>>),
    /// A key is not as expected; what is there, and where it is read.
    Refused(Bytes, Expect, Option<(Record, View)>),
}

/// What one operation did.
pub(crate) enum Made {
    Written(Record),
    Removed(Record, View),
}

impl Wish {
    /// Prepares a commit; refuses what no state could allow.
    pub fn prepare(state: impl Deref<Target = State>, ops: Vec<Op>) -> Result<Wish> {
        refuse_duplicates(&ops)?;
        let found: Vec<_> = ops.iter().map(|op| state.index.get(op.key()).cloned()).collect();
        let (seen, has_outlines) = (state.revision, state.disk.is_some());
        drop(state);
        let want = |(op, found)| match op {
            Op::Put { key, value, expect } => {
                Record::check(&key, &value)?;
                let draft = Some(Draft::of(&key, &value, seen + 1));
                Ok(Want { key, expect, draft, found })
            }
            Op::Delete { key, expect } => Ok(Want { key, expect, draft: None, found }),
        };
        let wants = ops.into_iter().zip(found).map(want).collect::<Result<_>>()?;
        Ok(Wish { wants, seen, has_outlines })
    }
}

impl Outcome {
    /// What is answered when it is on disk.
    pub fn answer(self) -> Result<Committed> {
        let (revision, made) = match self {
            Outcome::Done(revision, made) => (revision, made),
            Outcome::Refused(key, expect, current) => {
                let current = current.map(|(record, view)| view.entry(&record)).transpose()?.map(Box::new);
                return Err(Error::Conflict { key, expect, current });
            }
        };
        let entry = |made: Made| match made {
            Made::Written(record) => Ok(record.entry()),
            Made::Removed(record, view) => view.entry(&record).map(|entry| Some(entry.removed_at(revision))),
        };
        let entries = made.into_iter().map(|made| made.map_or(Ok(None), entry));
        Ok(Committed {
            revision,
            entries: entries.collect::<Result<Vec<Option<Entry>>>>()?,
        })
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
