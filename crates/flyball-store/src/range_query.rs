//! A range query in flight: everything that is needed to read a range without holding the lock of the state.

use crate::{
    Page, Range, Result,
    history::{self, Chunk},
    index::Span,
    read_snapshot::ReadSnapshot,
    record::Record,
};
use std::sync::Arc;

/// The leaves that hold a range, and the snapshot to read the values from that are not in memory.
pub(crate) struct RangeQuery {
    pub range: Range,
    pub revision: u64,
    pub span: Span,
    /// The changes after the revision, where it is not the latest.
    pub later: Option<Vec<Arc<Chunk>>>,
    pub snapshot: ReadSnapshot,
}

impl RangeQuery {
    /// Whether the query reads nothing from disk.
    pub fn is_in_memory(&self) -> bool {
        self.later.is_none() && self.latest().take(self.limit()).all(Record::has_value)
    }

    /// Reads the range; returns also the records that had to be fetched from disk.
    pub fn run(&self) -> Result<(Page, Vec<Record>)> {
        match &self.later {
            None => self.page(self.latest().take(self.limit()), self.span.count),
            Some(chunks) => {
                let undo = history::undo(chunks, &self.range, self.revision);
                let came = undo.values().filter(|(_, is)| *is).count();
                let were = undo.values().filter(|(was, _)| was.is_some()).count();
                let records = history::rewind(self.latest(), &undo, self.limit());
                self.page(records.into_iter(), self.span.count - came + were)
            }
        }
    }

    fn page<'a>(&self, records: impl Iterator<Item = &'a Record>, count: usize) -> Result<(Page, Vec<Record>)> {
        let records: Vec<&Record> = records.collect();
        let (entries, fetched) = self.snapshot.entries(&records)?;
        let remaining = (count - entries.len()) as u64;
        let page = Page {
            entries,
            revision: self.revision,
            more: remaining > 0,
            remaining,
        };
        Ok((page, fetched))
    }

    fn latest(&self) -> impl Iterator<Item = &Record> {
        let (prefix, from) = (&self.range.prefix, self.range.from());
        self.span.leaves.iter().flat_map(move |leaf| leaf.within(prefix, from))
    }

    fn limit(&self) -> usize {
        self.range.limit.unwrap_or(usize::MAX)
    }
}
