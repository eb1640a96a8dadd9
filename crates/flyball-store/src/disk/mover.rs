//! The thread that moves what the journal holds into tables, one file at a time, and makes the files ready to be used again.

use super::{
    journal::{LONG, Spare},
    pending::Pending,
    summary::Summary,
    tables::Tables,
    values::Engine,
};
use crate::core::Core;
use std::{
    io,
    path::PathBuf,
    sync::{
        Arc,
        mpsc::{Receiver, Sender, TryRecvError, channel},
    },
    thread::{self, JoinHandle},
};

/// So many files are ready to be written, or hold what is not in tables yet, beside the one that is written.
const SPARES: u64 = 2;

pub(crate) struct Mover {
    work: Option<Sender<Work>>,
    spares: Receiver<fjall::Result<Spare>>,
    thread: Option<JoinHandle<()>>,
    has_spares: bool,
}

enum Work {
    /// Makes the first files.
    Prepare,
    /// Moves what a file holds, and what it leads to.
    Move(Arc<Pending>, Spare, Summary),
    #[cfg(test)]
    Answer(Sender<()>),
}

/// What the thread has.
struct Hands {
    tables: Tables,
    core: Arc<Core>,
    engine: Arc<Engine>,
    journal: PathBuf,
    next: u64,
}

impl Mover {
    /// Starts the thread for a store whose journal is in this directory and has used all numbers before `next`.
    pub fn start(
        tables: Tables,
        core: Arc<Core>,
        engine: Arc<Engine>,
        journal: PathBuf,
        next: u64,
    ) -> io::Result<Mover> {
        let (work, todo) = channel();
        let (ready, spares) = channel();
        let mut hands = Hands { tables, core, engine, journal, next };
        let run = move || {
            for work in todo {
                let done = hands.work(work, &ready);
                if let Err(error) = done {
                    // Everything is in the journal. Nothing more is moved; the writer is told when it wants the next file.
                    drop(ready.send(Err(error)));
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("flyball-tables".to_owned()).spawn(run)?;
        Ok(Mover {
            work: Some(work),
            spares,
            thread: Some(thread),
            has_spares: false,
        })
    }

    /// Has the first files made ready.
    pub fn prepare(&mut self) {
        if !std::mem::replace(&mut self.has_spares, true) {
            self.send(Work::Prepare);
        }
    }

    /// The next file, if it is ready.
    pub fn try_spare(&self) -> Option<fjall::Result<Spare>> {
        match self.spares.try_recv() {
            Ok(spare) => Some(spare),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Err(fjall::Error::Poisoned)),
        }
    }

    /// The next file, as soon as it is ready.
    pub fn spare(&mut self) -> fjall::Result<Spare> {
        self.prepare();
        self.spares.recv().unwrap_or(Err(fjall::Error::Poisoned))
    }

    /// Has moved what a file holds that is not written any more.
    pub fn take(&self, pending: Arc<Pending>, file: Spare, after: Summary) {
        self.send(Work::Move(pending, file, after));
    }

    /// Returns when everything is moved.
    #[cfg(test)]
    pub fn wait(&self) {
        let (done, answer) = channel();
        self.send(Work::Answer(done));
        answer.recv().ok();
    }

    fn send(&self, work: Work) {
        // After a failure nobody listens; the writer hears of it with the next file.
        self.work.as_ref().map(|sender| sender.send(work).ok());
    }
}

impl Drop for Mover {
    fn drop(&mut self) {
        drop(self.work.take());
        self.thread.take().map(JoinHandle::join);
    }
}

impl Hands {
    fn work(&mut self, work: Work, ready: &Sender<fjall::Result<Spare>>) -> fjall::Result<()> {
        match work {
            Work::Prepare => {
                for _ in 0..SPARES {
                    let number = self.number();
                    let spare = Spare::make(&self.journal, number, LONG)?;
                    drop(ready.send(Ok(spare)));
                }
            }
            Work::Move(pending, file, after) => {
                self.tables.take_in(&pending, after)?;
                self.engine.forget(&pending);
                drop(pending);
                // What comes next stays in memory until it is here.
                self.core.trim(LONG as usize);
                let spare = file.again(self.number())?;
                drop(ready.send(Ok(spare)));
            }
            #[cfg(test)]
            Work::Answer(done) => drop(done.send(())),
        }
        Ok(())
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }
}
