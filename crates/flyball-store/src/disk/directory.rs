//! A data directory: its lock, its format, its permissions, the creation of a store in it, and whether that was closed.

use crate::{Error, Result, backup::sync_parent};
use std::{
    ffi::{OsStr, OsString},
    fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

/// The format that this version writes and reads.
const FORMAT: &str = "flyball-store 4";

/// The free space without which a store that failed to write does not try again, in bytes.
const MIN_FREE_BYTES: usize = 1 << 20;

/// A data directory that no other process has open: `lock`, `store` with `format`, fjall's files and `closed` while it is
/// closed, and `unfinished` while the store is being created. Only its user may read it: the directories that this creates
/// have mode 0700, its own files 0600; fjall creates its files below `store` with the umask.
pub(crate) struct Directory {
    pub path: PathBuf,
    _lock: File,
}

impl Directory {
    /// Locks a data directory; creates it where there is none.
    pub fn open(path: &Path) -> Result<Directory> {
        let failed = |source| Error::open(path, source);
        make(path).map_err(failed)?;
        if is_foreign(path).map_err(failed)? {
            return Err(Error::Foreign { path: path.to_owned() });
        }
        let lock = private_file(&path.join("lock")).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Error::InUse { path: path.to_owned() }),
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        Ok(Directory { path: path.to_owned(), _lock: lock })
    }

    /// The directory of fjall's files.
    pub fn store(&self) -> PathBuf {
        self.path.join("store")
    }

    /// Returns whether there is a store; refuses one of another format.
    pub fn has_store(&self) -> Result<bool> {
        let failed = |source| self.failed(source);
        let is_unfinished = self.unfinished().try_exists().map_err(failed)?;
        if is_unfinished || !self.store().try_exists().map_err(failed)? {
            return Ok(false);
        }
        let found = match fs::read(self.store().join("format")) {
            Ok(found) => String::from_utf8_lossy(&found).into_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(self.damaged("store/format is missing"));
            }
            Err(error) => return Err(failed(error)),
        };
        if found.trim_end() == FORMAT {
            // An `unfinished` that a crash brought back would have the store created again.
            return sync(&self.path).map(|()| true).map_err(failed);
        }
        let found = found.lines().next().unwrap_or_default().chars().take(40).collect();
        Err(Error::Format { path: self.path.clone(), found, expected: FORMAT })
    }

    /// Creates a store, which `fill` starts. Where that is interrupted, the next open begins again.
    pub fn create<T>(&self, fill: impl FnOnce() -> Result<T>) -> Result<T> {
        let failed = |source| self.failed(source);
        let (store, unfinished) = (self.store(), self.unfinished());
        private_file(&unfinished).and_then(|_| sync(&self.path)).map_err(failed)?;
        if store.try_exists().map_err(failed)? {
            fs::remove_dir_all(&store).map_err(failed)?;
        }
        private_directory(&store).map_err(failed)?;
        let filled = fill()?;
        write(&store.join("format"), &format!("{FORMAT}\n")).map_err(failed)?;
        // fjall does not sync the directory of its keyspaces.
        let places = [&store.join("keyspaces"), &store, &self.path];
        places.into_iter().try_for_each(|place| sync(place)).map_err(failed)?;
        fs::remove_file(&unfinished).and_then(|()| sync(&self.path)).map_err(failed)?;
        Ok(filled)
    }

    /// Notes what a store held when it was closed.
    pub fn note_closed(&self, contents: &str) -> Result<()> {
        let draft = self.store().join("closed.new");
        let written = write(&draft, contents).and_then(|()| fs::rename(&draft, self.closed_path()));
        written.and_then(|()| sync(&self.store())).map_err(|source| self.failed(source))
    }

    /// Reads what the store held when it was closed; `None` where it was not closed but interrupted.
    pub fn closed(&self) -> Result<Option<String>> {
        match fs::read(self.closed_path()) {
            Ok(contents) => Ok(Some(String::from_utf8_lossy(&contents).into_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Removes the note before anything is written.
    pub fn remove_closed(&self) -> Result<()> {
        fs::remove_file(self.closed_path())
            .and_then(|()| sync(&self.store()))
            .map_err(|source| self.failed(source))
    }

    /// Checks that a file can be created and that there are [`MIN_FREE_BYTES`] for it.
    pub fn probe(&self) -> Result<()> {
        let path = self.store().join("probe");
        let written = private_file(&path).and_then(|mut file| {
            file.write_all(&vec![0x55; MIN_FREE_BYTES])?;
            file.sync_all()
        });
        // It is not there where it could not be created.
        fs::remove_file(&path).ok();
        written.map_err(|source| Error::not_written(&self.path, std::sync::Arc::new(source)))
    }

    fn closed_path(&self) -> PathBuf {
        self.store().join("closed")
    }

    fn unfinished(&self) -> PathBuf {
        self.path.join("unfinished")
    }

    pub fn failed(&self, source: io::Error) -> Error {
        Error::open(&self.path, source)
    }

    pub fn damaged(&self, reason: impl Into<String>) -> Error {
        Error::Damaged { path: self.path.clone(), reason: reason.into() }
    }
}

fn sync(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

fn write(path: &Path, contents: &str) -> io::Result<()> {
    let mut file = private_file(path)?;
    file.write_all(contents.as_bytes())?;
    file.sync_all()
}

/// Creates or truncates a file that only its user may read.
pub(crate) fn private_file(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    if file.metadata()?.permissions().mode() & 0o077 != 0 {
        file.set_permissions(Permissions::from_mode(0o600))?;
    }
    Ok(file)
}

/// Creates a directory that only its user may enter.
fn private_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

/// Creates a directory, and those above it, durably.
fn make(path: &Path) -> io::Result<()> {
    let is_missing = |path: &&Path| !path.as_os_str().is_empty() && !path.exists();
    let missing: Vec<&Path> = path.ancestors().take_while(is_missing).collect();
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    missing.into_iter().try_for_each(sync_parent)
}

/// Whether a directory has files but none of a store.
fn is_foreign(path: &Path) -> io::Result<bool> {
    let ours = ["lock", "store", "unfinished"].map(OsStr::new);
    let names = names(path)?;
    Ok(!names.is_empty() && !names.iter().any(|name| ours.contains(&name.as_os_str())))
}

/// The names in a directory, except those that file systems put there themselves.
pub(crate) fn names(path: &Path) -> io::Result<Vec<OsString>> {
    let names = fs::read_dir(path)?.map(|file| Ok(file?.file_name()));
    let is_users = |name: &io::Result<OsString>| name.as_ref().map_or(true, |name| name != "lost+found");
    names.filter(is_users).collect()
}
