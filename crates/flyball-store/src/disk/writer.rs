//! The one thread that writes: it takes whatever waits, makes it durable with one flush, answers, and publishes.

use super::{directory::Directory, log::Log, queue::Receiver};
use crate::{Committed, Error, Op, Options, Result};
use crate::{core::Core, history::Change, plan::Plan};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};
use tokio::sync::oneshot;

/// What the writer is asked to do.
pub(crate) enum Job {
    Commit { ops: Vec<Op>, reply: Reply<Committed> },
    Compact { revision: u64, reply: Reply<()> },
    Close { reply: Reply<()> },
}

pub(crate) type Reply<T> = oneshot::Sender<Result<T>>;

/// Opens a data directory, says so, and writes until it is closed or nobody is left to ask.
pub(crate) fn run(path: PathBuf, options: Options, opened: Reply<Arc<Core>>, mut queue: Receiver) {
    let mut writer = match Writer::open(path, options) {
        Ok(writer) => writer,
        Err(error) => return drop(opened.send(Err(error))),
    };
    if opened.send(Ok(writer.core.clone())).is_err() {
        return;
    }
    let closing = loop {
        let Some(jobs) = queue.take() else { break None };
        let (count, started) = (jobs.len(), Instant::now());
        if let Some(reply) = writer.write(jobs.into_iter()) {
            break Some(reply);
        }
        queue.expect(count, started.elapsed());
    };
    writer.close();
    if let Some(reply) = closing {
        reply.send(Ok(())).ok();
    }
}

pub(crate) struct Writer {
    pub core: Arc<Core>,
    pub log: Log,
    failure: Option<Arc<fjall::Error>>,
    path: PathBuf,
    directory: Directory,
}

/// Jobs that are decided and wait for the disk.
struct Batch {
    plan: Plan,
    cut: u64,
    commits: Vec<(Reply<Committed>, Result<Committed>)>,
    compactions: Vec<(Reply<()>, Result<()>)>,
    closing: Option<Reply<()>>,
}

impl Writer {
    pub fn open(path: PathBuf, options: Options) -> Result<Writer> {
        let directory = Directory::open(&path)?;
        let (log, state) = Log::open(&directory, options.memory_bytes)?;
        let core = Arc::new(Core::new(options, state));
        Ok(Writer { core, log, failure: None, path, directory })
    }

    /// Ends the watches and leaves the directory to others.
    pub fn close(self) {
        self.core.close();
        let contents = self.log.close();
        if self.failure.is_none() {
            // Without the seal the directory is opened as after a crash.
            self.directory.seal(&contents).ok();
        }
    }

    /// Does some jobs; returns whom to tell when the store is closed, if that was asked for.
    pub fn write(&mut self, jobs: impl Iterator<Item = Job>) -> Option<Reply<()>> {
        let batch = self.decide(jobs);
        let gone = self.persist(&batch);
        if let Some(failure) = &self.failure {
            return batch.refuse(&self.path, failure);
        }
        self.core.apply(&batch.plan);
        let (plan, closing) = batch.answer();
        self.core.publish(&plan);
        // Not before: this keeps nobody waiting.
        self.log.make_room(&plan);
        drop((plan, gone));
        closing
    }

    fn decide(&self, jobs: impl Iterator<Item = Job>) -> Batch {
        let state = self.core.state();
        let mut cut = state.history.compacted();
        let mut plan = Plan::new(state.revision);
        let (mut commits, mut compactions, mut closing) = (Vec::new(), Vec::new(), None);
        for job in jobs {
            match job {
                Job::Commit { ops, reply } => commits.push((reply, plan.add(&state, ops))),
                Job::Compact { revision, reply } => {
                    let checked = state.check(revision);
                    cut = if checked.is_ok() { cut.max(revision) } else { cut };
                    compactions.push((reply, checked));
                }
                Job::Close { reply } => closing = Some(reply),
            }
        }
        let cut = cut.max(state.history.excess(&self.core.options, plan.cost(), plan.revision));
        Batch { plan, cut, commits, compactions, closing }
    }

    /// Makes a batch durable, or remembers why not; after a failure nothing is known of what is on disk. Returns the history
    /// that ends with it.
    fn persist(&mut self, batch: &Batch) -> Vec<Change> {
        let is_idle = batch.plan.changes.is_empty() && batch.cut == self.core.state().history.compacted();
        if self.failure.is_some() || is_idle {
            return Vec::new();
        }
        // First for readers and then on disk, so that nobody looks for what is gone.
        let gone = self.core.cut(batch.cut);
        self.failure = self.log.write(&batch.plan, batch.cut, &gone).err().map(Arc::new);
        gone
    }
}

impl Batch {
    // Whoever does not wait for an answer any more is not told.
    fn answer(self) -> (Plan, Option<Reply<()>>) {
        for (reply, committed) in self.commits {
            reply.send(committed).ok();
        }
        for (reply, checked) in self.compactions {
            reply.send(checked).ok();
        }
        (self.plan, self.closing)
    }

    fn refuse(self, path: &Path, failure: &Arc<fjall::Error>) -> Option<Reply<()>> {
        let error = || Error::write(path, failure.clone());
        for (reply, _) in self.commits {
            reply.send(Err(error())).ok();
        }
        for (reply, _) in self.compactions {
            reply.send(Err(error())).ok();
        }
        self.closing
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Expect, disk::damage};

    #[test]
    fn after_a_failed_write_nothing_is_written_and_reads_go_on() {
        let directory = tempfile::tempdir().unwrap();
        let mut writer = damage::open(directory.path());
        damage::put(&mut writer, "/a", "one");
        writer.failure = Some(Arc::new(fjall::Error::Poisoned));
        let (reply, mut answer) = oneshot::channel();
        writer.write([Job::Commit { ops: vec![Op::put("/a", "two", Expect::Anything)], reply }].into_iter());
        let text = answer.try_recv().unwrap().unwrap_err().to_string();
        let expected = "write to the data directory DIR: nothing is written until the store is opened again";
        assert_eq!(text.replace(&directory.path().display().to_string(), "DIR"), expected);
        assert_eq!(writer.core.get(b"/a").unwrap().unwrap().value, "one");
        writer.close();
        assert_eq!(damage::open(directory.path()).core.revision(), 1);
    }
}
