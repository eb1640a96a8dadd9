//! Which values of a store on disk are in memory: a FIFO cache, bounded in bytes. The index holds the values; this only
//! remembers in which order they came there.

use crate::{index::Index, record::Record};
use std::collections::VecDeque;

/// The values in memory, in the order in which they were written or fetched.
pub(crate) struct ValueCache {
    /// Header-only copies of the records that are in the index with their value, oldest first; some of them are replaced
    /// by now.
    headers: VecDeque<Record>,
    bytes: usize,
    max_bytes: usize,
}

impl ValueCache {
    pub fn new(max_bytes: usize) -> ValueCache {
        ValueCache { headers: VecDeque::new(), bytes: 0, max_bytes }
    }

    /// Notes a record that is in the index with its value.
    pub fn add(&mut self, header: Record) {
        self.bytes += header.size();
        self.headers.push_back(header);
    }

    /// Replaces the oldest values in the index by their headers until the rest fits.
    pub fn evict(&mut self, index: &mut Index) {
        while self.bytes > self.max_bytes {
            let Some(oldest) = self.headers.pop_front() else { return };
            self.bytes -= oldest.size();
            index.replace(oldest.clone(), |record| record.is_same(&oldest));
        }
    }

    /// Puts records that were fetched into the index, unless they were replaced meanwhile or are too large to stay.
    pub fn insert(&mut self, records: Vec<Record>, index: &mut Index) {
        if records.iter().map(Record::size).sum::<usize>() > self.max_bytes {
            return;
        }
        for record in records {
            let header = index.replace(record.clone(), |found| found.is_same(&record) && !found.has_value());
            header.into_iter().for_each(|header| self.add(header));
        }
        self.evict(index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Value, record::RecordId};

    #[test]
    fn the_values_written_last_stay_within_the_bound() {
        let (mut cache, mut index) = (ValueCache::new(10_000), Index::default());
        for revision in 1..=1_000 {
            let id = RecordId { revision, created: revision, position: 0 };
            let record = Record::put(format!("/{revision:04}").as_bytes(), &Value::plain("v".repeat(100)), id);
            cache.add(record.header_only());
            index.insert(record);
            cache.evict(&mut index);
        }
        let leaves = index.span(b"", b"", usize::MAX).leaves;
        let kept: Vec<_> = leaves.iter().flat_map(|leaf| leaf.records()).filter(|it| it.has_value()).collect();
        let bytes: usize = kept.iter().map(|record| record.size()).sum();
        assert!(bytes <= 10_000 && bytes + 200 > 10_000, "{bytes}");
        assert!(kept.iter().all(|record| record.revision() > 900));
    }
}
