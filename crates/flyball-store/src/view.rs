//! The values that a reader needs and memory does not hold, as of the moment at which it looked.

use crate::{Entry, Error, Event, Result, disk::Values, history::Change, record::Record};
use std::sync::Arc;

/// Where values are read that are not in memory. Everything that a state leads to is in the view that was taken with it,
/// whatever is removed later. The empty view finds nothing: all is in memory, or the store is closed.
#[derive(Clone, Default)]
pub(crate) struct View(Option<Arc<Values>>);

impl View {
    pub fn of(values: Values) -> View {
        View(Some(Arc::new(values)))
    }

    /// A record with its value.
    pub fn whole(&self, record: &Record) -> Result<Record> {
        match &self.0 {
            _ if record.is_whole() => Ok(record.clone()),
            Some(values) => values.read(record),
            None => Err(Error::Closed),
        }
    }

    /// Those of some records that are outlines, with their values, in the order given.
    pub fn fetch(&self, records: &[&Record]) -> Result<Vec<Record>> {
        let outlines: Vec<&Record> = records.iter().copied().filter(|record| !record.is_whole()).collect();
        match &self.0 {
            _ if outlines.is_empty() => Ok(Vec::new()),
            Some(values) => values.read_all(&outlines),
            None => Err(Error::Closed),
        }
    }

    /// Some records as a reader gets them, and those that had to be fetched for it.
    pub fn entries(&self, records: &[&Record]) -> Result<(Vec<Entry>, Vec<Record>)> {
        let fetched = self.fetch(records)?;
        let mut rest = fetched.iter();
        let entry = |record: &&Record| record.entry().or_else(|| rest.next()?.entry());
        let entries = records.iter().map(entry).collect::<Option<_>>().ok_or(Error::Closed)?;
        Ok((entries, fetched))
    }

    pub fn entry(&self, record: &Record) -> Result<Entry> {
        match record.entry() {
            Some(entry) => Ok(entry),
            None => self.whole(record)?.entry().ok_or(Error::Closed),
        }
    }

    /// What a watcher gets of a change.
    pub fn event(&self, change: &Change) -> Result<Event> {
        let [event] = self.events([change])?.try_into().map_err(|_| Error::Closed)?;
        Ok(event)
    }

    /// What a watcher gets of some changes. Their values are read together, because they were written one after the other.
    pub fn events<'a>(&self, changes: impl IntoIterator<Item = &'a Change> + Clone) -> Result<Vec<Event>> {
        let records = changes.clone().into_iter().flat_map(|change| {
            let put = Some(&change.record).filter(|record| !record.is_removal());
            change.previous.iter().chain(put)
        });
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
