//! Keys, revisions and watches: one trait, one handle, and three backends: memory, disk and etcd.
//!
//! The store does not interpret values. Every commit that changes something takes the next revision of the whole store, as
//! in etcd; a read sees one revision, a watch every later change in order, once.

mod backend;
mod backup;
mod disk;
mod entry;
mod error;
#[cfg(feature = "etcd")]
mod etcd;
#[cfg(feature = "testing")]
pub mod fault;
mod health;
mod history;
mod index;
mod memory;
mod op;
mod options;
mod range;
mod range_query;
mod read_snapshot;
mod record;
mod restore;
mod snapshot;
mod state;
#[cfg(feature = "testing")]
pub mod testing;
mod txn;
mod value_cache;
mod watch;
mod watch_hub;

pub use backend::Backend;
pub use backup::Backup;
pub use entry::{Entry, Event};
pub use error::{Error, Result};
#[cfg(feature = "etcd")]
pub use etcd::{Etcd, Tls};
pub use health::Health;
pub use op::{Committed, Expect, Op, Value};
pub use options::Options;
pub use range::{Page, Range};
pub use snapshot::Snapshot;
pub use watch::Watch;

use bytes::Bytes;
use std::{path::PathBuf, sync::Arc};

/// A handle to a store; clones share it.
#[derive(Clone)]
pub struct Store(Arc<dyn Backend>);

impl Store {
    /// Makes an empty store in memory, which needs no thread, no timer and no runtime.
    pub fn memory() -> Store {
        Options::default().memory()
    }

    /// Opens the store in a data directory, which is created if it is not there; acknowledged writes survive a crash.
    pub async fn open(path: impl Into<PathBuf>) -> Result<Store> {
        Options::default().open(path).await
    }

    /// Makes a store of a backend.
    pub fn new(backend: impl Backend) -> Store {
        Store(Arc::new(backend))
    }

    /// Reads the latest value of a key.
    pub async fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Entry>> {
        self.0.get(key.as_ref()).await
    }

    /// Reads the entries under a prefix, in the order of their keys, all at one revision.
    pub async fn range(&self, range: Range) -> Result<Page> {
        self.0.range(range).await
    }

    /// Reads everything at one revision, however long that takes and whatever is written or compacted meanwhile.
    ///
    /// On etcd the revision must stay in the history until the last entry is read; [`Error::Compacted`] says if it does not.
    pub async fn snapshot(&self) -> Result<Snapshot> {
        self.0.snapshot().await
    }

    /// Writes everything that is there at one revision into a new file, while the store is in use; reads the file back and
    /// verifies it. A file of that name is replaced, and only by a whole one.
    pub async fn backup(&self, file: impl Into<PathBuf>) -> Result<Backup> {
        backup::write(self.snapshot().await?, file.into()).await
    }

    /// Makes a data directory of a backup; the directory must be empty or not there, and is left so where this fails.
    ///
    /// Every value keeps its revision. The store itself continues at a much later one, without a history, so that a client that
    /// saw writes from after the backup has to list again.
    pub async fn restore(file: impl Into<PathBuf>, directory: impl Into<PathBuf>) -> Result<Backup> {
        restore::restore(file.into(), directory.into()).await
    }

    /// Writes all operations as one revision, or none of them.
    ///
    /// A commit that is acknowledged is durable and visible to every read that starts afterwards. A future dropped before
    /// it is answered may or may not have been committed.
    pub async fn commit(&self, ops: Vec<Op>) -> Result<Committed> {
        self.0.commit(ops).await
    }

    /// Watches every change under a prefix whose revision is above `after`.
    pub async fn watch(&self, prefix: impl Into<Bytes>, after: u64) -> Result<Watch> {
        self.0.watch(prefix.into(), after).await
    }

    /// Removes the history below a revision, which stays the oldest that can be read or watched after.
    pub async fn compact(&self, revision: u64) -> Result<()> {
        self.0.compact(revision).await
    }

    /// Returns the revision of the latest commit; 0 before the first.
    pub fn revision(&self) -> u64 {
        self.0.revision()
    }

    /// Waits until the store is at a revision or past it.
    pub async fn reached(&self, revision: u64) {
        self.0.reached(revision).await
    }

    /// Reports whether the store can read and write right now, and if not, why.
    ///
    /// A store on disk answers after the commits that are queued; a failed one checks whether the disk can be written again.
    /// Callers set a deadline: a disk that hangs does not answer.
    pub async fn health(&self) -> Health {
        self.0.health().await
    }

    /// Whether other processes may commit to the same backend.
    pub fn is_shared(&self) -> bool {
        self.0.is_shared()
    }

    /// How many snapshots of the disk are held for reads and watches in progress; each keeps replaced values on disk.
    pub fn open_snapshots(&self) -> usize {
        self.0.open_snapshots()
    }

    /// Finishes queued commits and releases all resources. Later commits and watches answer [`Error::Closed`]; reads answer
    /// from memory, as far as values are there.
    ///
    /// A dropped store releases its directory a moment later; close it before the directory is opened again or removed.
    pub async fn close(&self) {
        self.0.close().await
    }
}
