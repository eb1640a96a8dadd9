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

    /// Takes up a record that is in the index as a whole, and leaves of others so many outlines that there is room for it.
    pub fn add(&mut self, outline: Record, index: &mut Index) {
        self.bytes += outline.size();
        self.outlines.push_back(outline);
        while self.bytes > self.most {
            let Some(oldest) = self.outlines.pop_front() else { break };
            self.bytes -= oldest.size();
            index.replace(oldest.clone(), |record| record.is_same(&oldest));
        }
    }

    /// Puts records that were read back into the index, unless they were replaced meanwhile, or are too many to stay.
    pub fn keep(&mut self, records: Vec<Record>, index: &mut Index) {
        for record in records {
            let outline = index.replace(record.clone(), |found| found.is_same(&record) && !found.is_whole());
            outline.into_iter().for_each(|outline| self.add(outline, index));
        }
    }

    /// Whether so many bytes could stay.
    pub fn has_room_for(&self, bytes: usize) -> bool {
        bytes <= self.most
    }
}
