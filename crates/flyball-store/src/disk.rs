//! The backend on disk: reads find keys in memory, and values there or in the engine; writes go to one thread, which makes
//! many durable at once.

mod awake;
mod batch;
mod block;
#[cfg(test)]
mod damage;
mod desk;
mod directory;
mod engine;
mod finisher;
mod frame;
mod journal;
mod log;
mod mover;
mod patience;
mod pending;
#[cfg(test)]
mod power;
mod recovery;
pub(crate) mod replay;
mod sector;
mod summary;
mod tables;
mod tail;
mod values;
mod writer;

pub(crate) use directory::names;
pub(crate) use values::{Engine, Values};

use crate::{Backend, Committed, Entry, Error, Health, Op, Options, Page, Range, Result, Snapshot, Watch};
use crate::{backup::blocking, record::Record};
use bytes::Bytes;
use desk::Desk;
use directory::Directory;
use futures::future::{self, BoxFuture, FutureExt};
use log::Log;
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio::sync::oneshot;

/// Makes a closed store of records, all of them before its revision, and verifies that it can be opened.
pub(crate) fn fill(path: &Path, revision: u64, records: impl FnMut() -> Result<Option<Record>>) -> Result<()> {
    let directory = Directory::open(path)?;
    directory.create(|| Log::fill(&directory, revision, records))?;
    let (opened, state) = Log::open(&directory, 0)?;
    drop(state);
    directory.seal(&opened.close())
}

/// A store in a data directory. Its writer ends, and the directory is free, when it is closed or dropped.
pub(crate) struct Disk {
    desk: Arc<Desk>,
}

impl Disk {
    pub async fn open(path: PathBuf, options: Options) -> Result<Disk> {
        let (opened, answer) = oneshot::channel();
        let thread = std::thread::Builder::new().name("flyball-store".to_owned());
        let run = {
            let path = path.clone();
            move || writer::run(path, options, opened)
        };
        thread.spawn(run).map_err(|source| Error::Open { path: path.clone(), source })?;
        // The thread dies without an answer where the engine gives up on a file in the middle of reading it.
        let unread = || Error::Damaged { path, reason: "its files cannot be read".to_owned() };
        let desk = answer.await.unwrap_or_else(|_| Err(unread()))?;
        Ok(Disk { desk })
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Nobody waits for the answer.
        drop(self.desk.close());
    }
}

impl Backend for Disk {
    fn get<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Entry>>> {
        future::ready(self.desk.core.get(key)).boxed()
    }

    fn range(&self, range: Range) -> BoxFuture<'_, Result<Page>> {
        match self.desk.core.find(range) {
            Ok(found) if found.is_near() => future::ready(self.desk.core.read(&found)).boxed(),
            Ok(found) => {
                let core = self.desk.core.clone();
                blocking(move || core.read(&found)).boxed()
            }
            Err(error) => future::ready(Err(error)).boxed(),
        }
    }

    fn snapshot(&self) -> BoxFuture<'_, Result<Snapshot>> {
        future::ready(Ok(self.desk.core.snapshot())).boxed()
    }

    fn commit(&self, ops: Vec<Op>) -> BoxFuture<'_, Result<Committed>> {
        async move { self.desk.commit(ops)?.answer().await }.boxed()
    }

    fn watch(&self, prefix: Bytes, after: u64) -> BoxFuture<'_, Result<Watch>> {
        future::ready(self.desk.core.watch(prefix, after)).boxed()
    }

    fn compact(&self, revision: u64) -> BoxFuture<'_, Result<()>> {
        async move { self.desk.compact(revision)?.await.unwrap_or(Err(Error::Closed)) }.boxed()
    }

    fn revision(&self) -> u64 {
        self.desk.core.revision()
    }

    fn reached(&self, revision: u64) -> BoxFuture<'_, ()> {
        self.desk.core.reached(revision).boxed()
    }

    fn health(&self) -> BoxFuture<'_, Health> {
        future::ready(self.desk.health()).boxed()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        async {
            if let Some(closed) = self.desk.close() {
                // An error means that the writer is gone already.
                closed.await.ok();
            }
        }
        .boxed()
    }
}
