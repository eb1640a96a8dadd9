//! The operations of a commit, and its answer.

use crate::Entry;
use bytes::Bytes;

/// One conditional write of a commit.
#[derive(Clone, Debug)]
pub enum Op {
    /// Writes a value.
    Put {
        /// The key to write.
        key: Bytes,
        /// What to write.
        value: Value,
        /// What must be there before.
        expect: Expect,
    },
    /// Removes a key; removing what is not there changes nothing.
    Delete {
        /// The key to remove.
        key: Bytes,
        /// What must be there before.
        expect: Expect,
    },
    /// Compares only: the commit happens if the key is as expected, and leaves the key untouched.
    Check {
        /// The key to compare.
        key: Bytes,
        /// What must be there.
        expect: Expect,
    },
}

impl Op {
    /// Writes a value if the key is as expected.
    pub fn put(key: impl Into<Bytes>, value: impl Into<Value>, expect: Expect) -> Op {
        Op::Put { key: key.into(), value: value.into(), expect }
    }

    /// Removes a key if it is as expected.
    pub fn delete(key: impl Into<Bytes>, expect: Expect) -> Op {
        Op::Delete { key: key.into(), expect }
    }

    /// Makes the commit depend on a key that it does not write.
    pub fn check(key: impl Into<Bytes>, expect: Expect) -> Op {
        Op::Check { key: key.into(), expect }
    }

    /// The key that it is about.
    pub fn key(&self) -> &Bytes {
        match self {
            Op::Put { key, .. } | Op::Delete { key, .. } | Op::Check { key, .. } => key,
        }
    }

    pub(crate) fn expect(&self) -> Expect {
        match self {
            Op::Put { expect, .. } | Op::Delete { expect, .. } | Op::Check { expect, .. } => *expect,
        }
    }
}

/// What must be true of a key for its operation, and with it the whole commit, to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Any state.
    Anything,
    /// The key is not there.
    Absent,
    /// The key was last changed at this revision.
    Revision(u64),
}

/// Bytes to write, and where in them the store writes the revision that it assigns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// The bytes without the revision.
    pub bytes: Bytes,
    /// The offset at which the store inserts the decimal revision, so that a value can name its own revision although
    /// the store never parses it.
    pub revision_at: Option<usize>,
}

impl Value {
    /// A value that is stored as it is.
    pub fn plain(bytes: impl Into<Bytes>) -> Value {
        Value { bytes: bytes.into(), revision_at: None }
    }

    /// A value into which the store inserts the revision at an offset.
    pub fn stamped(bytes: impl Into<Bytes>, at: usize) -> Value {
        Value { bytes: bytes.into(), revision_at: Some(at) }
    }
}

impl<T: Into<Bytes>> From<T> for Value {
    fn from(bytes: T) -> Value {
        Value::plain(bytes)
    }
}

/// The answer to a commit.
#[derive(Clone, Debug)]
pub struct Committed {
    /// The revision of the commit; the store's latest where the commit changed nothing.
    pub revision: u64,
    /// For each operation, in order: the entry written; for a delete the entry removed, stamped with the revision of its
    /// removal; `None` where there was nothing to remove, and for a check.
    pub entries: Vec<Option<Entry>>,
}
