//! Reads values from the engine beside the writer, until the store is closed.

use super::{pending::Pending, summary::record_key};
use crate::{Error, Result, record::Record, view::View};
use fjall::{Database, Keyspace, Readable, Snapshot};
use std::{
    path::PathBuf,
    sync::{Arc, PoisonError, RwLock},
};

/// Records so few revisions apart are read one after the other, if they are so many.
const NEAR: u64 = 8;
const LONG: usize = 16;

/// The engine, as long as it is open. The directory is left to others when the last one who reads is through.
pub(crate) struct Engine {
    path: PathBuf,
    opened: RwLock<Option<(Database, Keyspace)>>,
    /// What is not in tables yet, oldest first.
    pending: RwLock<Arc<[Arc<Pending>]>>,
}

/// The values in the engine at one moment. What is removed afterwards is kept there as long as this is.
pub(crate) struct Values {
    engine: Arc<Engine>,
    pending: Arc<[Arc<Pending>]>,
    at: Snapshot,
}

impl Engine {
    pub fn new(path: PathBuf, database: Database, records: Keyspace) -> Engine {
        let (opened, pending) = (RwLock::new(Some((database, records))), RwLock::new(Arc::new([]) as Arc<[_]>));
        Engine { path, opened, pending }
    }

    /// Reads also what is going to be in this, from now on.
    pub fn add(&self, pending: &Arc<Pending>) {
        let mut all = self.pending.write().unwrap_or_else(PoisonError::into_inner);
        *all = all.iter().chain([pending]).cloned().collect();
    }

    /// Reads no longer what is in tables by now.
    pub fn forget(&self, pending: &Arc<Pending>) {
        let mut all = self.pending.write().unwrap_or_else(PoisonError::into_inner);
        *all = all.iter().filter(|it| !Arc::ptr_eq(it, pending)).cloned().collect();
    }

    /// What the engine holds now; nothing where it is closed.
    pub fn view(self: &Arc<Self>) -> View {
        let opened = self.opened.read().unwrap_or_else(PoisonError::into_inner);
        // First what is pending: what leaves it meanwhile is in tables already.
        let pending = self.pending.read().unwrap_or_else(PoisonError::into_inner).clone();
        let values = |(database, _): &(Database, _)| {
            let at = database.snapshot();
            View::of(Values { engine: self.clone(), pending, at })
        };
        opened.as_ref().map(values).unwrap_or_default()
    }

    /// Frees what is not needed in tables.
    #[cfg(test)]
    pub fn compact(&self) -> fjall::Result<()> {
        let opened = self.opened.read().unwrap_or_else(PoisonError::into_inner);
        opened.as_ref().map_or(Ok(()), |(_, records)| records.major_compact())
    }

    /// The keys of everything that is in tables.
    #[cfg(test)]
    pub fn keys(&self) -> Vec<Vec<u8>> {
        let opened = self.opened.read().unwrap_or_else(PoisonError::into_inner);
        let (_, records) = opened.as_ref().unwrap();
        records.iter().map(|pair| pair.key().unwrap().to_vec()).collect()
    }

    /// Waits for those who read, and lets nobody read any more.
    pub fn close(&self) {
        let opened = self.opened.write().unwrap_or_else(PoisonError::into_inner).take();
        drop(opened);
        *self.pending.write().unwrap_or_else(PoisonError::into_inner) = Arc::new([]);
    }
}

impl Values {
    /// Reads a record of which only the outline is in memory.
    pub fn read(&self, outline: &Record) -> Result<Record> {
        if let Some(record) = self.read_pending(outline) {
            return Ok(record);
        }
        let opened = self.engine.opened.read().unwrap_or_else(PoisonError::into_inner);
        let (_, records) = opened.as_ref().ok_or(Error::Closed)?;
        let found = self.at.get(records, record_key(outline)).map_err(|error| self.failed(error))?;
        self.record(outline, found.as_deref())
    }

    fn read_pending(&self, outline: &Record) -> Option<Record> {
        let key = record_key(outline);
        let found = self.pending.iter().rev().find_map(|pending| pending.get(&key));
        found.filter(|record| record.is_same(outline))
    }

