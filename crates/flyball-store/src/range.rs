//! Range reads and their answers.

use crate::Entry;
use bytes::Bytes;

/// Which entries to read, and at which revision.
#[derive(Clone, Debug, Default)]
pub struct Range {
    /// Entries whose key begins with this; empty for all.
    pub prefix: Bytes,
    /// Entries from this key on, inclusive.
    pub start: Option<Bytes>,
    /// The most entries to read.
    pub limit: Option<usize>,
    /// As of this revision; the latest where `None`.
    pub revision: Option<u64>,
}

impl Range {
    /// Everything under a prefix, at the latest revision.
    pub fn prefix(prefix: impl Into<Bytes>) -> Range {
        Range { prefix: prefix.into(), ..Range::default() }
    }

    pub(crate) fn from(&self) -> &[u8] {
        match &self.start {
            Some(start) if start > &self.prefix => start,
            _ => &self.prefix,
        }
    }

    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        key.starts_with(&self.prefix) && key >= self.from()
    }
}

/// Some entries, and the number of the remaining ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The entries, in the order of their keys.
    pub entries: Vec<Entry>,
    /// The revision at which all of them were read.
    pub revision: u64,
    /// Whether the limit cut entries off.
    pub more: bool,
    /// How many were cut off.
    pub remaining: u64,
}
