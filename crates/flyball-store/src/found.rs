//! A range as it was found: everything that is needed to read it without keeping anybody from writing.

use crate::{
    Page, Range, Result,
    history::{self, Chunk},
    index::Span,
    record::Record,
    view::View,
};
use std::sync::Arc;

/// The leaves that hold a range, and where the values are that they do not hold.
pub(crate) struct Found {
    pub range: Range,
    pub revision: u64,
    pub span: Span,
    /// What happened after the revision, where it is not the latest.
    pub later: Option<Vec<Arc<Chunk>>>,
    pub view: View,
}

impl Found {
    /// Whether all that is asked for is in memory.
    pub fn is_near(&self) -> bool {
        self.later.is_none() && self.latest().take(self.limit()).all(Record::is_whole)
    }

    /// Reads the range; returns also what had to be fetched for it.
    pub fn read(&self) -> Result<(Page, Vec<Record>)> {
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
        let (entries, fetched) = self.view.entries(&records)?;
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
