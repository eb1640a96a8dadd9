//! Makes a data directory of a backup, beside its place, and puts it there when it is whole.

use crate::{
    Backup, Error, Result,
    backup::{self, Reader},
    disk,
};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// A restored store goes on so many revisions after its backup: more than can have been written since, so that a client that
/// saw some of it is told `Compacted` instead of getting other changes under the same numbers.
const LEAP: u64 = 1_000_000_000;

pub(crate) async fn restore(file: PathBuf, directory: PathBuf) -> Result<Backup> {
    backup::blocking(move || place(&file, &directory)).await
}

fn place(file: &Path, directory: &Path) -> Result<Backup> {
    let failed = |source| Error::Open { path: directory.to_owned(), source };
    if !is_empty(directory).map_err(failed)? {
        return Err(Error::Occupied { path: directory.to_owned() });
    }
    let backup = Reader::open(file)?.verify()?;
    let mut draft = directory.as_os_str().to_owned();
    draft.push(".restoring");
    let draft = PathBuf::from(draft);
    let mut reader = Reader::open(file)?;
    disk::fill(&draft, backup.revision + LEAP, || reader.next())?;
    if reader.backup != backup {
        return Err(backup::damaged(file, "it changed while it was read"));
    }
    fs::rename(&draft, directory).map_err(failed)?;
    backup::sync_parent(directory).map_err(failed)?;
    Ok(backup)
}

fn is_empty(directory: &Path) -> io::Result<bool> {
    match fs::read_dir(directory) {
        Ok(mut files) => Ok(files.next().is_none()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
    }
}
