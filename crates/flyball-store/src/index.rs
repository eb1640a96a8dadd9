//! The latest version of every key, in order. Leaves are copied on write and shared with readers, which clone their `Arc`s
//! under the lock and read outside of it.

use crate::record::Record;
use std::{collections::BTreeMap, ops::Bound, sync::Arc};

/// The most records in a leaf.
const MAX_RECORDS: usize = 128;

/// The latest records by key. Each leaf is found under a key that is not above its first and not below the leaf before.
#[derive(Default)]
pub(crate) struct Index {
    leaves: BTreeMap<Box<[u8]>, Arc<Leaf>>,
}

/// Neighbouring records in the order of their keys.
#[derive(Clone)]
pub(crate) struct Leaf(Vec<Record>);

/// Some leaves that hold a range, and how many records the range has in all.
pub(crate) struct Span {
    pub leaves: Vec<Arc<Leaf>>,
    pub count: usize,
}

impl Index {
    pub fn get(&self, key: &[u8]) -> Option<&Record> {
        let (_, leaf) = self.leaves.range::<[u8], _>((Bound::Unbounded, Bound::Included(key))).next_back()?;
        Some(&leaf.0[leaf.search(key).ok()?])
    }

    /// Inserts a record; returns the one that it replaces.
    pub fn insert(&mut self, record: Record) -> Option<Record> {
        let Some(leaf) = self.leaf(record.key()) else {
            // No leaf is below the key, so the first one begins with it from now on.
            let mut records = self.leaves.pop_first().map(|(_, leaf)| leaf.0.clone()).unwrap_or_default();
            if records.len() == MAX_RECORDS {
                self.add(records);
                records = Vec::new();
            }
            records.insert(0, record);
            self.add(records);
            return None;
        };
        match leaf.search(record.key()) {
            Ok(at) => return Some(std::mem::replace(&mut Arc::make_mut(leaf).0[at], record)),
            Err(at) if leaf.0.len() < MAX_RECORDS => Arc::make_mut(leaf).0.insert(at, record),
            // Keys that come in order fill their leaves.
            Err(MAX_RECORDS) => self.add(vec![record]),
            Err(at) => {
                let lower = &mut Arc::make_mut(leaf).0;
                let mut upper = Vec::with_capacity(MAX_RECORDS);
                upper.extend(lower.drain(MAX_RECORDS / 2..));
                match at.checked_sub(MAX_RECORDS / 2) {
                    Some(at @ 1..) => upper.insert(at, record),
                    _ => lower.insert(at, record),
                }
                self.add(upper);
            }
        }
        None
    }

    /// Replaces the record of the same key, if that satisfies a predicate; returns it.
    pub fn replace(&mut self, record: Record, predicate: impl FnOnce(&Record) -> bool) -> Option<Record> {
        let leaf = self.leaf(record.key())?;
        let at = leaf.search(record.key()).ok()?;
        predicate(&leaf.0[at]).then(|| std::mem::replace(&mut Arc::make_mut(leaf).0[at], record))
    }

    /// Removes a record.
    pub fn remove(&mut self, key: &[u8]) -> Option<Record> {
        let leaf = self.leaf(key)?;
        let at = leaf.search(key).ok()?;
        let record = Arc::make_mut(leaf).0.remove(at);
        if leaf.0.is_empty() {
            let name = self.leaf_name(key).expect("the leaf was found");
            self.leaves.remove(&name);
        }
        Some(record)
    }

    /// Finds the records whose key is at least `from` and begins with `prefix`: leaves with the first `wanted` of them.
    pub fn span(&self, prefix: &[u8], from: &[u8], wanted: usize) -> Span {
        let mut span = Span { leaves: Vec::new(), count: 0 };
        let name = self.leaf_name(from);
        let start = name.as_deref().map_or(Bound::Unbounded, Bound::Included);
        for (_, leaf) in self.leaves.range::<[u8], _>((start, Bound::Unbounded)) {
            let records = leaf.within(prefix, from);
            if span.count < wanted && !records.is_empty() {
                span.leaves.push(leaf.clone());
            }
            span.count += records.len();
            if leaf.0.last().is_some_and(|last| is_past(last.key(), prefix)) {
                break;
            }
        }
        span
    }

