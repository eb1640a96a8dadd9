//! Where commits are decided and wait for the writer. Whoever commits decides at once, on top of what others have decided
//! and the disk does not have yet, so that deciding costs the writer no time.

use super::{
    batch::{Batch, Reply},
    patience::Patience,
};
use crate::{Committed, Error, Health, Op, Result, ahead::Ahead, core::Core, wish::Wish};
use std::{
    collections::VecDeque,
    path::Path,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};
use tokio::sync::oneshot::{self, Receiver};

/// One flush for so many at most, so that the first does not wait for all.
const MOST: usize = 1_024;

/// What a store knows, and what is about to change it.
pub(crate) struct Desk {
    pub core: Arc<Core>,
    waiting: Mutex<Waiting>,
    arrived: Condvar,
    /// How many wait, for a look without the lock.
    count: AtomicUsize,
    /// The first failed write, after which nothing is written.
    failure: OnceLock<Error>,
}

struct Waiting {
    batches: VecDeque<Batch>,
    count: usize,
    /// How many were in the batch that was taken last.
    usual: usize,
    ahead: Ahead,
    /// The writer sleeps until so many are there; 0 while it works.
    wake_at: usize,
    stage: Stage,
}

/// A commit that is decided.
pub(crate) struct Commit {
    decided: Result<Committed>,
    on_disk: Receiver<Result<()>>,
}

impl Commit {
    /// The answer, when the disk has the commit and what it was decided upon.
    pub async fn answer(self) -> Result<Committed> {
        match self.on_disk.await {
            Ok(Ok(())) => self.decided,
            Ok(Err(error)) => Err(error),
            Err(_) => Err(Error::Closed),
        }
    }
}

enum Stage {
    Open,
    /// Nothing more is taken; these are told when the store is closed.
    Closing(Vec<Reply<()>>),
    Closed,
}

impl Desk {
    pub fn new(core: Arc<Core>) -> Desk {
        let waiting = Waiting {
            batches: VecDeque::new(),
            count: 0,
            usual: 0,
            ahead: Ahead::at(core.revision()),
            wake_at: 0,
            stage: Stage::Open,
        };
        Desk {
            core,
            waiting: Mutex::new(waiting),
            arrived: Condvar::new(),
            count: AtomicUsize::new(0),
            failure: OnceLock::new(),
        }
    }

    /// Notes that nothing is written any more.
    pub fn fail(&self, path: &Path, failure: &Arc<fjall::Error>) {
        self.failure.get_or_init(|| Error::write(path, failure.clone()));
    }

    pub fn health(&self) -> Health {
        match (self.failure.get(), &self.waiting().stage) {
            (_, Stage::Closing(_) | Stage::Closed) => Health::unavailable(&Error::Closed),
            (Some(failure), _) => Health::read_only(failure),
            (None, Stage::Open) => Health::Healthy,
        }
    }

    /// Decides a commit.
    pub fn commit(&self, ops: Vec<Op>) -> Result<Commit> {
        let wish = Wish::prepare(&self.core, ops)?;
        let (reply, on_disk) = oneshot::channel();
        let outcome = self.leave(|core, ahead, batch| {
            let outcome = ahead.add(&mut batch.plan, || core.state(), wish);
            batch.commits.push((reply, ahead.revision));
            outcome
        })?;
        Ok(Commit { decided: outcome.answer(), on_disk })
    }

    /// Asks for the history to be cut.
    pub fn compact(&self, revision: u64) -> Result<Receiver<Result<()>>> {
        let (reply, answer) = oneshot::channel();
        self.leave(|core, _, batch| {
            let checked = core.state().check(revision);
            batch.cut = if checked.is_ok() {
                batch.cut.max(revision)
            } else {
                batch.cut
            };
            batch.compactions.push((reply, checked));
        })?;
        Ok(answer)
    }

    fn leave<T>(&self, add: impl FnOnce(&Core, &mut Ahead, &mut Batch) -> T) -> Result<T> {
        let mut guard = self.waiting();
        let waiting = &mut *guard;
        if !matches!(waiting.stage, Stage::Open) {
            return Err(Error::Closed);
        }
        if waiting.batches.back().is_none_or(|batch| batch.len() >= MOST) {
            waiting.batches.push_back(Batch::of(waiting.usual));
        }
        let batch = waiting.batches.back_mut().expect("one was just added");
        let added = add(&self.core, &mut waiting.ahead, batch);
        waiting.count += 1;
        self.count.store(waiting.count, Ordering::Relaxed);
        batch.forgotten = waiting.ahead.renew(self.core.revision()).or(batch.forgotten.take());
        // Waking the writer costs more than writing does, so it is done once, by the last one to come.
        let is_last = waiting.count == waiting.wake_at;
        if is_last {
            waiting.wake_at = 0;
        }
        drop(guard);
        if is_last {
            self.arrived.notify_one();
        }
        Ok(added)
    }

    /// Takes no more; says when everything that waits is done and the directory is free.
    pub fn close(&self) -> Option<Receiver<Result<()>>> {
        let (reply, answer) = oneshot::channel();
        let mut waiting = self.waiting();
        match &mut waiting.stage {
            stage @ Stage::Open => *stage = Stage::Closing(vec![reply]),
            Stage::Closing(replies) => replies.push(reply),
            Stage::Closed => return None,
        }
        self.arrived.notify_one();
        Some(answer)
    }

