//! The backend on disk: reads find keys in memory, and values there or in fjall; writes go to one thread, which makes many
//! durable with one fsync.

mod checkpoint;
mod commit_queue;
mod directory;
mod engine;
mod frame;
mod journal;
mod log;
mod verify;
mod writer;

pub(crate) use directory::{names, private_file};
pub(crate) use engine::{Engine, EngineSnapshot};

use crate::{Backend, Committed, Entry, Error, Health, Op, Options, Page, Range, Result, Snapshot, Watch};
use crate::{
    backup::blocking,
    record::Record,
    state::{Lookup, SharedState},
    txn::Txn,
};
use bytes::Bytes;
use commit_queue::{CommitQueue, Job, commit_queue};
use directory::Directory;
use futures::future::{self, BoxFuture, FutureExt};
use log::Log;
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio::sync::oneshot;

/// Creates a closed store of records, all of them older than its revision, and verifies that it can be opened.
pub(crate) fn fill(path: &Path, revision: u64, records: impl FnMut() -> Result<Option<Record>>) -> Result<()> {
    Log::fill(Directory::open(path)?, revision, records)
}

/// A store in a data directory. Its writer ends, and the directory is released, when it is closed or dropped.
pub(crate) struct Disk {
    state: Arc<SharedState>,
    queue: CommitQueue,
}

impl Disk {
    pub async fn open(path: PathBuf, options: Options) -> Result<Disk> {
        let (queue, receiver) = commit_queue();
        let (opened, answer) = oneshot::channel();
        let thread = std::thread::Builder::new().name("flyball-store".to_owned());
        let run = {
            let path = path.clone();
            move || writer::run(path, options, opened, receiver)
        };
        thread.spawn(run).map_err(|source| Error::open(&path, source))?;
        // The thread panics without an answer where fjall does so on a damaged file.
        let unread = || Error::Damaged { path, reason: "its files cannot be read".to_owned() };
        let state = answer.await.unwrap_or_else(|_| Err(unread()))?;
        Ok(Disk { state, queue })
    }
}

impl Backend for Disk {
    fn get<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Entry>>> {
        match self.state.lookup(key) {
            Lookup::Found(entry) => future::ready(Ok(entry)).boxed(),
            Lookup::OnDisk(record, snapshot) => {
                let state = self.state.clone();
                blocking(move || state.fetch(&record, &snapshot)).boxed()
            }
        }
    }

    fn range(&self, range: Range) -> BoxFuture<'_, Result<Page>> {
        match self.state.find(range) {
            Ok(query) if query.is_in_memory() => future::ready(self.state.run(&query)).boxed(),
            Ok(query) => {
                let state = self.state.clone();
                blocking(move || state.run(&query)).boxed()
            }
            Err(error) => future::ready(Err(error)).boxed(),
        }
    }

    fn snapshot(&self) -> BoxFuture<'_, Result<Snapshot>> {
        future::ready(Ok(self.state.snapshot())).boxed()
    }

    fn commit(&self, ops: Vec<Op>) -> BoxFuture<'_, Result<Committed>> {
        async move {
            let txn = Txn::new(ops)?;
            let result = self.queue.submit(|reply| Job::Commit { txn, reply }).await??;
            if result.is_in_memory() {
                result.answer()
            } else {
                blocking(move || result.answer()).await
            }
        }
        .boxed()
    }

    fn watch(&self, prefix: Bytes, after: u64) -> BoxFuture<'_, Result<Watch>> {
        future::ready(self.state.watch(prefix, after)).boxed()
    }

    fn compact(&self, revision: u64) -> BoxFuture<'_, Result<()>> {
        async move { self.queue.submit(|reply| Job::Compact { revision, reply }).await? }.boxed()
    }

    fn revision(&self) -> u64 {
        self.state.revision()
    }

    fn reached(&self, revision: u64) -> BoxFuture<'_, ()> {
        self.state.reached(revision).boxed()
    }

    fn health(&self) -> BoxFuture<'_, Health> {
        let health = self.queue.submit(|reply| Job::Health { reply });
        health.map(|health| health.unwrap_or_else(|error| Health::unavailable(&error))).boxed()
    }

    fn open_snapshots(&self) -> usize {
        let state = self.state.read();
        state.disk.as_ref().map_or(0, |(engine, _)| engine.open_snapshots())
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        // An error means that the writer has ended already.
        async move { drop(self.queue.submit(|reply| Job::Close { reply }).await) }.boxed()
    }
}
