//! What is kept on disk: every record that the latest state or the history needs, by revision, and one line that sums
//! them up. Commits of a batch reach the disk in one atomic write.

use super::{
    directory::Directory,
    engine, journal,
    room::Room,
    summary::{Summary, record_key, summary_key},
    values::Engine,
};
use crate::{Error, Result};
use crate::{core::State, history::Change, plan::Plan, record::Record, resident::Residents};
use fjall::{
    Database, Guard, Keyspace, KeyspaceCreateOptions, PersistMode,
    config::{BlockSizePolicy, FilterPolicy, PinningPolicy},
};
use std::{io, path::Path, sync::Arc};

/// So many records of a backup are written together.
const FILLED_AT_ONCE: usize = 1_000;

/// So many summaries that no longer hold are left where they are, before all of them are removed.
const MOST_STALE: usize = if cfg!(test) { 64 } else { 16_384 };

/// The log of a data directory, as the engine keeps it.
pub(crate) struct Log {
    summary: Summary,
    /// The revisions of summaries that no longer hold. To remove each with the next would make all tables of the engine
    /// overlap, which then have to be merged.
    stale: Vec<u64>,
    records: Keyspace,
    database: Database,
    room: Room,
}

impl Log {
    /// Opens the log, verifies all of it, and reads the state that it leads to, of which so many bytes of values will be in
    /// memory; makes an empty one where there is none.
    pub fn open(directory: &Directory, memory: usize) -> Result<(Log, State)> {
        let (log, state) = if directory.has_store()? {
            Log::recover(directory)?
        } else {
            (directory.create(|| Log::create(directory))?, State::default())
        };
        let engine = Engine::new(directory.path.clone(), log.database.clone(), log.records.clone());
        let disk = Some((Arc::new(engine), Residents::new(memory)));
        Ok((log, State { disk, ..state }))
    }

    fn create(directory: &Directory) -> Result<Log> {
        let started = start(&directory.engine()).and_then(|(database, records)| {
            let summary = Summary::default();
            records.insert(summary.key(), summary.bytes())?;
            database.persist(PersistMode::SyncAll)?;
            let room = Room::of_new(&directory.engine());
            Ok(Log { summary, stale: Vec::new(), records, database, room })
        });
        started.map_err(|error| refused(directory, error))
    }

    /// Makes a log of records that are all in the past of a revision, without a history.
    pub fn fill(directory: &Directory, revision: u64, mut next: impl FnMut() -> Result<Option<Record>>) -> Result<()> {
        let refused = |error| refused(directory, error);
        let (database, records) = start(&directory.engine()).map_err(refused)?;
        let mut summary = Summary { revision, compacted: revision, ..Summary::default() };
        let mut batch = database.batch();
        for position in 0.. {
            let Some(record) = next()? else { break };
            let record = record.at(position);
            summary.add(&record);
            batch.insert(&records, record_key(&record), record.bytes().clone());
            if batch.len() == FILLED_AT_ONCE {
                std::mem::replace(&mut batch, database.batch()).commit().map_err(refused)?;
            }
        }
        batch.insert(&records, summary.key(), summary.bytes());
        batch.commit().and_then(|()| database.persist(PersistMode::SyncAll)).map_err(refused)
    }

    fn recover(directory: &Directory) -> Result<(Log, State)> {
        let path = directory.engine();
        let journaled = engine::verify(&path).map_err(|flaw| flaw.at(directory))?;
        let (database, records) = start(&path).map_err(|error| refused(directory, error))?;
        let last = records
            .last_key_value()
            .map(Guard::value)
            .transpose()
            .map_err(|error| refused(directory, error))?;
        let summary = last.as_deref().and_then(Summary::read);
        let Some(summary) = summary.filter(|summary| journaled.is_none_or(|expected| expected == *summary)) else {
            return Err(directory.damaged("what was written last is missing"));
        };
        let sealed = directory.sealed()?;
        if sealed.as_ref().is_some_and(|sealed| *sealed != summary.text()) {
            return Err(directory.damaged("it is not as it was closed"));
        }
        let (state, stale) = load(directory, &records, &summary)?;
        if sealed.is_some() {
            directory.unseal()?;
        }
        let room = Room::after(&path, journal::last(&path).map_err(|flaw| flaw.at(directory))?);
        Ok((Log { summary, stale, records, database, room }, state))
    }

    /// Stops the engine; says what there is to be found when it starts again.
    pub fn close(self) -> String {
        self.summary.text()
    }

    /// Moves everything from the journal to tables, and frees what is not needed there.
    #[cfg(test)]
    pub fn flush(&self) -> fjall::Result<()> {
        self.records.rotate_memtable_and_wait()?;
        self.records.major_compact()
    }

    /// Makes room in the journal for what comes after so many bytes.
    pub fn make_room(&mut self, written: usize) {
        self.room.advance(written as u64);
    }

