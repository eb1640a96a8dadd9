//! The thread beside the writer: it shows what is on disk to everybody while the writer is at the next batch. Where nobody
//! waits for the writer, or a batch is small, the writer does that itself: to wake another thread takes longer.

use super::{awake::Awake, batch::Batch, desk::Desk};
use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc::{Receiver, SyncSender, TryRecvError, sync_channel},
    },
    thread::{self, JoinHandle},
};

/// So few are shown to everybody sooner by the writer itself; those who wait for it then go together with those who come
/// again.
const FEW: usize = 32;

pub(crate) struct Finisher {
    desk: Arc<Desk>,
    batches: SyncSender<Batch>,
    /// How many batches the thread has not finished.
    unfinished: Arc<AtomicUsize>,
    thread: JoinHandle<()>,
}

impl Finisher {
    pub fn start(desk: Arc<Desk>) -> io::Result<Finisher> {
        let (batches, written) = sync_channel(1);
        let unfinished = Arc::new(AtomicUsize::new(0));
        let run = {
            let (desk, unfinished) = (desk.clone(), unfinished.clone());
            move || {
                let mut awake = Awake::new();
                while let Some(batch) = next(&written, &mut awake) {
                    batch.finish(&desk);
                    unfinished.fetch_sub(1, Ordering::Release);
                }
            }
        };
        let thread = thread::Builder::new().name("flyball-answers".to_owned()).spawn(run)?;
        Ok(Finisher { desk, batches, unfinished, thread })
    }

    /// Shows a batch to everybody, after all before it, now or soon.
    pub fn finish(&self, batch: Batch) {
        let is_short = batch.len() <= FEW || self.desk.count() == 0;
        if is_short && self.unfinished.load(Ordering::Acquire) == 0 {
            return batch.finish(&self.desk);
        }
        self.unfinished.fetch_add(1, Ordering::Relaxed);
        self.batches.send(batch).expect("the other thread ends after this one");
    }

    /// Returns when everything is shown.
    pub fn end(self) {
        drop(self.batches);
        self.thread.join().expect("it does not panic");
    }
}

/// The next batch; `None` when there will be none.
fn next(written: &Receiver<Batch>, awake: &mut Awake) -> Option<Batch> {
    let mut found = Err(TryRecvError::Empty);
    awake.look(|| {
        found = written.try_recv();
        !matches!(found, Err(TryRecvError::Empty))
    });
    match found {
        Err(TryRecvError::Empty) => written.recv().ok(),
        found => found.ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Expect, Op, Options,
        core::{Core, State},
        disk::patience::Patience,
    };
    use futures::FutureExt;
    use std::time::Instant;

    #[test]
    fn batches_are_shown_in_their_order_whoever_shows_them() {
        let core = Core::new(Options::default(), State::default());
        let desk = Arc::new(Desk::new(Arc::new(core)));
        let finisher = Finisher::start(desk.clone()).unwrap();
        let mut patience = Patience::new(Instant::now());
        let put = |n: u64| desk.commit(vec![Op::put(format!("/{n}"), "v", Expect::Absent)]).unwrap();
        let mut answers = vec![put(1)];
        for n in 2..=3_000 {
            let batch = desk.take(&mut patience).unwrap();
            // Sometimes somebody waits when it is finished, and sometimes nobody does.
            if n % 3 == 0 {
                finisher.finish(batch);
                answers.push(put(n));
            } else {
                answers.push(put(n));
                finisher.finish(batch);
            }
        }
        finisher.finish(desk.take(&mut patience).unwrap());
        finisher.end();
        let revisions = answers
            .into_iter()
            .map(|commit| commit.answer().now_or_never().unwrap().unwrap().revision);
        assert!(revisions.eq(1..=3_000));
        assert_eq!(desk.core.revision(), 3_000);
    }
}
