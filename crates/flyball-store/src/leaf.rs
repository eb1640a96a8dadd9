//! A run of neighbouring records in the order of their keys. What distinguishes the keys is kept beside them, so that a
//! search touches one record or two.

use crate::record::Record;
use std::cmp::Ordering;

/// The most records in a leaf.
pub(crate) const MAX_RECORDS: usize = 128;

/// Some records, in order.
#[derive(Clone, Default)]
pub(crate) struct Leaf {
    /// What all keys begin with.
    shared: Box<[u8]>,
    /// The eight bytes that follow it in each key, in the order of the keys; zeros where a key ends.
    heads: Vec<u64>,
    records: Vec<Record>,
}

impl Leaf {
    pub fn new(records: Vec<Record>) -> Leaf {
        let shared: Box<[u8]> = match (records.first(), records.last()) {
            (Some(first), Some(last)) => first.key()[..common(first.key(), last.key())].into(),
            _ => Box::default(),
        };
        let mut heads = Vec::with_capacity(MAX_RECORDS);
        heads.extend(records.iter().map(|record| head(&record.key()[shared.len()..])));
        Leaf { shared, heads, records }
    }

    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// Finds where a key is, or where it belongs.
    pub fn search(&self, key: &[u8]) -> Result<usize, usize> {
        let (beginning, rest) = key.split_at(self.shared.len().min(key.len()));
        match beginning.cmp(&self.shared) {
            Ordering::Less => return Err(0),
            Ordering::Greater => return Err(self.records.len()),
            Ordering::Equal => {}
        }
        let head = head(rest);
        let from = self.heads.partition_point(|other| *other < head);
        let alike = self.heads[from..].iter().take_while(|other| **other == head).count();
        let found = self.records[from..from + alike].binary_search_by(|record| record.key().cmp(key));
        found.map(|at| from + at).map_err(|at| from + at)
    }

    /// Puts a record where it belongs, unless the leaf is full.
    pub fn insert(&mut self, at: usize, record: Record) {
        let shared = common(&self.shared, record.key());
        if shared < self.shared.len() || self.records.is_empty() {
            let mut records = std::mem::take(&mut self.records);
            records.insert(at, record);
            *self = Leaf::new(records);
        } else {
            self.heads.insert(at, head(&record.key()[shared..]));
            self.records.insert(at, record);
        }
    }

    /// Puts a record in the place of another of the same key.
    pub fn replace(&mut self, at: usize, record: Record) -> Record {
        std::mem::replace(&mut self.records[at], record)
    }

    pub fn remove(&mut self, at: usize) -> Record {
        self.heads.remove(at);
        self.records.remove(at)
    }

    /// Takes the upper half off.
    pub fn split(&mut self) -> Leaf {
        let mut upper = Vec::with_capacity(MAX_RECORDS);
        upper.extend(self.records.drain(MAX_RECORDS / 2..));
        *self = Leaf::new(std::mem::take(&mut self.records));
        Leaf::new(upper)
    }

    /// The records whose key is at least `from` and begins with `prefix`; `from` is not below `prefix`.
    pub fn within(&self, prefix: &[u8], from: &[u8]) -> &[Record] {
        let start = self.search(from).unwrap_or_else(|at| at);
        let end = match self.records.last() {
            Some(last) if is_past(last.key(), prefix) => self.records.partition_point(|it| !is_past(it.key(), prefix)),
            _ => self.records.len(),
        };
        &self.records[start..end.max(start)]
    }

    /// Whether records beyond every key of a prefix are in this leaf.
    pub fn reaches_past(&self, prefix: &[u8]) -> bool {
        self.records.last().is_some_and(|last| is_past(last.key(), prefix))
    }
}

/// Whether a key comes after every key that begins with the prefix.
fn is_past(key: &[u8], prefix: &[u8]) -> bool {
    key > prefix && !key.starts_with(prefix)
}

fn common(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

fn head(rest: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let length = rest.len().min(8);
    bytes[..length].copy_from_slice(&rest[..length]);
    u64::from_be_bytes(bytes)
}
