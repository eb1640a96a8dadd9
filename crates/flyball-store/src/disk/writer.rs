//! The writer thread. Group commit: it takes the queued requests, evaluates them, makes their changes durable with one fsync,
//! applies, acknowledges and publishes them. A failed write is rolled back, and fjall is reopened, without a restart.

use super::{
    commit_queue::{Job, Reply, next_batch},
    directory::Directory,
    log::Log,
};
use crate::{
    Error, Health, Options, Result,
    state::SharedState,
    txn::{TxnResult, WriteBatch},
};
use std::{
    io,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::{mpsc, oneshot};

/// How long requests are refused after a failure before the disk is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Opens a data directory, reports that, and serves requests until the store is closed or dropped.
pub(crate) fn run(path: PathBuf, options: Options, opened: Reply<Arc<SharedState>>, mut queue: mpsc::Receiver<Job>) {
    let mut writer = match Writer::open(path, options) {
        Ok(writer) => writer,
        Err(error) => return drop(opened.send(Err(error))),
    };
    let _end = End(writer.state.clone());
    if opened.send(Ok(writer.state.clone())).is_err() {
        return writer.close();
    }
    let mut closing = Vec::new();
    while closing.is_empty()
        && let Some(jobs) = next_batch(&mut queue)
    {
        closing = writer.serve(jobs);
    }
    writer.close();
    // Sending a reply fails only where the caller was cancelled; so it is here and below.
    closing.into_iter().for_each(|reply| drop(reply.send(Ok(()))));
}

/// Ends the watches however the writer thread ends.
struct End(Arc<SharedState>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.close();
    }
}

pub(crate) struct Writer {
    pub state: Arc<SharedState>,
    log: Log,
    failure: Option<Failure>,
}

/// Why the store does not write at the moment.
struct Failure {
    error: Error,
    retry_at: Instant,
}

/// The requests of one group commit, evaluated.
struct Batch {
    writes: WriteBatch,
    /// The revision up to which the history is compacted.
    compacted: u64,
    commits: Vec<(Reply<TxnResult>, TxnResult)>,
    compactions: Vec<(Reply<()>, Result<()>)>,
    health: Vec<oneshot::Sender<Health>>,
    closing: Vec<Reply<()>>,
}

impl Writer {
    pub fn open(path: PathBuf, options: Options) -> Result<Writer> {
        let (log, state) = Log::open(Directory::open(&path)?, options.memory_bytes)?;
        let state = Arc::new(SharedState::new(options, state));
        Ok(Writer { state, log, failure: None })
    }

    /// Ends the watches and releases the directory.
    pub fn close(self) {
        self.state.close();
        if self.failure.is_none() {
            // Without the note the directory is opened as after a crash.
            self.log.close().ok();
        }
    }

    /// Serves some requests; returns the replies to send once the store is closed, if that was requested.
    pub fn serve(&mut self, jobs: Vec<Job>) -> Vec<Reply<()>> {
        let recovered = self.recover();
        let mut batch = self.evaluate(jobs);
        let health = std::mem::take(&mut batch.health);
        let closing = match recovered.and_then(|()| self.persist(&batch)) {
            Ok(()) => self.finish(batch),
            Err(error) => batch.refuse(&error),
        };
        if !health.is_empty() {
            let found = self.health();
            health.into_iter().for_each(|reply| drop(reply.send(found.clone())));
        }
        closing
    }

    fn evaluate(&self, jobs: Vec<Job>) -> Batch {
        let state = self.state.read();
        let mut batch = Batch {
            writes: WriteBatch::new(state.revision),
            compacted: state.history.compacted(),
            commits: Vec::with_capacity(jobs.len()),
            compactions: Vec::new(),
            health: Vec::new(),
            closing: Vec::new(),
        };
        for job in jobs {
            match job {
                Job::Commit { txn, reply } => batch.commits.push((reply, batch.writes.add(&state, txn))),
                Job::Compact { revision, reply } => {
                    let checked = state.check(revision);
                    if checked.is_ok() {
                        batch.compacted = batch.compacted.max(revision);
                    }
                    batch.compactions.push((reply, checked));
                }
                Job::Health { reply } => batch.health.push(reply),
                Job::Close { reply } => batch.closing.push(reply),
            }
        }
        let excess = state.history.excess(&self.state.options, batch.writes.cost(), batch.writes.revision);
        batch.compacted = batch.compacted.max(excess);
        batch
    }

