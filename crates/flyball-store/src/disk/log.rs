//! The log of a data directory: every record that the latest state or the history needs, by revision, and the checkpoint
//! that sums them up. Opens it, writes to it, and brings it back to the last acknowledged write after a failure.

use super::{
    checkpoint::{Checkpoint, record_key},
    directory::Directory,
    engine::Engine,
    journal, verify,
};
use crate::{Error, Result, history::Change, record::Record, state::State, value_cache::ValueCache};
use std::{io, sync::Arc};

/// How many records of a backup are written together.
const LOAD_BATCH: usize = 1_000;

pub(crate) struct Log {
    pub directory: Directory,
    pub engine: Arc<Engine>,
    /// What is on disk.
    checkpoint: Checkpoint,
    /// Records that the compacted history needed, to be removed with the next write.
    removed: Vec<Record>,
    /// Fails writes after they are on disk, as a failed fsync may.
    #[cfg(test)]
    pub injected: Option<io::ErrorKind>,
}

impl Log {
    /// Opens the log, verifies all of it, and reads the state that it leads to; creates an empty one where there is none.
    pub fn open(directory: Directory, cache_bytes: usize) -> Result<(Log, State)> {
        let (engine, checkpoint, state) = if directory.has_store()? {
            recover(&directory)?
        } else {
            let checkpoint = Checkpoint::default();
            let engine = directory.create(|| create(&directory, &checkpoint))?;
            (engine, checkpoint, State::default())
        };
        let engine = Arc::new(engine);
        let disk = Some((engine.clone(), ValueCache::new(cache_bytes)));
        let log = Log {
            directory,
            engine,
            checkpoint,
            removed: Vec::new(),
            #[cfg(test)]
            injected: None,
        };
        Ok((log, State { disk, ..state }))
    }

    /// Creates a closed log of records that are all older than a revision, without a history; verifies that it can be
    /// opened.
    pub fn fill(directory: Directory, revision: u64, next: impl FnMut() -> Result<Option<Record>>) -> Result<()> {
        directory.create(|| load(&directory, revision, next))?;
        let (log, _) = Log::open(directory, 0)?;
        log.close()
    }

    /// Remembers to remove the records that only the compacted history needed.
    pub fn compact(&mut self, compacted: &[Change]) {
        self.removed.extend(compacted.iter().flat_map(Change::replaced).cloned());
    }

    /// Writes changes that lead to a revision, and the revision up to which the history is compacted; returns when they are
    /// durable.
    pub fn write(&mut self, changes: &[Change], revision: u64, compacted: u64) -> fjall::Result<()> {
        let mut checkpoint = Checkpoint { revision, compacted, ..self.checkpoint };
        changes.iter().for_each(|change| checkpoint.add(&change.record));
        self.removed.iter().for_each(|record| checkpoint.remove(record));
        self.engine
            .write(changes.iter().map(|change| &change.record), &self.removed, &checkpoint)?;
        #[cfg(test)]
        if let Some(kind) = self.injected {
            return Err(io::Error::from(kind).into());
        }
        self.checkpoint = checkpoint;
        self.removed.clear();
        Ok(())
    }

    /// Closes fjall and removes from its journal what was written after the last acknowledged write. A failed fsync may
    /// have left a whole batch that is not durable, so it must not stay in front of later ones.
    pub fn roll_back(&self) -> Result<()> {
        self.engine.suspend();
        journal::cut_after(&self.directory, &self.checkpoint)
    }

    /// Opens fjall again, and verifies that it holds what was acknowledged.
    pub fn reopen(&self) -> Result<()> {
        let checkpoint = self.engine.resume().and_then(|()| self.engine.checkpoint());
        match checkpoint.map_err(|error| refused(&self.directory, error))? {
            Some(found) if found == self.checkpoint => Ok(()),
            _ => {
                self.engine.suspend();
                Err(self.directory.damaged("it does not hold what was acknowledged"))
            }
        }
    }

