//! How much a store remembers, and the stores made with it.

use crate::{Result, Store, disk::Disk, memory::Memory};
use std::path::PathBuf;

/// How much history a store keeps, and how far a watcher may fall behind.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// So many revisions can be read and watched after.
    pub history_revisions: u64,
    /// So many bytes of replaced and removed values are kept for that.
    pub history_bytes: usize,
    /// A watcher that has left so many bytes of events untaken is ended.
    pub watch_bytes: usize,
    /// So many bytes of values a store on disk keeps in memory, those written or read last; the others are read from disk.
    pub memory_bytes: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            history_revisions: 250_000,
            history_bytes: 64 << 20,
            watch_bytes: 16 << 20,
            memory_bytes: 16 << 20,
        }
    }
}

impl Options {
    /// Makes an empty store in memory.
    pub fn memory(self) -> Store {
        Store::new(Memory::new(self))
    }

    /// Opens the store in a data directory, which is made if it is not there.
    pub async fn open(self, path: impl Into<PathBuf>) -> Result<Store> {
        Ok(Store::new(Disk::open(path.into(), self).await?))
    }
}
