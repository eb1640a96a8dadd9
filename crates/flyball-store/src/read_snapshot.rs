//! Reads values that are not in memory, from a snapshot that is taken together with the state that refers to them.

use crate::{Entry, Error, Event, Result, disk::EngineSnapshot, history::Change, record::Record};
use std::sync::Arc;

/// A snapshot of the values on disk: every record that the state referred to when it was taken is in it, whatever is
/// removed later. The empty one holds nothing, for stores that keep all values in memory and for closed stores.
#[derive(Clone, Default)]
pub(crate) struct ReadSnapshot(Option<Arc<EngineSnapshot>>);

impl ReadSnapshot {
    pub fn new(snapshot: EngineSnapshot) -> ReadSnapshot {
        ReadSnapshot(Some(Arc::new(snapshot)))
    }

    /// A record with its value.
    pub fn with_value(&self, record: &Record) -> Result<Record> {
        match &self.0 {
            _ if record.has_value() => Ok(record.clone()),
            Some(snapshot) => snapshot.read(record),
            None => Err(Error::Closed),
        }
    }

    /// Some records as a reader gets them, and those that had to be fetched from disk for it.
    pub fn entries(&self, records: &[&Record]) -> Result<(Vec<Entry>, Vec<Record>)> {
        let headers: Vec<&Record> = records.iter().copied().filter(|record| !record.has_value()).collect();
        let fetched = match &self.0 {
            _ if headers.is_empty() => Vec::new(),
            Some(snapshot) => snapshot.read_all(&headers)?,
            None => return Err(Error::Closed),
        };
        let mut rest = fetched.iter();
        let entry = |record: &&Record| record.entry().or_else(|| rest.next()?.entry());
        let entries = records.iter().map(entry).collect::<Option<_>>().ok_or(Error::Closed)?;
        Ok((entries, fetched))
    }

    pub fn entry(&self, record: &Record) -> Result<Entry> {
        match record.entry() {
            Some(entry) => Ok(entry),
            None => self.with_value(record)?.entry().ok_or(Error::Closed),
        }
    }

    /// The events of some changes. Their values are read together, because they were written one after the other.
    pub fn events<'a>(&self, changes: impl IntoIterator<Item = &'a Change> + Clone) -> Result<Vec<Event>> {
        let records = changes.clone().into_iter().flat_map(Change::values);
        let (entries, _) = self.entries(&records.collect::<Vec<_>>())?;
        let mut entries = entries.into_iter();
        let events = changes.into_iter().map(|change| {
            let previous = change.previous.as_ref().and_then(|_| entries.next());
            let put = if change.record.is_removal() {
                None
            } else {
                entries.next()
            };
            event(change, previous, put)
        });
        Ok(events.collect())
    }
}

fn event(change: &Change, previous: Option<Entry>, put: Option<Entry>) -> Event {
    let revision = change.revision();
    let value = put.map(|entry| entry.value);
    let removed = || previous.clone().map(|entry| entry.removed_at(revision).value);
    Event {
        revision,
        key: change.record.key_bytes(),
        last: value.clone().or_else(removed).unwrap_or_default(),
        value,
        created: previous.is_none(),
        previous,
    }
}