    /// Takes what waits, as soon as everybody is there who is expected; `None` when nobody will come any more.
    pub fn take(&self, patience: &mut Patience) -> Option<Batch> {
        let expected = patience.expected();
        // Who writes alone is answered no sooner for it.
        if expected > 1 {
            patience.awake.look(|| self.count() >= expected);
        }
        let mut waiting = self.waiting();
        while waiting.count < patience.expected() && matches!(waiting.stage, Stage::Open) {
            let left = patience.left(Instant::now());
            if left.is_zero() && waiting.count > 0 {
                break;
            }
            waiting = if left.is_zero() {
                waiting.wake_at = 1;
                self.arrived.wait(waiting).unwrap_or_else(PoisonError::into_inner)
            } else {
                waiting.wake_at = patience.expected();
                self.arrived.wait_timeout(waiting, left).unwrap_or_else(PoisonError::into_inner).0
            };
        }
        waiting.wake_at = 0;
        patience.end(waiting.count, Instant::now());
        let batch = waiting.batches.pop_front()?;
        waiting.count -= batch.len();
        waiting.usual = batch.len();
        self.count.store(waiting.count, Ordering::Relaxed);
        Some(batch)
    }

    /// How many wait for the writer.
    pub fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Takes nothing more, leaves those who wait without an answer, and tells that the store is closed.
    pub fn end(&self) {
        let mut waiting = self.waiting();
        drop(std::mem::take(&mut waiting.batches));
        if let Stage::Closing(replies) = std::mem::replace(&mut waiting.stage, Stage::Closed) {
            replies.into_iter().for_each(|reply| drop(reply.send(Ok(()))));
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Expect, Options, core::State};
    use futures::FutureExt;
    use std::time::Duration;

    /// The answer to a commit, if it is there.
    fn try_answer(commit: &mut Option<Commit>) -> Option<Result<Committed>> {
        let mut waiting = commit.take()?;
        match waiting.on_disk.try_recv() {
            Ok(answer) => Some(answer.and(waiting.decided)),
            Err(_) => {
                *commit = Some(waiting);
                None
            }
        }
    }

    fn desk() -> (Desk, Patience) {
        let core = Core::new(Options::default(), State::default());
        (Desk::new(Arc::new(core)), Patience::new(Instant::now()))
    }

    fn put(key: &str, expect: Expect) -> Vec<Op> {
        vec![Op::put(key.to_owned(), "v", expect)]
    }

    #[test]
    fn what_waits_is_taken_together_but_never_too_much() {
        let (desk, mut patience) = desk();
        (0..MOST + 2).for_each(|n| drop(desk.commit(put(&format!("/{n}"), Expect::Absent)).unwrap()));
        assert_eq!(desk.take(&mut patience).unwrap().len(), MOST);
        assert_eq!((desk.count(), desk.take(&mut patience).unwrap().len()), (2, 2));
    }

    #[test]
    fn who_does_not_come_again_is_not_waited_for_forever() {
        let (desk, mut patience) = desk();
        patience.renew(3, 0, Duration::from_secs(3_600), Instant::now());
        let _answer = desk.commit(put("/a", Expect::Absent)).unwrap();
        assert_eq!(desk.take(&mut patience).unwrap().len(), 1);
    }

    #[test]
    fn commits_are_decided_upon_what_waits_and_on_what_is_written_but_not_seen_yet() {
        let (desk, mut patience) = desk();
        let mut first = Some(desk.commit(put("/a", Expect::Absent)).unwrap());
        let batch = desk.take(&mut patience).unwrap();
        let mut second = Some(desk.commit(put("/a", Expect::Revision(1))).unwrap());
        let mut third = Some(desk.commit(put("/a", Expect::Absent)).unwrap());
        assert!(try_answer(&mut first).is_none() && desk.core.get(b"/a").unwrap().is_none());
        batch.finish(&desk);
        assert_eq!(try_answer(&mut first).unwrap().unwrap().revision, 1);
        assert_eq!(desk.core.get(b"/a").unwrap().unwrap().revision, 1);
        assert!(try_answer(&mut third).is_none(), "a refusal because of what is not on disk waits for it");
        let mut fourth = Some(desk.commit(put("/a", Expect::Revision(2))).unwrap());
        desk.take(&mut patience).unwrap().finish(&desk);
        assert_eq!(try_answer(&mut second).unwrap().unwrap().revision, 2);
        assert_eq!(try_answer(&mut fourth).unwrap().unwrap().revision, 3);
        assert!(
            matches!(try_answer(&mut third).unwrap(), Err(Error::Conflict { current: Some(found), .. }) if found.revision == 2)
        );
    }

    #[test]
    fn the_end_of_one_side_is_told_to_the_other() {
        let (desk, mut patience) = desk();
        let waiting = desk.commit(put("/a", Expect::Absent)).unwrap();
        let (mut closed, mut again) = (desk.close().unwrap(), desk.close().unwrap());
        assert!(matches!(desk.commit(put("/b", Expect::Absent)), Err(Error::Closed)));
        assert!(desk.take(&mut patience).is_some() && desk.take(&mut patience).is_none());
        assert!(closed.try_recv().is_err());
        desk.end();
        assert!(closed.try_recv().is_ok() && again.try_recv().is_ok() && desk.close().is_none());
        assert!(matches!(waiting.answer().now_or_never(), Some(Err(Error::Closed))));
    }
}
