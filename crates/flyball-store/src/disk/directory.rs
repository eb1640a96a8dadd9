//! A data directory: who may open it, whether it is one of ours, how a new one comes into being, and whether it was closed.

use crate::{Error, Result, backup::sync_parent};
use std::{
    ffi::{OsStr, OsString},
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
};

/// The format that this version writes and reads.
const FORMAT: &str = "flyball-store 3";

/// A data directory that no other process has open: `lock`, `store` with `format`, the engine's files and `sealed` while it
/// is closed, and `unfinished` while the store is being made.
pub(crate) struct Directory {
    pub path: PathBuf,
    _lock: File,
}

impl Directory {
    /// Locks a data directory and checks its format; makes it where there is none.
    pub fn open(path: &Path) -> Result<Directory> {
        let failed = |source| Error::open(path, source);
        make(path).map_err(failed)?;
        if is_foreign(path).map_err(failed)? {
            return Err(Error::Foreign { path: path.to_owned() });
        }
        let lock = File::create(path.join("lock")).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Error::InUse { path: path.to_owned() }),
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        Ok(Directory { path: path.to_owned(), _lock: lock })
    }

    /// Where the engine keeps its files.
    pub fn engine(&self) -> PathBuf {
        self.path.join("store")
    }

    /// Where our own journal is.
    pub fn journal(&self) -> PathBuf {
        self.engine().join("journal")
    }

    /// Says whether a store is there; refuses one of another format.
    pub fn has_store(&self) -> Result<bool> {
        let failed = |source| self.failed(source);
        let is_unfinished = self.unfinished().try_exists().map_err(failed)?;
        if is_unfinished || !self.engine().try_exists().map_err(failed)? {
            return Ok(false);
        }
        let found = match fs::read(self.engine().join("format")) {
            Ok(found) => String::from_utf8_lossy(&found).into_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(self.damaged("store/format is missing"));
            }
            Err(error) => return Err(failed(error)),
        };
        if found.trim_end() == FORMAT {
            // A note that came back after a crash would have everything made anew.
            return sync(&self.path).map(|()| true).map_err(failed);
        }
        let found = found.lines().next().unwrap_or_default().chars().take(40).collect();
        Err(Error::Format { path: self.path.clone(), found, expected: FORMAT })
    }

    /// Makes a store, which `fill` starts. Where that is interrupted, the next one to come makes it anew.
    pub fn create<T>(&self, fill: impl FnOnce() -> Result<T>) -> Result<T> {
        let failed = |source| self.failed(source);
        let (engine, unfinished) = (self.engine(), self.unfinished());
        File::create(&unfinished).and_then(|_| sync(&self.path)).map_err(failed)?;
        if engine.try_exists().map_err(failed)? {
            fs::remove_dir_all(&engine).map_err(failed)?;
        }
        let filled = fill()?;
        let format = engine.join("format");
        fs::write(&format, format!("{FORMAT}\n")).and_then(|()| sync(&format)).map_err(failed)?;
        // The engine leaves the names of its keyspaces to chance.
        let places = [&engine.join("keyspaces"), &engine, &self.path];
        places.into_iter().try_for_each(|place| sync(place)).map_err(failed)?;
        fs::remove_file(&unfinished).and_then(|()| sync(&self.path)).map_err(failed)?;
        Ok(filled)
    }

    /// Notes what a store held when it was closed, so that nothing of it can get lost unnoticed until it is opened.
    pub fn seal(&self, contents: &str) -> Result<()> {
        let (draft, seal) = (self.engine().join("sealed.new"), self.seal_path());
        let written = fs::write(&draft, contents).and_then(|()| sync(&draft));
        written
            .and_then(|()| fs::rename(&draft, seal))
            .and_then(|()| sync(&self.engine()))
            .map_err(|source| self.failed(source))
    }

    /// Reads what the store held when it was closed; `None` where it was not closed but interrupted.
    pub fn sealed(&self) -> Result<Option<String>> {
        match fs::read(self.seal_path()) {
            Ok(contents) => Ok(Some(String::from_utf8_lossy(&contents).into_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Takes the note away before anything is written.
    pub fn unseal(&self) -> Result<()> {
        fs::remove_file(self.seal_path())
            .and_then(|()| sync(&self.engine()))
            .map_err(|source| self.failed(source))
    }

    fn seal_path(&self) -> PathBuf {
        self.engine().join("sealed")
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

/// Makes a directory, and those above it, so that they will be there.
fn make(path: &Path) -> io::Result<()> {
    let is_missing = |path: &&Path| !path.as_os_str().is_empty() && !path.exists();
    let missing: Vec<&Path> = path.ancestors().take_while(is_missing).collect();
    fs::create_dir_all(path)?;
    missing.into_iter().try_for_each(sync_parent)
}

/// Whether a directory has files but none of a store.
fn is_foreign(path: &Path) -> io::Result<bool> {
    let ours = ["lock", "store", "unfinished"].map(OsStr::new);
    let names = names(path)?;
    Ok(!names.is_empty() && !names.iter().any(|name| ours.contains(&name.as_os_str())))
}

/// What is in a directory, beside what file systems put there themselves.
pub(crate) fn names(path: &Path) -> io::Result<Vec<OsString>> {
    let names = fs::read_dir(path)?.map(|file| Ok(file?.file_name()));
    let is_users = |name: &io::Result<OsString>| name.as_ref().map_or(true, |name| name != "lost+found");
    names.filter(is_users).collect()
}