    fn leaf(&mut self, key: &[u8]) -> Option<&mut Arc<Leaf>> {
        let leaves = self.leaves.range_mut::<[u8], _>((Bound::Unbounded, Bound::Included(key)));
        leaves.map(|(_, leaf)| leaf).next_back()
    }

    fn leaf_name(&self, key: &[u8]) -> Option<Box<[u8]>> {
        let (name, _) = self.leaves.range::<[u8], _>((Bound::Unbounded, Bound::Included(key))).next_back()?;
        Some(name.clone())
    }

    fn add(&mut self, records: Vec<Record>) {
        self.leaves.insert(records[0].key().into(), Arc::new(Leaf(records)));
    }
}

impl Leaf {
    pub fn records(&self) -> &[Record] {
        &self.0
    }

    /// The records whose key is at least `from` and begins with `prefix`; `from` is not below `prefix`.
    pub fn within(&self, prefix: &[u8], from: &[u8]) -> &[Record] {
        let start = self.search(from).unwrap_or_else(|at| at);
        let end = self.0.partition_point(|record| !is_past(record.key(), prefix));
        &self.0[start..end.max(start)]
    }

    /// Finds where a key is, or where it belongs.
    fn search(&self, key: &[u8]) -> Result<usize, usize> {
        self.0.binary_search_by(|record| record.key().cmp(key))
    }
}

/// Whether a key comes after every key that begins with the prefix.
fn is_past(key: &[u8], prefix: &[u8]) -> bool {
    key > prefix && !key.starts_with(prefix)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Value, record::RecordId};

    fn record(key: &str) -> Record {
        let id = RecordId { revision: 1, created: 1, position: 0 };
        Record::put(key.as_bytes(), &Value::plain("v"), id)
    }

    fn keys(index: &Index, prefix: &str, from: &str) -> Vec<String> {
        let span = index.span(prefix.as_bytes(), from.as_bytes(), usize::MAX);
        let records = span.leaves.iter().flat_map(|leaf| leaf.within(prefix.as_bytes(), from.as_bytes()));
        let keys: Vec<_> = records.map(|record| String::from_utf8_lossy(record.key()).into_owned()).collect();
        assert_eq!(keys.len(), span.count);
        keys
    }

    /// Puts keys in, in the order given, and takes them out again.
    fn check(keys_in: &[String]) {
        let mut index = Index::default();
        assert!(keys_in.iter().all(|key| index.insert(record(key)).is_none()));
        assert!(keys_in.iter().all(|key| index.insert(record(key)).is_some()));
        let mut expected = keys_in.to_owned();
        expected.sort();
        assert_eq!(keys(&index, "", ""), expected);
        assert!(
            expected
                .iter()
                .all(|key| index.get(key.as_bytes()).is_some_and(|record| record.key() == key.as_bytes()))
        );
        assert!(expected.iter().all(|key| index.get(format!("{key}\u{1}").as_bytes()).is_none()));
        for (at, key) in keys_in.iter().enumerate() {
            assert!(index.remove(key.as_bytes()).is_some() && index.remove(key.as_bytes()).is_none());
            assert!(keys_in.get(at + 1).is_none_or(|next| index.get(next.as_bytes()).is_some()));
        }
        assert!(index.leaves.is_empty());
    }

    #[test]
    fn keys_come_out_in_order_however_they_went_in() {
        let scattered = |n: u32| n.wrapping_mul(2_654_435_761);
        check(&(0..3_000).map(|n| format!("/{:08x}", scattered(n))).collect::<Vec<_>>());
        check(&(0..3_000).map(|n| format!("/{n:08}")).collect::<Vec<_>>());
        check(&(0..3_000).rev().map(|n| format!("/{n:08}")).collect::<Vec<_>>());
        check(
            &(0..1_000)
                .map(|n| format!("/pods/{}/web-{}", scattered(n) % 7, scattered(n)))
                .collect::<Vec<_>>(),
        );
    }

    #[test]
    fn a_span_has_what_is_wanted_and_counts_the_rest() {
        let mut index = Index::default();
        (0..1_000).for_each(|n| assert!(index.insert(record(&format!("/a/{n:08}"))).is_none()));
        (0..1_000).for_each(|n| assert!(index.insert(record(&format!("/b/{n:08}"))).is_none()));
        let span = index.span(b"/a/", b"/a/00000100", 10);
        assert_eq!((span.leaves.len(), span.count), (1, 900));
    }
}
