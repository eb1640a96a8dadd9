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
    pub fn outline(&self) -> Change {
        Change {
            record: self.record.outline(),
            previous: self.previous.as_ref().map(Record::outline),
        }
    }

    /// What of this change only the history keeps from being freed, in memory or on disk.
    pub fn cost(&self) -> usize {
        let previous = self.previous.as_ref().map_or(0, Record::size);
        let removal = if self.record.is_removal() {
            self.record.size()
        } else {
            0
        };
        size_of::<Change>() + previous + removal
    }
}

/// A run of changes, shared with the readers that go through it.
pub(crate) type Chunk = VecDeque<Change>;

const FULL: usize = 256;

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
            Some(chunk) if chunk.len() < FULL => Arc::make_mut(chunk).push_back(change),
            _ => {
                let mut chunk = Chunk::with_capacity(FULL);
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

    /// Says up to which revision the history must be cut for changes that cost `incoming` bytes and end at `newest`.
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

    /// Forgets the changes up to a revision, and returns them.
    pub fn cut(&mut self, revision: u64) -> Vec<Change> {
        let mut gone = Vec::new();
        self.cut_some(revision, usize::MAX, &mut gone);
        gone
    }

    /// Forgets the changes up to a revision, of which nobody gets to know from now on, and hands over so many at most; says
    /// whether there are more.
    pub fn cut_some(&mut self, revision: u64, most: usize, gone: &mut Vec<Change>) -> bool {
        self.compacted = self.compacted.max(revision);
        for _ in 0..most {
            let Some(chunk) = self.chunks.front_mut() else {
                return false;
            };
            if chunk.front().is_some_and(|change| change.revision() > revision) {
                return false;
            }
            match Arc::make_mut(chunk).pop_front() {
                Some(change) => {
                    self.bytes -= change.cost();
                    gone.push(change);
                }
                None => drop(self.chunks.pop_front()),
            }
        }
        true
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Value, record::Place};

    #[test]
    fn what_is_cut_in_parts_is_forgotten_at_once_and_handed_over_once() {
        let mut history = History::default();
        for revision in 1..=1_000 {
            let place = Place { revision, created: revision, position: 0 };
            history.push(Change {
                record: Record::put(b"/a", &Value::plain("v"), place),
                previous: None,
            });
        }
        let (mut gone, mut parts) = (Vec::new(), 1);
        while history.cut_some(900, 100, &mut gone) {
            parts += 1;
            assert_eq!(history.compacted(), 900);
        }
        assert!(parts >= 9 && gone.iter().map(Change::revision).eq(1..=900));
        let kept: Vec<_> = history.since(900).iter().flat_map(|chunk| chunk.iter()).map(Change::revision).collect();
        assert!(kept.into_iter().eq(901..=1_000));
        assert_eq!(history.bytes, 100 * size_of::<Change>());
    }
}