    /// Makes a batch durable. Where that fails, nothing of it is on disk afterwards, or the error says that it may be.
    fn persist(&mut self, batch: &Batch) -> Result<()> {
        let is_compacted = batch.compacted > self.state.read().history.compacted();
        if batch.writes.changes.is_empty() && !is_compacted {
            return Ok(());
        }
        if is_compacted {
            // First for readers and then on disk, so that no reader looks for a record that is removed.
            self.log.compact(&self.state.compact(batch.compacted));
        }
        let written = self.log.write(&batch.writes.changes, batch.writes.revision, batch.compacted);
        written.map_err(|error| self.fail(error))
    }

    /// Applies, acknowledges and publishes a batch that is durable.
    fn finish(&mut self, batch: Batch) -> Vec<Reply<()>> {
        self.state.apply(&batch.writes);
        for (reply, result) in batch.commits {
            reply.send(Ok(result)).ok();
        }
        for (reply, checked) in batch.compactions {
            reply.send(checked).ok();
        }
        self.state.publish(&batch.writes);
        batch.closing
    }

    /// Rolls a failed write back, and reopens fjall, so that reads go on; returns the error for the callers of the write.
    fn fail(&mut self, error: fjall::Error) -> Error {
        let path = self.log.directory.path.clone();
        let source: Arc<dyn std::error::Error + Send + Sync> = match error {
            fjall::Error::Poisoned => Arc::new(io::Error::other("a table could not be written: is the disk full?")),
            error => Arc::new(error),
        };
        let error = match self.log.roll_back() {
            Ok(()) => Error::not_written(&path, source.clone()),
            Err(_) => Error::Write { path: path.clone(), source: source.clone() },
        };
        let reopened = self.log.reopen().and_then(|()| self.log.directory.probe());
        self.note(reopened.and(Err(Error::not_written(&path, source))));
        error
    }

    /// After a failure, tries whether the disk can be written again, at most once in [`RETRY_AFTER`].
    fn recover(&mut self) -> Result<()> {
        let Some(failure) = &self.failure else { return Ok(()) };
        if Instant::now() >= failure.retry_at {
            let restored = self.log.directory.probe().and_then(|()| self.restore());
            self.note(restored);
        }
        match &self.failure {
            Some(failure) => Err(failure.error.clone()),
            None => Ok(()),
        }
    }

    fn restore(&self) -> Result<()> {
        if !self.log.engine.is_healthy() {
            self.log.roll_back()?;
            self.log.reopen()?;
        }
        self.log.rewrite()
    }

    fn note(&mut self, restored: Result<()>) {
        self.failure = restored.err().map(|error| {
            let path = self.log.directory.path.clone();
            let error = match error {
                error @ (Error::Full { .. } | Error::NotWritten { .. }) => error,
                error => Error::NotWritten { path, source: Arc::new(error) },
            };
            Failure { error, retry_at: Instant::now() + RETRY_AFTER }
        });
    }

    fn health(&mut self) -> Health {
        if self.failure.is_none() && !self.log.engine.is_healthy() {
            self.fail(fjall::Error::Poisoned);
        }
        match &self.failure {
            Some(failure) => Health::read_only(&failure.error),
            None => Health::Healthy,
        }
    }
}

impl Batch {
    fn refuse(self, error: &Error) -> Vec<Reply<()>> {
        for (reply, _) in self.commits {
            reply.send(Err(error.clone())).ok();
        }
        for (reply, _) in self.compactions {
            reply.send(Err(error.clone())).ok();
        }
        self.closing
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Expect, Op, Range, state::Lookup, txn::Txn};
    use futures::FutureExt;
    use std::{io::ErrorKind, path::Path};

    fn open(path: &Path) -> Writer {
        let options = Options { memory_bytes: 0, ..Options::default() };
        Writer::open(path.to_owned(), options).unwrap()
    }

    fn commit(writer: &mut Writer, value: &str) -> Result<u64> {
        let (reply, mut answer) = oneshot::channel();
        let txn = Txn::new(vec![Op::put("/a", value.to_owned(), Expect::Anything)])?;
        writer.serve(vec![Job::Commit { txn, reply }]);
        Ok(answer.try_recv().unwrap()?.answer()?.revision)
    }

