//! Which values are in memory where not all of them are: those written or read last.

use crate::{index::Index, record::Record};
use std::collections::VecDeque;

/// How many bytes of values are in memory, and which of them came there first.
pub(crate) struct Residents {
    /// Outlines of the records that are in the index as a whole, oldest first; some of them are replaced by now.
    outlines: VecDeque<Record>,
    bytes: usize,
    most: usize,
}

impl Residents {
    pub fn new(most: usize) -> Residents {
        Residents { outlines: VecDeque::new(), bytes: 0, most }
    }

    /// Takes up a record that is in the index as a whole.
    pub fn add(&mut self, outline: Record) {
        self.bytes += outline.size();
        self.outlines.push_back(outline);
    }

    /// Leaves of so many at most outlines, until there is room; says whether there are more to come.
    pub fn evict(&mut self, index: &mut Index, most: usize) -> bool {
        for _ in 0..most {
            if self.bytes <= self.most {
                return false;
            }
            let Some(oldest) = self.outlines.pop_front() else {
                return false;
            };
            self.bytes -= oldest.size();
            index.replace(oldest.clone(), |record| record.is_same(&oldest));
        }
        self.bytes > self.most
    }

    /// Puts records that were read back into the index, unless they were replaced meanwhile, or are too many to stay.
    pub fn keep(&mut self, records: Vec<Record>, index: &mut Index) {
        for record in records {
            let outline = index.replace(record.clone(), |found| found.is_same(&record) && !found.is_whole());
            outline.into_iter().for_each(|outline| self.add(outline));
        }
        while self.evict(index, usize::MAX) {}
    }

    /// Whether so many bytes could stay.
    pub fn has_room_for(&self, bytes: usize) -> bool {
        bytes <= self.most
    }
}
