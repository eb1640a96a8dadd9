//! The errors of the store, as far as a caller can act on them.

use crate::{Entry, Expect};
use bytes::Bytes;
use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

/// A result of the store.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation failed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The history no longer reaches back so far.
    #[error("revision {requested} is compacted: the oldest that can be read is {oldest}")]
    Compacted {
        /// The revision asked for.
        requested: u64,
        /// The oldest revision that can be read, or watched after.
        oldest: u64,
    },
    /// The revision is yet to come.
    #[error("revision {requested} is in the future: the store is at {current}")]
    Future {
        /// The revision asked for.
        requested: u64,
        /// The revision of the store.
        current: u64,
    },
    /// The watch was too slow, and is ended; it can be resumed after the last revision that it delivered.
    #[error("watch {}: ended because its events were not taken in time", text(prefix))]
    Lagged {
        /// The prefix.
        prefix: Bytes,
    },
    /// A key was not as an operation expected; nothing was written.
    #[error("commit {}: {}", text(key), mismatch(expect, current))]
    Conflict {
        /// The key.
        key: Bytes,
        /// The expectation.
        expect: Expect,
        /// The entry found.
        current: Option<Box<Entry>>,
    },
    /// One commit names a key twice; nothing was written.
    #[error("commit {}: the key is given twice", text(key))]
    Duplicate {
        /// The key.
        key: Bytes,
    },
    /// A revision was to be written outside of its value; nothing was written.
    #[error(
        "commit {}: the revision belongs at byte {revision_at} of a value of {length}",
        text(key)
    )]
    StampOutside {
        /// The key.
        key: Bytes,
        /// Where the revision was to be written.
        revision_at: usize,
        /// How long the value is.
        length: usize,
    },
    /// A key or value is larger than the store can keep; nothing was written.
    #[error("commit {}: {length} bytes are more than a store keeps under one key", text(key))]
    TooLarge {
        /// The key, or its beginning.
        key: Bytes,
        /// The length of key and value.
        length: usize,
    },
    /// Another process has the data directory open.
    #[error("the data directory {} is in use by another process: stop that one, or choose another directory", path.display())]
    InUse {
        /// The data directory.
        path: PathBuf,
    },
    /// The data directory holds files that no store wrote.
    #[error("the data directory {} holds something else than a store: choose an empty directory", path.display())]
    Foreign {
        /// The data directory.
        path: PathBuf,
    },
    /// The data directory was written in a format of another version.
    #[error(
        "the data directory {} has the format {found:?}, but this version reads {expected:?}: write a backup with the version \
         that wrote it (`flyball backup FILE`), and restore that into a new directory (`flyball restore FILE --data DIRECTORY`)",
        path.display()
    )]
    Format {
        /// The data directory.
        path: PathBuf,
        /// The format found there.
        found: String,
        /// The format that can be read.
        expected: &'static str,
    },
    /// The files of the data directory are not as they were written.
    #[error("the data directory {} is damaged ({reason}): restore it from a backup, or move it away to start empty", path.display())]
    Damaged {
        /// The data directory.
        path: PathBuf,
        /// What is wrong, and where.
        reason: String,
    },
    /// The data directory could not be read or made.
    #[error("open the data directory {}", path.display())]
    Open {
        /// The data directory.
        path: PathBuf,
        /// Why.
        source: Arc<io::Error>,
    },
    /// A write failed, and nothing of it is on disk; it can be tried again.
    #[error("the data directory {} could not be written: nothing was written, try again", path.display())]
    NotWritten {
        /// The data directory.
        path: PathBuf,
        /// Why.
        source: Arc<dyn std::error::Error + Send + Sync>,
    },
    /// A write failed, so that it may or may not be on disk.
    #[error("write to the data directory {}: the commit may or may not have happened", path.display())]
    Write {
        /// The data directory.
        path: PathBuf,
        /// Why.
        source: Arc<dyn std::error::Error + Send + Sync>,
    },
    /// A value could not be read from disk; others may be.
    #[error("read from the data directory {}", path.display())]
    Read {
        /// The data directory.
        path: PathBuf,
        /// Why.
        source: Arc<dyn std::error::Error + Send + Sync>,
    },
    /// There is no space for a write; nothing was written.
    #[error("the disk of the data directory {} is full: nothing was written, free some space and try again", path.display())]
    Full {
        /// The data directory.
        path: PathBuf,
    },
    /// The data directory may be read but not written.
    #[error("the data directory {} cannot be written: make it writable for this user, or choose another directory", path.display())]
    ReadOnly {
        /// The data directory.
        path: PathBuf,
    },
    /// A backup could not be read or written.
    #[error("{attempt} the backup {}", path.display())]
    Backup {
        /// What was attempted: `read` or `write`.
        attempt: &'static str,
        /// The backup.
        path: PathBuf,
        /// Why.
        source: Arc<io::Error>,
    },
    /// A backup is not as it was written.
    #[error("the backup {} is damaged ({reason}): use another one", path.display())]
    BackupDamaged {
        /// The backup.
        path: PathBuf,
        /// What is wrong, and where.
        reason: String,
    },
    /// The directory to restore into holds something.
    #[error("the directory {} is not empty: restore into one that is empty, or not there yet", path.display())]
    Occupied {
        /// The directory.
        path: PathBuf,
    },
    /// The backend did not answer; a commit may or may not have happened, and the request can be repeated.
    #[error("{place} does not answer; a commit may or may not have happened")]
    Unavailable {
        /// The backend.
        place: String,
        /// Why there is no answer.
        source: Arc<dyn std::error::Error + Send + Sync>,
    },
    /// The backend refused a request; nothing was written.
    #[error("{place} refused: {reason}")]
    Refused {
        /// The backend.
        place: String,
        /// The reason that it gave.
        reason: String,
    },
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}

