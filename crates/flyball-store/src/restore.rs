//! Makes a data directory of a backup: in a subdirectory of it, and moved to its place when it is complete.

use crate::{
    Backup, Error, Result,
    backup::{self, Reader},
    disk,
};
use std::{
    fs,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
};

/// A restored store continues this many revisions after its backup, as with `etcdutl snapshot restore --bump-revision`: more
/// than can have been written since, so that a client that saw some of it gets `Compacted` instead of other changes under the
/// same numbers.
const REVISION_BUMP: u64 = 1_000_000_000;

/// The subdirectory in which the store is made, because the directory may be a file system of its own.
const DRAFT: &str = "restoring";

pub(crate) async fn restore(file: PathBuf, directory: PathBuf) -> Result<Backup> {
    backup::blocking(move || place(&file, &directory)).await
}

fn place(file: &Path, directory: &Path) -> Result<Backup> {
    let (is_there, is_empty) = look(directory).map_err(|source| Error::open(directory, source))?;
    if !is_empty {
        return Err(Error::Occupied { path: directory.to_owned() });
    }
    let backup = Reader::open(file)?.verify()?;
    let placed = make(file, backup, directory);
    // Where another process restores into the same directory, the draft is that one's.
    if placed.as_ref().is_err_and(|error| !matches!(error, Error::InUse { .. })) {
        fs::remove_dir_all(directory.join(DRAFT)).ok();
        if !is_there {
            fs::remove_dir(directory).ok();
        }
    }
    placed.map(|()| backup)
}

/// Makes the store and puts it in its place.
fn make(file: &Path, backup: Backup, directory: &Path) -> Result<()> {
    let (draft, mut reader) = (directory.join(DRAFT), Reader::open(file)?);
    disk::fill(&draft, backup.revision.saturating_add(REVISION_BUMP), || reader.next())?;
    if reader.backup != backup {
        return Err(backup::damaged(file, "it changed while it was read"));
    }
    let store = directory.join("store");
    fs::rename(draft.join("store"), &store)
        .and_then(|()| backup::sync_parent(&store))
        .and_then(|()| fs::remove_dir_all(&draft))
        .map_err(|source| Error::open(directory, source))
}

/// Whether a directory is there, and whether there is nothing in it but what an interrupted restoration left.
fn look(directory: &Path) -> io::Result<(bool, bool)> {
    match disk::names(directory) {
        Ok(names) => Ok((true, names.iter().all(|name| name == DRAFT))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok((false, true)),
        Err(error) => Err(error),
    }
}
