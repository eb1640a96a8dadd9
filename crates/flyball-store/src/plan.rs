//! The changes that some commits make, in order, before anything is written.

use crate::history::Change;

/// The changes of some commits, in order.
#[derive(Default)]
pub(crate) struct Plan {
    pub changes: Vec<Change>,
    /// The same without values, for a history that keeps none.
    pub outlines: Vec<Change>,
}

impl Plan {
    /// Has room for so many changes.
    pub fn of(changes: usize) -> Plan {
        Plan {
            changes: Vec::with_capacity(changes),
            outlines: Vec::with_capacity(changes),
        }
    }

    /// Says what the history will keep because of the planned changes.
    pub fn cost(&self) -> usize {
        self.changes.iter().map(Change::cost).sum()
    }

    /// The revision that the last change leads to.
    pub fn revision(&self) -> Option<u64> {
        self.changes.last().map(Change::revision)
    }
}
