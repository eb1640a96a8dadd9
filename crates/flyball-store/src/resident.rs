//! Which values are in memory where not all of them are: those written or read last.

use crate::{index::Index, record::Record};
use std::collections::VecDeque;

/// So many values are taken out of memory before somebody else may read.
const EVICTED_AT_ONCE: usize = 16;

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

    /// Leaves of a few outlines, until so many bytes could come, or half of what may be here; says whether that is not yet so.
    pub fn make_room(&mut self, index: &mut Index, room: usize) -> bool {
        self.evict(index, self.most - room.min(self.most / 2), EVICTED_AT_ONCE)
    }

    fn evict(&mut self, index: &mut Index, least: usize, count: usize) -> bool {
        for _ in 0..count {
            if self.bytes <= least {
                return false;
            }
            let Some(oldest) = self.outlines.pop_front() else {
                return false;
            };
            self.bytes -= oldest.size();
            index.replace(oldest.clone(), |record| record.is_same(&oldest));
        }
        self.bytes > least
    }

    /// Puts records that were read back into the index, unless they were replaced meanwhile, or are too many to stay.
    pub fn keep(&mut self, records: Vec<Record>, index: &mut Index) {
        for record in records {
            let outline = index.replace(record.clone(), |found| found.is_same(&record) && !found.is_whole());
            outline.into_iter().for_each(|outline| self.add(outline));
        }
        self.evict(index, self.most, usize::MAX);
    }

    /// Whether so many bytes could stay.
    pub fn has_room_for(&self, bytes: usize) -> bool {
        bytes <= self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Value, record::Place};

    fn filled(most: usize, count: u64) -> (Residents, Index) {
        let (mut residents, mut index) = (Residents::new(most), Index::default());
        for revision in 1..=count {
            let place = Place { revision, created: revision, position: 0 };
            let record = Record::put(format!("/{revision}").as_bytes(), &Value::plain("v".repeat(100)), place);
            residents.add(record.outline());
            index.insert(record);
        }
        (residents, index)
    }

    fn whole(index: &Index) -> usize {
        let leaves = index.span(b"", b"", usize::MAX).leaves;
        leaves
            .iter()
            .flat_map(|leaf| leaf.records())
            .filter(|record| record.is_whole())
            .map(Record::size)
            .sum()
    }

    #[test]
    fn room_is_made_before_what_needs_it_comes() {
        for (room, left) in [(0, 10_000), (4_000, 6_000), (9_000, 5_000)] {
            let (mut residents, mut index) = filled(10_000, 1_000);
            while residents.make_room(&mut index, room) {}
            assert!(whole(&index) <= left && whole(&index) + 200 > left, "{room}: {}", whole(&index));
        }
    }
}
