//! The backend on disk: reads find keys in memory, and values there or in the engine; writes go to one thread, which makes
//! many durable at once.

#[cfg(test)]
mod damage;
mod directory;
mod engine;
pub(crate) mod journal;
mod log;
mod queue;
mod room;
mod summary;
mod values;
mod writer;

pub(crate) use values::{Engine, Values};

use crate::{Backend, Committed, Entry, Error, Op, Options, Page, Range, Result, Snapshot, Watch};
use crate::{backup::blocking, core::Core, record::Record};
use bytes::Bytes;
use directory::Directory;
use futures::future::{self, BoxFuture, FutureExt};
use log::Log;
use queue::{Sender, queue};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio::sync::oneshot;
use writer::Job;

/// Makes a closed store of records, all of them before its revision, and verifies that it can be opened.
pub(crate) fn fill(path: &Path, revision: u64, records: impl FnMut() -> Result<Option<Record>>) -> Result<()> {
    let directory = Directory::open(path)?;
    directory.create(|| Log::fill(&directory, revision, records))?;
    let (log, state) = Log::open(&directory, 0)?;
    drop(state);
    directory.seal(&log.close())
}

/// A store in a data directory. Its writer ends, and the directory is free, when it is closed or dropped.
pub(crate) struct Disk {
    core: Arc<Core>,
    jobs: Sender,
}

impl Disk {
    pub async fn open(path: PathBuf, options: Options) -> Result<Disk> {
        let (jobs, waiting) = queue();
        let (opened, answer) = oneshot::channel();
        let thread = std::thread::Builder::new().name("flyball-store".to_owned());
        let run = {
            let path = path.clone();
            move || writer::run(path, options, opened, waiting)
        };
        thread.spawn(run).map_err(|source| Error::Open { path: path.clone(), source })?;
        // The thread dies without an answer where the engine gives up on a file in the middle of reading it.
        let unread = || Error::Damaged { path, reason: "its files cannot be read".to_owned() };
        let core = answer.await.unwrap_or_else(|_| Err(unread()))?;
        Ok(Disk { core, jobs })
    }

    async fn ask<T>(&self, job: impl FnOnce(oneshot::Sender<Result<T>>) -> Job) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        self.jobs.send(job(reply)).map_err(|_| Error::Closed)?;
        answer.await.unwrap_or(Err(Error::Closed))
    }
}

impl Backend for Disk {
    fn get<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Entry>>> {
        future::ready(self.core.get(key)).boxed()
    }

    fn range(&self, range: Range) -> BoxFuture<'_, Result<Page>> {
        match self.core.find(range) {
            Ok(found) if found.is_near() => future::ready(self.core.read(&found)).boxed(),
            Ok(found) => {
                let core = self.core.clone();
                blocking(move || core.read(&found)).boxed()
            }
            Err(error) => future::ready(Err(error)).boxed(),
        }
    }

    fn snapshot(&self) -> BoxFuture<'_, Result<Snapshot>> {
        future::ready(Ok(self.core.snapshot())).boxed()
    }

    fn commit(&self, ops: Vec<Op>) -> BoxFuture<'_, Result<Committed>> {
        self.ask(|reply| Job::Commit { ops, reply }).boxed()
    }

    fn watch(&self, prefix: Bytes, after: u64) -> BoxFuture<'_, Result<Watch>> {
        future::ready(self.core.watch(prefix, after)).boxed()
    }

    fn compact(&self, revision: u64) -> BoxFuture<'_, Result<()>> {
        self.ask(move |reply| Job::Compact { revision, reply }).boxed()
    }

    fn revision(&self) -> u64 {
        self.core.revision()
    }

    fn reached(&self, revision: u64) -> BoxFuture<'_, ()> {
        self.core.reached(revision).boxed()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        // An error means that it was closed before.
        self.ask(|reply| Job::Close { reply }).map(drop).boxed()
    }
}
