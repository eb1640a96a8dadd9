//! The changes of the recent past, for watchers that come back and for reads at an earlier revision.

use crate::{Options, Range, record::Record};
use std::{
    cmp::Ordering,
    collections::{BTreeMap, VecDeque},
    mem::size_of,
    sync::Arc,
};

/// A key's new version and the one that it replaced.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub record: Record,
    pub previous: Option<Record>,
}

impl Change {
    pub fn revision(&self) -> u64 {
        self.record.revision()
    }

    /// The same without values.
    pub fn header_only(&self) -> Change {
        Change {
            record: self.record.header_only(),
            previous: self.previous.as_ref().map(Record::header_only),
        }
    }

    /// The records whose values an event of this change shows.
    pub fn values(&self) -> impl Iterator<Item = &Record> {
        let put = Some(&self.record).filter(|record| !record.is_removal());
        self.previous.iter().chain(put)
    }

    /// The records that only the history needs.
    pub fn replaced(&self) -> impl Iterator<Item = &Record> {
        let removal = Some(&self.record).filter(|record| record.is_removal());
        self.previous.iter().chain(removal)
    }

    /// The bytes, in memory or on disk, that are kept for the history alone.
    pub fn cost(&self) -> usize {
        size_of::<Change>() + self.replaced().map(Record::size).sum::<usize>()
    }
}

/// A run of changes, shared with the readers that go through it.
pub(crate) type Chunk = VecDeque<Change>;

/// The most changes in a chunk.
const MAX_CHUNK: usize = 256;

/// Every change above `compacted`, oldest first.
#[derive(Default)]
pub(crate) struct History {
    chunks: VecDeque<Arc<Chunk>>,
    bytes: usize,
    compacted: u64,
}

impl History {
    pub fn compacted(&self) -> u64 {
        self.compacted
    }

    pub fn push(&mut self, change: Change) {
        self.bytes += change.cost();
        match self.chunks.back_mut() {
            Some(chunk) if chunk.len() < MAX_CHUNK => Arc::make_mut(chunk).push_back(change),
            _ => {
                let mut chunk = Chunk::with_capacity(MAX_CHUNK);
                chunk.push_back(change);
                self.chunks.push_back(Arc::new(chunk));
            }
        }
    }

    /// Returns the chunks that hold every change above a revision, and maybe some below.
    pub fn since(&self, revision: u64) -> Vec<Arc<Chunk>> {
        let is_old = |chunk: &Arc<Chunk>| chunk.back().is_none_or(|change| change.revision() <= revision);
        self.chunks.range(self.chunks.partition_point(is_old)..).cloned().collect()
    }

    /// Returns up to which revision the history must be compacted for changes that cost `incoming` bytes and end at `newest`.
    pub fn excess(&self, options: &Options, incoming: usize, newest: u64) -> u64 {
        let held = self.chunks.back().and_then(|chunk| chunk.back()).map_or(0, Change::revision);
        let mut cut = newest.saturating_sub(options.history_revisions).min(held).max(self.compacted);
        let mut bytes = self.bytes + incoming;
        for change in self.chunks.iter().flat_map(|chunk| chunk.iter()) {
            if bytes <= options.history_bytes && change.revision() > cut {
                break;
            }
            bytes -= change.cost();
            cut = cut.max(change.revision());
        }
        cut
    }

    /// Removes the changes up to a revision, and returns them.
    pub fn compact(&mut self, revision: u64) -> Vec<Change> {
        self.compacted = self.compacted.max(revision);
        let mut removed = Vec::new();
        while let Some(chunk) = self.chunks.front_mut() {
            if chunk.front().is_some_and(|change| change.revision() > revision) {
                break;
            }
            match Arc::make_mut(chunk).pop_front() {
                Some(change) => {
                    self.bytes -= change.cost();
                    removed.push(change);
                }
                None => drop(self.chunks.pop_front()),
            }
        }
        removed
    }
}

/// For each key of a range that changed after a revision: the record at that revision, and whether it is there now.
pub(crate) type Undo<'a> = BTreeMap<&'a [u8], (Option<&'a Record>, bool)>;

/// Collects what changed in a range after a revision.
pub(crate) fn undo<'a>(chunks: &'a [Arc<Chunk>], range: &Range, revision: u64) -> Undo<'a> {
    let mut undo = Undo::new();
    for change in chunks.iter().flat_map(|chunk| chunk.iter()) {
        if change.revision() > revision && range.contains(change.record.key()) {
            let was = undo.entry(change.record.key()).or_insert((change.previous.as_ref(), false));
            was.1 = !change.record.is_removal();
        }
    }
    undo
}

/// Merges the latest records of a range with what is to be undone, in the order of keys.
pub(crate) fn rewind<'a>(latest: impl Iterator<Item = &'a Record>, undo: &Undo<'a>, limit: usize) -> Vec<&'a Record> {
    let mut latest = latest.peekable();
    let mut undone = undo.iter().peekable();
    let mut records = Vec::new();
    while records.len() < limit {
        let order = match (latest.peek(), undone.peek()) {
            (Some(record), Some((key, _))) => record.key().cmp(key),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => break,
        };
        let now = if order.is_le() { latest.next() } else { None };
        let was = if order.is_ge() {
            undone.next().and_then(|(_, (was, _))| *was)
        } else {
            now
        };
        records.extend(was);
    }
    records
}