    /// Writes the checkpoint again, to check that a durable write succeeds.
    pub fn rewrite(&self) -> Result<()> {
        let written = self.engine.write(&[], &[], &self.checkpoint);
        written.map_err(|error| Error::not_written(&self.directory.path, Arc::new(error)))
    }

    /// Closes the log; notes what it holds, so that nothing can be lost unnoticed until it is opened.
    pub fn close(self) -> Result<()> {
        self.engine.close();
        self.directory.note_closed(&self.checkpoint.text())
    }
}

fn open(directory: &Directory) -> Result<Engine> {
    Engine::open(&directory.path, &directory.store()).map_err(|error| refused(directory, error))
}

fn create(directory: &Directory, checkpoint: &Checkpoint) -> Result<Engine> {
    let engine = open(directory)?;
    engine.write(&[], &[], checkpoint).map_err(|error| refused(directory, error))?;
    Ok(engine)
}

fn load(directory: &Directory, revision: u64, mut next: impl FnMut() -> Result<Option<Record>>) -> Result<()> {
    let refused = |error| refused(directory, error);
    let engine = open(directory)?;
    let mut checkpoint = Checkpoint { revision, compacted: revision, ..Checkpoint::default() };
    let mut records = Vec::new();
    for position in 0.. {
        let Some(record) = next()? else { break };
        let record = record.at(position);
        checkpoint.add(&record);
        records.push(record);
        if records.len() == LOAD_BATCH {
            engine.write(&records, &[], &checkpoint).map_err(refused)?;
            records.clear();
        }
    }
    engine.write(&records, &[], &checkpoint).map_err(refused)?;
    engine.close();
    Ok(())
}

fn recover(directory: &Directory) -> Result<(Engine, Checkpoint, State)> {
    let journaled = verify::verify(directory)?;
    let engine = open(directory)?;
    let checkpoint = engine.checkpoint().map_err(|error| refused(directory, error))?;
    let Some(checkpoint) = checkpoint.filter(|found| journaled.is_none_or(|expected| expected == *found)) else {
        return Err(directory.damaged("what was written last is missing"));
    };
    let closed = directory.closed()?;
    if closed.as_ref().is_some_and(|closed| *closed != checkpoint.text()) {
        return Err(directory.damaged("it is not as it was closed"));
    }
    let state = read(directory, &engine, &checkpoint)?;
    if closed.is_some() {
        directory.remove_closed()?;
    }
    Ok((engine, checkpoint, state))
}

/// Reads the state that a checkpoint sums up.
fn read(directory: &Directory, engine: &Engine, checkpoint: &Checkpoint) -> Result<State> {
    let refused = |error| refused(directory, error);
    let mut state = State { revision: checkpoint.revision, ..State::default() };
    state.history.compact(checkpoint.compacted);
    let mut found = Checkpoint { records: 0, sum: 0, ..*checkpoint };
    for pair in engine.records().map_err(refused)? {
        let (key, bytes) = pair.into_inner().map_err(refused)?;
        let record = Record::read_header(&bytes).filter(|record| record_key(record) == key[..]);
        let record = record.ok_or_else(|| directory.damaged("a record cannot be read"))?;
        found.add(&record);
        let restored = state.restore(record);
        restored.ok_or_else(|| directory.damaged("a record contradicts an earlier one"))?;
    }
    if found != *checkpoint {
        return Err(directory.damaged("records are missing"));
    }
    Ok(state)
}

/// What it means that fjall does not open or read its files.
fn refused(directory: &Directory, error: fjall::Error) -> Error {
    if let fjall::Error::Locked = error {
        return Error::InUse { path: directory.path.clone() };
    }
    let mut causes = std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source());
    match causes.find_map(|cause| cause.downcast_ref::<io::Error>()) {
        Some(io) if !is_damage(io.kind()) => directory.failed(io::Error::new(io.kind(), io.to_string())),
        _ => directory.damaged(format!("fjall: {error:?}")),
    }
}

/// Whether an I/O error is about the contents of a file, and not about the access to it.
fn is_damage(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, NotFound, UnexpectedEof};
    matches!(kind, InvalidData | InvalidInput | NotFound | UnexpectedEof)
}