    fn value(writer: &Writer) -> String {
        let Lookup::OnDisk(record, snapshot) = writer.state.lookup(b"/a") else {
            panic!("nothing is kept in memory")
        };
        let entry = writer.state.fetch(&record, &snapshot).unwrap().unwrap();
        String::from_utf8_lossy(&entry.value).into_owned()
    }

    /// Checks the health as soon as the disk is tried again.
    fn recovered(writer: &mut Writer) -> Health {
        assert!(matches!(health(writer), Health::ReadOnly { .. }));
        writer.failure.as_mut().unwrap().retry_at = Instant::now();
        health(writer)
    }

    fn health(writer: &mut Writer) -> Health {
        let (reply, mut health) = oneshot::channel();
        writer.serve(vec![Job::Health { reply }]);
        health.try_recv().unwrap()
    }

    #[test]
    fn a_failed_write_is_rolled_back_and_the_store_goes_on() {
        let directory = tempfile::tempdir().unwrap();
        let mut writer = open(directory.path());
        assert_eq!(commit(&mut writer, "one").unwrap(), 1);
        let query = writer.state.find(Range::default()).unwrap();
        for kind in [ErrorKind::StorageFull, ErrorKind::Other] {
            writer.log.injected = Some(kind);
            let text = commit(&mut writer, "lost").unwrap_err().to_string();
            assert!(text.contains("nothing was written"), "{text}");
            writer.log.injected = None;
            assert_eq!(value(&writer), "one");
            assert_eq!((recovered(&mut writer), value(&writer)), (Health::Healthy, "one".into()));
        }
        assert_eq!(writer.state.run(&query).unwrap().entries[0].value, "one");
        assert_eq!(commit(&mut writer, "two").unwrap(), 2);
        drop((writer, query));
        let writer = open(directory.path());
        assert_eq!((value(&writer), writer.state.revision()), ("two".into(), 2));
    }

    #[test]
    fn a_store_that_cannot_write_says_so_and_recovers_by_itself() {
        let directory = tempfile::tempdir().unwrap();
        let mut writer = open(directory.path());
        assert_eq!(commit(&mut writer, "one").unwrap(), 1);
        // A directory in the place of the probe file keeps it from being written.
        let probe = directory.path().join("store/probe");
        std::fs::create_dir(&probe).unwrap();
        writer.log.injected = Some(ErrorKind::Other);
        assert!(commit(&mut writer, "lost").is_err());
        writer.log.injected = None;
        assert!(matches!(commit(&mut writer, "refused"), Err(Error::NotWritten { .. })));
        assert!(matches!(recovered(&mut writer), Health::ReadOnly { .. }));
        assert_eq!(value(&writer), "one");
        std::fs::remove_dir(&probe).unwrap();
        assert_eq!(recovered(&mut writer), Health::Healthy);
        // fjall's background work fails, and the next health check notices it.
        writer.log.engine.suspend();
        assert_eq!(recovered(&mut writer), Health::Healthy);
        assert_eq!(commit(&mut writer, "two").unwrap(), 2);
    }

    #[test]
    fn watches_end_however_the_writer_ends() {
        let directory = tempfile::tempdir().unwrap();
        let writer = open(directory.path());
        let mut watch = writer.state.watch("/".into(), 0).unwrap();
        drop(End(writer.state.clone()));
        assert!(matches!(watch.next().now_or_never(), Some(Some(Err(Error::Closed)))));
    }

    /// Snapshots keep fjall from removing old versions, so none may outlive its reader.
    #[test]
    fn a_watch_holds_no_snapshot_once_it_has_read_the_history() {
        let directory = tempfile::tempdir().unwrap();
        let mut writer = open(directory.path());
        (1..=10).for_each(|revision| assert_eq!(commit(&mut writer, "one").unwrap(), revision));
        let engine = writer.log.engine.clone();
        let watches: Vec<_> = (0..50).map(|_| writer.state.watch("/".into(), 10).unwrap()).collect();
        assert_eq!(engine.open_snapshots(), 0);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut behind = writer.state.watch("/".into(), 3).unwrap();
        assert_eq!(engine.open_snapshots(), 1);
        for revision in 4..=10 {
            assert_eq!(runtime.block_on(behind.next()).unwrap().unwrap().revision, revision);
        }
        assert!(behind.next().now_or_never().is_none());
        assert_eq!((value(&writer), commit(&mut writer, "two").unwrap()), ("one".into(), 11));
        drop(watches);
        assert_eq!(engine.open_snapshots(), 0);
    }
}
