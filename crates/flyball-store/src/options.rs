//! How much a store remembers, and the stores made with it.

use crate::{Result, Store, disk::Disk, memory::Memory};
use std::path::PathBuf;

/// How much history a store keeps, and how far a watcher may fall behind.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The most revisions back that can be read and watched after.
    pub history_revisions: u64,
    /// The most bytes of replaced and removed values that are kept for that.
    pub history_bytes: usize,
    /// The most bytes of events that may be queued for a watch; one that has more is ended.
    pub watch_bytes: usize,
    /// The most bytes of values that a store on disk keeps in memory, those written or fetched last; the others are read
    /// from disk.
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