    /// Reads many such records; those that were written one after the other are read so, too.
    pub fn read_all(&self, outlines: &[&Record]) -> Result<Vec<Record>> {
        let mut found: Vec<_> = outlines.iter().map(|outline| self.read_pending(outline)).collect();
        let mut order: Vec<usize> = (0..outlines.len()).filter(|at| found[*at].is_none()).collect();
        order.sort_unstable_by_key(|at| record_key(outlines[*at]));
        let is_near = |a: &usize, b: &usize| outlines[*b].revision() - outlines[*a].revision() <= NEAR;
        for run in order.chunk_by(is_near) {
            let wanted: Vec<&Record> = run.iter().map(|at| outlines[*at]).collect();
            let records = self.read_run(&wanted)?;
            run.iter().zip(records).for_each(|(at, record)| found[*at] = Some(record));
        }
        found.into_iter().collect::<Option<_>>().ok_or(Error::Closed)
    }

    fn read_run(&self, outlines: &[&Record]) -> Result<Vec<Record>> {
        let (Some(first), Some(last)) = (outlines.first(), outlines.last()) else {
            return Ok(Vec::new());
        };
        if outlines.len() < LONG {
            return outlines.iter().map(|outline| self.read(outline)).collect();
        }
        let opened = self.engine.opened.read().unwrap_or_else(PoisonError::into_inner);
        let (_, records) = opened.as_ref().ok_or(Error::Closed)?;
        let mut found = Vec::with_capacity(outlines.len());
        for pair in self.at.range(records, record_key(first)..=record_key(last)) {
            let (key, bytes) = pair.into_inner().map_err(|error| self.failed(error))?;
            // One may be wanted twice: as what a change put, and as what the next one replaced.
            while let Some(outline) = outlines.get(found.len()).filter(|outline| record_key(outline) == key[..]) {
                found.push(self.record(outline, Some(&bytes))?);
            }
        }
        // One that is missing keeps all that come after it from being found.
        match outlines.get(found.len()) {
            Some(missing) => self.record(missing, None).map(|_| found),
            None => Ok(found),
        }
    }

    fn record(&self, outline: &Record, bytes: Option<&[u8]>) -> Result<Record> {
        let path = &self.engine.path;
        let record = bytes.and_then(Record::read).filter(|record| record.is_same(outline));
        record.ok_or_else(|| Error::Damaged {
            path: path.clone(),
            reason: "a record cannot be read".to_owned(),
        })
    }

    fn failed(&self, error: fjall::Error) -> Error {
        Error::read(&self.engine.path, error)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Error, Options, disk::damage};
    use std::{fs, path::Path};

    /// Cuts off every table; returns how many.
    fn cut_off(path: &Path) -> usize {
        let tables = fs::read_dir(path.join("store/keyspaces/1/tables")).unwrap();
        let files = tables.map(|file| fs::File::options().write(true).open(file.unwrap().path()).unwrap());
        files.map(|file| file.set_len(0).unwrap()).count()
    }

    #[test]
    fn a_value_that_cannot_be_read_is_an_error_by_name() {
        let directory = tempfile::tempdir().unwrap();
        let options = Options { memory_bytes: 0, ..Options::default() };
        let mut writer = damage::open_with(directory.path(), options);
        // More than the engine's cache holds.
        let keys: Vec<_> = (0..80).map(|n| format!("/{n:02}")).collect();
        let big = "b".repeat(100_000);
        keys.iter().for_each(|key| damage::put(&mut writer, key, &big));
        writer.log.flush().unwrap();
        assert!(keys.iter().all(|key| writer.desk.core.get(key.as_bytes()).unwrap().unwrap().value == big));
        assert!(cut_off(directory.path()) > 0);
        let errors: Vec<_> = keys.iter().filter_map(|key| writer.desk.core.get(key.as_bytes()).err()).collect();
        assert!(!errors.is_empty());
        let is_named = |error: &Error| matches!(error, Error::Read { .. } | Error::Damaged { .. });
        assert!(errors.iter().all(is_named), "{errors:?}");
        damage::put(&mut writer, "/new", "still here");
        assert_eq!(writer.desk.core.get(b"/new").unwrap().unwrap().value, "still here");
    }
}
