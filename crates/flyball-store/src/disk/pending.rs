//! What is in a file of the journal and not in the engine's tables yet, kept in memory until it is.

use super::summary::{Key, record_key};
use crate::{history::Change, record::Record};
use bytes::Bytes;
use std::sync::{PoisonError, RwLock};

/// What one file of the journal changes. It only grows, so what a reader may find in it stays there.
#[derive(Default)]
pub(crate) struct Pending(RwLock<Contents>);

#[derive(Default)]
struct Contents {
    /// In the order of revisions.
    records: Vec<Record>,
    removed: Vec<Key>,
}

/// What is to be done to tables, in the order of keys: a record is put, or removed.
pub(crate) type Changes = Vec<(Key, Option<Bytes>)>;

impl Pending {
    pub fn add(&self, changes: &[Change], removed: impl IntoIterator<Item = Key>) {
        let mut contents = self.0.write().unwrap_or_else(PoisonError::into_inner);
        contents.records.extend(changes.iter().map(|change| change.record.clone()));
        contents.removed.extend(removed);
    }

    pub fn put(&self, record: Record) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).records.push(record);
    }

    pub fn get(&self, key: &Key) -> Option<Record> {
        let contents = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let at = contents.records.binary_search_by_key(key, record_key).ok()?;
        Some(contents.records[at].clone())
    }

    /// What is left to be done: a record that was put and removed again never gets into a table.
    pub fn changes(&self) -> Changes {
        let contents = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let mut removed = contents.removed.clone();
        removed.sort_unstable();
        let first = contents.records.first().map(record_key);
        let earlier = removed.iter().filter(|key| first.is_none_or(|first| **key < first));
        let put = contents.records.iter().map(|record| (record_key(record), record));
        let put = put.filter(|(key, _)| removed.binary_search(key).is_err());
        let put = put.map(|(key, record)| (key, Some(record.bytes().clone())));
        earlier.map(|key| (*key, None)).chain(put).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Value, record::Place};

    fn record(revision: u64) -> Record {
        let place = Place { revision, created: revision, position: 0 };
        Record::put(b"/a", &Value::plain("v"), place)
    }

    #[test]
    fn what_was_put_and_removed_again_is_in_no_table() {
        let pending = Pending::default();
        (5..9).for_each(|revision| pending.put(record(revision)));
        pending.add(&[], [6, 2, 4].map(|revision| record_key(&record(revision))));
        let revisions: Vec<_> = pending.changes().iter().map(|(key, value)| (key[7], value.is_some())).collect();
        assert_eq!(revisions, [(2, false), (4, false), (5, true), (7, true), (8, true)]);
        assert_eq!(pending.get(&record_key(&record(6))), Some(record(6)));
        assert_eq!(pending.get(&record_key(&record(9))), None);
    }
}
