//! Opens the log of a store: verifies all of it, moves what is in the journal to tables, and reads the state that they lead to.

use super::{
    directory::Directory,
    engine,
    journal::{Journal, SHORT, Spare},
    pending::Pending,
    replay::{self, Found},
    summary::{Key, Summary, record_key},
    tables::Tables,
};
use crate::{Error, Result, core::State, record::Record};
use fjall::Keyspace;
use std::{fs, io};

/// Makes an empty store.
pub(crate) fn create(directory: &Directory) -> Result<(Tables, Journal)> {
    let tables = Tables::create(&directory.engine()).map_err(|error| refused(directory, error))?;
    let journal = fs::create_dir(directory.journal()).and_then(|()| renew(directory, 0, &tables.summary));
    Ok((tables, journal.map_err(|source| directory.failed(source))?))
}

/// Starts the journal anew where everything before is in tables.
pub(crate) fn renew(directory: &Directory, number: u64, before: &Summary) -> io::Result<Journal> {
    let spare = Spare::make(&directory.journal(), number, SHORT)?;
    Journal::start(spare, before)
}

/// Opens a store that is there.
pub(crate) fn recover(directory: &Directory) -> Result<(Tables, Journal, State)> {
    let path = directory.engine();
    let failed = |source| directory.failed(source);
    engine::verify(&path).map_err(|flaw| flaw.at(directory))?;
    let journals = replay::read(&directory.journal()).map_err(|flaw| flaw.at(directory))?;
    let tables = Tables::open(&path).map_err(|error| refused(directory, error))?;
    let missing = || directory.damaged("what was written last is missing");
    let (Some(mut tables), Some(last)) = (tables, journals.last()) else {
        return Err(missing());
    };
    let sealed = directory.sealed()?;
    if sealed.as_ref().is_some_and(|sealed| *sealed != last.after.text()) {
        return Err(directory.damaged("it is not as it was closed"));
    }
    let from = match journals.iter().position(|journal| journal.before == tables.summary) {
        None if last.after == tables.summary => journals.len(),
        from => from.ok_or_else(missing)?,
    };
    for journal in journals[from..].iter().filter(|journal| journal.before != journal.after) {
        take_in(directory, &mut tables, journal)?;
    }
    let (state, stale) = load(directory, &tables.records, &tables.summary)?;
    tables.stale = stale;
    if sealed.is_some() {
        directory.unseal()?;
    }
    let journal = renew(directory, last.number + 1, &tables.summary).map_err(failed)?;
    journals.iter().try_for_each(Found::remove).map_err(failed)?;
    Ok((tables, journal, state))
}

/// Moves what a file of the journal holds into tables.
fn take_in(directory: &Directory, tables: &mut Tables, journal: &Found) -> Result<()> {
    let unread = || directory.damaged("a record of the journal cannot be read");
    let (pending, mut removed) = (Pending::default(), Vec::new());
    for item in journal.items() {
        let key = Key::try_from(item.key).map_err(|_| unread())?;
        if item.is_removal {
            removed.push(key);
            continue;
        }
        let record = Record::read(item.value).filter(|record| record_key(record) == key);
        pending.put(record.ok_or_else(unread)?);
    }
    pending.add(&[], removed);
    tables.take_in(&pending, journal.after).map_err(|error| refused(directory, error))
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
pub(crate) fn refused(directory: &Directory, error: fjall::Error) -> Error {
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
