//! The one thread that writes: it takes whatever waits and makes it durable with one flush.

use super::{
    batch::{Batch, Reply},
    desk::Desk,
    directory::Directory,
    finisher::Finisher,
    log::Log,
    patience::Patience,
};
use crate::{Options, Result, core::Core};
use std::{path::PathBuf, sync::Arc, time::Instant};

/// Opens a data directory, says so, and writes until it is closed or nobody is left to ask.
pub(crate) fn run(path: PathBuf, options: Options, opened: Reply<Arc<Desk>>) {
    let started = Writer::open(path, options).and_then(|writer| {
        let finisher = Finisher::start(writer.desk.clone());
        Ok((finisher.map_err(|source| writer.directory.failed(source))?, writer))
    });
    let (finisher, mut writer) = match started {
        Ok(started) => started,
        Err(error) => return drop(opened.send(Err(error))),
    };
    let desk = writer.desk.clone();
    let _end = End(desk.clone());
    if opened.send(Ok(desk.clone())).is_err() {
        drop(desk.close());
    }
    let mut patience = Patience::new(Instant::now());
    while let Some(batch) = desk.take(&mut patience) {
        let (count, started) = (batch.len(), Instant::now());
        if let Some(batch) = writer.persist(batch) {
            let took = started.elapsed();
            finisher.finish(batch);
            patience.renew(count, desk.count(), took, Instant::now());
        }
        // Not before: this keeps nobody waiting.
        writer.make_room();
    }
    finisher.end();
    writer.close();
}

/// Tells those who wait and those who watch that the store is closed, however the writer came to its end.
struct End(Arc<Desk>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.core.close();
        self.0.end();
    }
}

pub(crate) struct Writer {
    pub desk: Arc<Desk>,
    pub log: Log,
    failure: Option<Arc<fjall::Error>>,
    directory: Directory,
}

impl Writer {
    pub fn open(path: PathBuf, options: Options) -> Result<Writer> {
        let directory = Directory::open(&path)?;
        let (opened, state) = Log::open(&directory, options.memory_bytes)?;
        let core = Arc::new(Core::new(options, state));
        let log = Log::start(opened, core.clone(), &directory)?;
        let desk = Arc::new(Desk::new(core));
        Ok(Writer { desk, log, failure: None, directory })
    }

    /// Ends the watches and leaves the directory to others.
    pub fn close(self) {
        self.desk.core.close();
        let contents = self.log.close();
        if self.failure.is_none() {
            // Without the seal the directory is opened as after a crash.
            self.directory.seal(&contents).ok();
        }
    }

    /// Makes room for the next batch.
    pub fn make_room(&mut self) {
        if self.failure.is_none() {
            let made = self.log.make_room();
            self.note(made);
        }
    }

    fn note(&mut self, written: fjall::Result<()>) {
        if let Err(failure) = written {
            let failure = Arc::new(failure);
            self.desk.fail(&self.directory.path, &failure);
            self.failure = Some(failure);
        }
    }

    /// Makes a batch durable and returns it, or refuses it; after a failure nothing is known of what is on disk.
    pub fn persist(&mut self, mut batch: Batch) -> Option<Batch> {
        let state = self.desk.core.state();
        let compacted = state.history.compacted();
        let revision = batch.plan.revision().unwrap_or(state.revision);
        let excess = state.history.excess(&self.desk.core.options, batch.plan.cost(), revision);
        drop(state);
        let cut = batch.cut.max(excess).max(compacted);
        if self.failure.is_none() && (cut > compacted || !batch.plan.changes.is_empty()) {
            if cut > compacted {
                // First for readers and then on disk, so that nobody looks for what is gone.
                batch.gone = self.desk.core.cut(cut);
            }
            let written = self.log.write(&batch.plan, cut, &batch.gone);
            self.note(written);
        }
        match &self.failure {
            None => Some(batch),
            Some(failure) => {
                batch.refuse(&self.directory.path, failure);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Error, Expect, Health, Op, disk::damage};
    use futures::FutureExt;

    #[test]
    fn after_a_failed_write_nothing_is_written_and_reads_go_on() {
        let directory = tempfile::tempdir().unwrap();
        let mut writer = damage::open(directory.path());
        damage::put(&mut writer, "/a", "one");
        assert_eq!(writer.desk.health(), Health::Healthy);
        writer.note(Err(fjall::Error::Poisoned));
        let commit = writer.desk.commit(vec![Op::put("/a", "two", Expect::Anything)]).unwrap();
        let batch = writer.desk.take(&mut Patience::new(Instant::now())).unwrap();
        assert!(writer.persist(batch).is_none());
        let text = commit.answer().now_or_never().unwrap().unwrap_err().to_string();
        let expected = "write to the data directory DIR: nothing is written until the store is opened again";
        assert_eq!(text.replace(&directory.path().display().to_string(), "DIR"), expected);
        assert!(matches!(writer.desk.health(), Health::ReadOnly { reason } if reason.contains("Poisoned")));
        assert_eq!(writer.desk.core.get(b"/a").unwrap().unwrap().value, "one");
        writer.close();
        assert_eq!(damage::open(directory.path()).desk.core.revision(), 1);
    }

    #[test]
    fn whoever_waits_or_watches_is_told_also_where_the_writer_dies() {
        let directory = tempfile::tempdir().unwrap();
        let writer = damage::open(directory.path());
        let commit = writer.desk.commit(vec![Op::put("/a", "one", Expect::Anything)]).unwrap();
        let mut watch = writer.desk.core.watch("/".into(), 0).unwrap();
        drop(End(writer.desk.clone()));
        assert!(matches!(commit.answer().now_or_never(), Some(Err(Error::Closed))));
        assert!(matches!(watch.next().now_or_never(), Some(Some(Err(Error::Closed)))));
    }
}
