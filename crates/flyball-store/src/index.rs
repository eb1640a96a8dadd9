//! The latest version of every key, in order. Leaves are shared with readers, which copy pointers under the lock and read
//! outside of it.

use crate::record::Record;
use std::{collections::BTreeMap, ops::Bound, sync::Arc};

/// A run of neighbouring records in the order of their keys.
pub(crate) type Leaf = Vec<Record>;

const FULL: usize = 64;

/// The latest records by key. Each leaf is found under a key that is not above its first and not below the leaf before.
#[derive(Default)]
pub(crate) struct Index {
    leaves: BTreeMap<Box<[u8]>, Arc<Leaf>>,
}

/// Some leaves that hold a range, and how many records the range has in all.
pub(crate) struct Span {
    pub leaves: Vec<Arc<Leaf>>,
    pub count: usize,
}

impl Index {
    pub fn get(&self, key: &[u8]) -> Option<&Record> {
        let (_, leaf) = self.leaves.range::<[u8], _>((Bound::Unbounded, Bound::Included(key))).next_back()?;
        let at = leaf.binary_search_by(|record| record.key().cmp(key)).ok()?;
        Some(&leaf[at])
    }

    /// Puts a record in, and returns the one that it replaces.
    pub fn insert(&mut self, record: Record) -> Option<Record> {
        let Some(leaf) = self.leaf(record.key()) else {
            self.insert_first(record);
            return None;
        };
        match leaf.binary_search_by(|other| other.key().cmp(record.key())) {
            Ok(at) => return Some(std::mem::replace(&mut Arc::make_mut(leaf)[at], record)),
            Err(at) if leaf.len() < FULL => Arc::make_mut(leaf).insert(at, record),
            // Keys that come in order fill their leaves.
            Err(FULL) => self.add_leaf(vec![record]),
            Err(at) => {
                let mut upper = Arc::make_mut(leaf).split_off(FULL / 2);
                if at <= FULL / 2 {
                    Arc::make_mut(leaf).insert(at, record);
                } else {
                    upper.insert(at - FULL / 2, record);
                }
                self.add_leaf(upper);
            }
        }
        None
    }

    /// Takes a record out.
    pub fn remove(&mut self, key: &[u8]) -> Option<Record> {
        let leaf = self.leaf(key)?;
        let at = leaf.binary_search_by(|record| record.key().cmp(key)).ok()?;
        let record = Arc::make_mut(leaf).remove(at);
        if leaf.is_empty() {
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
            let records = within(leaf, prefix, from);
            if span.count < wanted && !records.is_empty() {
                span.leaves.push(leaf.clone());
            }
            span.count += records.len();
            if leaf.last().is_some_and(|last| is_past(last.key(), prefix)) {
                break;
            }
        }
        span
    }

    fn leaf(&mut self, key: &[u8]) -> Option<&mut Arc<Leaf>> {
        self.leaves
            .range_mut::<[u8], _>((Bound::Unbounded, Bound::Included(key)))
            .next_back()
            .map(|(_, leaf)| leaf)
    }

    fn leaf_name(&self, key: &[u8]) -> Option<Box<[u8]>> {
        let (name, _) = self.leaves.range::<[u8], _>((Bound::Unbounded, Bound::Included(key))).next_back()?;
        Some(name.clone())
    }

    fn add_leaf(&mut self, mut leaf: Leaf) {
        leaf.reserve_exact(FULL - leaf.len());
        self.leaves.insert(leaf[0].key().into(), Arc::new(leaf));
    }

    /// Inserts a record that is below every leaf: the first leaf takes it and is found under its key from now on.
    fn insert_first(&mut self, record: Record) {
        match self.leaves.first_entry() {
            Some(first) if first.get().len() < FULL => {
                let mut leaf = first.remove();
                Arc::make_mut(&mut leaf).insert(0, record);
                self.leaves.insert(leaf[0].key().into(), leaf);
            }
            _ => self.add_leaf(vec![record]),
        }
    }
}

/// The records of a leaf whose key is at least `from` and begins with `prefix`; `from` is not below `prefix`.
pub(crate) fn within<'a>(leaf: &'a Leaf, prefix: &[u8], from: &[u8]) -> &'a [Record] {
    let start = match leaf.first() {
        Some(first) if first.key() < from => leaf.partition_point(|record| record.key() < from),
        _ => 0,
    };
    let end = match leaf.last() {
        Some(last) if is_past(last.key(), prefix) => leaf.partition_point(|record| !is_past(record.key(), prefix)),
        _ => leaf.len(),
    };
    &leaf[start..end.max(start)]
}

/// Whether a key comes after every key that begins with the prefix.
fn is_past(key: &[u8], prefix: &[u8]) -> bool {
    key > prefix && !key.starts_with(prefix)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Value, record::Place};

    fn record(key: &str) -> Record {
        let place = Place { revision: 1, created: 1, position: 0 };
        Record::put(key.as_bytes(), &Value::plain("v"), place)
    }

    fn keys(index: &Index, prefix: &str, from: &str) -> Vec<String> {
        let span = index.span(prefix.as_bytes(), from.as_bytes(), usize::MAX);
        let records = span.leaves.iter().flat_map(|leaf| within(leaf, prefix.as_bytes(), from.as_bytes()));
        let keys: Vec<_> = records.map(|record| String::from_utf8_lossy(record.key()).into_owned()).collect();
        assert_eq!(keys.len(), span.count);
        keys
    }

    #[test]
    fn keys_come_out_in_order_however_they_went_in() {
        let mut index = Index::default();
        let mut expected: Vec<_> = (0..5_000u32).map(|n| format!("/{:08x}", n.wrapping_mul(2_654_435_761))).collect();
        expected.iter().for_each(|key| assert!(index.insert(record(key)).is_none()));
        expected.sort();
        assert_eq!(keys(&index, "/", "/"), expected);
        assert!(expected.iter().all(|key| index.get(key.as_bytes()).is_some()));
        let cut: Vec<_> = expected
            .iter()
            .filter(|key| key.starts_with("/7") && key.as_str() >= "/78")
            .cloned()
            .collect();
        assert_eq!(keys(&index, "/7", "/78"), cut);
    }

    #[test]
    fn ascending_keys_fill_their_leaves() {
        let mut index = Index::default();
        (0..6_400).for_each(|n| drop(index.insert(record(&format!("/{n:08}")))));
        assert_eq!(index.leaves.len(), 100);
    }

    #[test]
    fn a_prefix_takes_neither_its_neighbours_nor_itself_cut_short() {
        let mut index = Index::default();
        for key in ["/a", "/a/", "/a/1", "/a/2", "/a0", "/b"] {
            index.insert(record(key));
        }
        assert_eq!(keys(&index, "/a/", "/a/"), ["/a/", "/a/1", "/a/2"]);
        assert_eq!(keys(&index, "/a/", "/a/2"), ["/a/2"]);
        assert_eq!(keys(&index, "/a/", "/a/3"), [""; 0]);
        assert_eq!(keys(&index, "", ""), ["/a", "/a/", "/a/1", "/a/2", "/a0", "/b"]);
    }

    #[test]
    fn removed_keys_are_gone_and_leave_no_leaf() {
        let mut index = Index::default();
        (0..1_000).for_each(|n| drop(index.insert(record(&format!("/{n:08}")))));
        (0..1_000)
            .rev()
            .for_each(|n| assert!(index.remove(format!("/{n:08}").as_bytes()).is_some()));
        assert!(index.leaves.is_empty());
        assert!(index.remove(b"/never").is_none());
    }
}