impl Error {
    /// What it means that a data directory could not be opened.
    pub(crate) fn open(path: &Path, source: io::Error) -> Error {
        use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
        let path = path.to_owned();
        match source.kind() {
            PermissionDenied | ReadOnlyFilesystem => Error::ReadOnly { path },
            kind if is_full(kind) => Error::Full { path },
            _ => Error::Open { path, source: source.into() },
        }
    }

    /// What it means that a data directory could not be read.
    pub(crate) fn read(path: &Path, source: impl std::error::Error + Send + Sync + 'static) -> Error {
        let (path, source) = (path.to_owned(), Arc::new(source));
        match io_kind(&*source) {
            Some(_) => Error::Read { path, source },
            None => Error::Damaged { path, reason: format!("fjall: {source:?}") },
        }
    }

    /// What it means that nothing could be written to a data directory.
    pub(crate) fn not_written(path: &Path, source: Arc<dyn std::error::Error + Send + Sync>) -> Error {
        let path = path.to_owned();
        match io_kind(&*source) {
            Some(kind) if is_full(kind) => Error::Full { path },
            _ => Error::NotWritten { path, source },
        }
    }
}

/// The kind of the I/O error that caused an error.
fn io_kind(error: &(dyn std::error::Error + 'static)) -> Option<io::ErrorKind> {
    let mut causes = std::iter::successors(Some(error), |error| error.source());
    causes.find_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind)
}

fn is_full(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(kind, FileTooLarge | QuotaExceeded | StorageFull)
}

fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

fn mismatch(expect: &Expect, current: &Option<Box<Entry>>) -> String {
    let found = match current {
        Some(entry) => format!("is at revision {}", entry.revision),
        None => "is absent".to_owned(),
    };
    match expect {
        Expect::Anything => format!("the key {found}"),
        Expect::Absent => format!("expected to be absent, but {found}"),
        Expect::Revision(revision) => format!("expected at revision {revision}, but {found}"),
    }
}
