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

#[cfg(test)]
mod tests {
    use crate::{
        Expect, Op,
        disk::{damage, patience::Patience, writer::Writer},
    };
    use futures::FutureExt;
    use std::{fs, path::Path, time::Instant};

    /// Writes until it is refused, or long after something was to be moved; says what was acknowledged, and the refusal.
    fn write(writer: &mut Writer) -> (u64, Option<String>) {
        for n in 0..500 {
            let op = Op::put(format!("/{n}"), "v".repeat(10_000), Expect::Absent);
            let commit = writer.desk.commit(vec![op]).unwrap();
            let batch = writer.desk.take(&mut Patience::new(Instant::now())).unwrap();
            writer.persist(batch).into_iter().for_each(|batch| batch.finish(&writer.desk));
            if let Err(error) = commit.answer().now_or_never().unwrap() {
                return (n, Some(error.to_string()));
            }
            writer.make_room();
        }
        (500, None)
    }

    /// Breaks something for a store that is open, and heals it before the store is opened again.
    fn check(break_it: impl FnOnce(&Path), heal: impl FnOnce(&Path)) {
        let directory = tempfile::tempdir().unwrap();
        let mut writer = damage::open(directory.path());
        break_it(&directory.path().join("store"));
        let (acknowledged, refusal) = write(&mut writer);
        let refusal = refusal.unwrap_or_else(|| panic!("nothing was refused"));
        assert!(refusal.starts_with("write to the data directory "), "{refusal}");
        let there = |writer: &Writer| {
            let found = |n: &u64| writer.desk.core.get(format!("/{n}").as_bytes()).unwrap();
            (0..500).take_while(|n| found(n).is_some_and(|entry| entry.value.len() == 10_000)).count() as u64
        };
        assert_eq!(there(&writer), acknowledged, "reads go on");
        writer.close();
        heal(&directory.path().join("store"));
        let mut writer = damage::open(directory.path());
        assert_eq!((there(&writer), writer.desk.core.revision()), (acknowledged, acknowledged));
        damage::put(&mut writer, "/after", "v");
    }

    #[test]
    fn what_cannot_be_moved_stops_the_writer_and_loses_nothing() {
        let [from, to] = ["keyspaces/1/tables", "keyspaces/1/elsewhere"];
        let swap = |from: &'static str, to: &'static str| {
            move |store: &Path| fs::rename(store.join(from), store.join(to)).unwrap()
        };
        check(swap(from, to), swap(to, from));
    }

    #[test]
    fn a_file_that_cannot_be_made_stops_the_writer_and_loses_nothing() {
        for name in ["journal/1.jnl", "journal/2.jnl", "journal/4.jnl", "journal/5.jnl"] {
            let block = |store: &Path| fs::create_dir(store.join(name)).unwrap();
            check(block, |store| fs::remove_dir(store.join(name)).unwrap());
        }
    }
}
