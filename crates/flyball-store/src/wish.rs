//! A commit on its way: what can be prepared before its turn, and what can be answered after it, so that its turn is short.

use crate::{Committed, Error, Expect, Op, Result};
use crate::{core::Core, record::Draft, record::Record, view::View};
use bytes::Bytes;
use smallvec::SmallVec;
use std::collections::HashSet;

/// What there is one of for each operation of a commit, and most have one.
pub(crate) type Few<T> = SmallVec<[T; 1]>;

/// A commit that is prepared.
pub(crate) struct Wish {
    pub wants: Few<Want>,
    /// The revision at which it was prepared.
    pub seen: u64,
    /// Whether the history keeps no values.
    pub has_outlines: bool,
}

/// One operation of it.
pub(crate) struct Want {
    pub key: Bytes,
    pub expect: Expect,
    pub action: Action,
    /// What was there when it was prepared.
    pub found: Option<Record>,
}

/// What an operation does to its key.
pub(crate) enum Action {
    Put(Draft),
    Delete,
    Check,
}

/// What was decided.
pub(crate) enum Outcome {
    /// For each operation what it wrote or removed.
    Done(u64, Few<Option<Made>>),
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
    pub fn prepare(core: &Core, ops: Vec<Op>) -> Result<Wish> {
        refuse_duplicates(&ops)?;
        let state = core.state();
        let found: Few<_> = ops.iter().map(|op| state.index.get(op.key()).cloned()).collect();
        let (seen, has_outlines) = (state.revision, state.disk.is_some());
        drop(state);
        let mut wants = Few::with_capacity(ops.len());
        for (op, found) in ops.into_iter().zip(found) {
            wants.push(match op {
                Op::Put { key, value, expect } => {
                    Record::check(&key, &value)?;
                    let action = Action::Put(Draft::of(&key, &value, seen + 1, |length| core.take(length)));
                    Want { key, expect, action, found }
                }
                Op::Delete { key, expect } => Want { key, expect, action: Action::Delete, found },
                Op::Check { key, expect } => Want { key, expect, action: Action::Check, found },
            });
        }
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
        let mut entries = Vec::with_capacity(made.len());
        for made in made {
            entries.push(match made {
                None => None,
                Some(Made::Written(record)) => record.entry(),
                Some(Made::Removed(record, view)) => Some(view.entry(&record)?.removed_at(revision)),
            });
        }
        Ok(Committed { revision, entries })
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