    /// Writes planned changes and removes what only the history needed that is gone up to `cut`; returns when it is on disk.
    pub fn write(&mut self, plan: &Plan, cut: u64, gone: &[Change]) -> fjall::Result<()> {
        let mut batch = self.database.batch().durability(Some(PersistMode::SyncData));
        let revision = plan.revision().unwrap_or(self.summary.revision);
        let mut summary = Summary { revision, compacted: cut, ..self.summary };
        for Change { record, .. } in &plan.changes {
            batch.insert(&self.records, record_key(record), record.bytes().clone());
            summary.add(record);
        }
        for change in gone {
            let removal = Some(&change.record).filter(|record| record.is_removal());
            for record in change.previous.iter().chain(removal) {
                batch.remove(&self.records, record_key(record));
                summary.remove(record);
            }
        }
        if summary.revision != self.summary.revision {
            self.stale.push(self.summary.revision);
        }
        if self.stale.len() >= MOST_STALE {
            self.stale
                .drain(..)
                .for_each(|revision| batch.remove(&self.records, summary_key(revision)));
        }
        batch.insert(&self.records, summary.key(), summary.bytes());
        batch.commit()?;
        self.summary = summary;
        Ok(())
    }
}

/// Starts the engine. Its cache is small, because values that are read are kept in memory by themselves, and so are its
/// tables in memory, because they keep values from being freed. A record is in one table only, which needs no filter to be
/// found. Of several workers one would turn around without rest while another compacts.
fn start(path: &Path) -> fjall::Result<(Database, Keyspace)> {
    let database = Database::builder(path).cache_size(4 << 20).worker_threads(1).open()?;
    let options = || {
        KeyspaceCreateOptions::default()
            .max_memtable_size(8 << 20)
            .data_block_size_policy(BlockSizePolicy::all(8 << 10))
            .filter_policy(FilterPolicy::disabled())
            .index_block_pinning_policy(PinningPolicy::all(true))
            .filter_block_pinning_policy(PinningPolicy::all(false))
    };
    let records = database.keyspace("records", options)?;
    Ok((database, records))
}

/// Reads the state that a summary sums up, and which summaries no longer hold.
fn load(directory: &Directory, records: &Keyspace, summary: &Summary) -> Result<(State, Vec<u64>)> {
    let mut stale = Vec::new();
    let mut state = State { revision: summary.revision, ..State::default() };
    state.history.cut(summary.compacted);
    let mut found = Summary { records: 0, sum: 0, ..*summary };
    for pair in records.iter() {
        let (at, bytes) = pair.into_inner().map_err(|error| refused(directory, error))?;
        if Summary::is_at(&at) {
            let read = Summary::read(&bytes).ok_or_else(|| directory.damaged("a summary cannot be read"))?;
            stale.extend(Some(read.revision).filter(|revision| *revision != summary.revision));
            continue;
        }
        let record = Record::read_outline(&bytes).filter(|record| record_key(record) == at[..]);
        let record = record.ok_or_else(|| directory.damaged("a record cannot be read"))?;
        found.add(&record);
        state
            .restore(record)
            .ok_or_else(|| directory.damaged("a record contradicts an earlier one"))?;
    }
    if found != *summary {
        return Err(directory.damaged("records are missing"));
    }
    Ok((state, stale))
}

/// Says what the engine's refusal means to a user.
fn refused(directory: &Directory, error: fjall::Error) -> Error {
    if let fjall::Error::Locked = error {
        return Error::InUse { path: directory.path.clone() };
    }
    let mut causes = std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source());
    match causes.find_map(|cause| cause.downcast_ref::<io::Error>()) {
        Some(io) if !is_damage(io.kind()) => directory.failed(io::Error::new(io.kind(), io.to_string())),
        _ => directory.damaged(format!("the engine says {error:?}")),
    }
}

/// Whether an error speaks of what a file holds, and not of the way to it.
fn is_damage(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, NotFound, UnexpectedEof};
    matches!(kind, InvalidData | InvalidInput | NotFound | UnexpectedEof)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::damage;

    /// How many summaries there are.
    fn summaries(log: &Log) -> usize {
        let keys = log.records.iter().map(|pair| pair.key().unwrap());
        keys.filter(|key| Summary::is_at(key)).count()
    }

    #[test]
    fn summaries_that_no_longer_hold_are_few_also_after_opening_again() {
        let directory = tempfile::tempdir().unwrap();
        let mut writer = damage::open(directory.path());
        let mut most = 0;
        for n in 0..MOST_STALE + 10 {
            damage::put(&mut writer, &format!("/{n}"), "v");
            most = most.max(summaries(&writer.log));
        }
        assert_eq!((most, summaries(&writer.log)), (MOST_STALE, 11));
        writer.close();
        let mut writer = damage::open(directory.path());
        for n in 0..MOST_STALE - 10 {
            damage::put(&mut writer, &format!("/{n}"), "w");
        }
        assert_eq!(summaries(&writer.log), 1);
    }
}
