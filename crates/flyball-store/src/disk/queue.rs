//! What waits for the writer. Whoever was just answered is likely to ask again at once, so the writer gives those who may
//! come a moment before it flushes; who writes alone waits for nobody.

use super::writer::Job;
use std::{
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

/// One flush for so many jobs at most, so that the first does not wait for all.
const MOST: usize = 1_024;

/// With so many jobs a flush is worth it, whoever else may come.
const ENOUGH: usize = 64;

/// Nobody is waited for longer than this, however slow the disk is.
const LONGEST: Duration = Duration::from_millis(1);

/// After waiting in vain the writer takes so often what there is.
const RESIGNED: u32 = 8;

/// So long the writer stays awake without work.
const SPIN: Duration = Duration::from_micros(100);

/// The end that asks. The writer ends when it is dropped.
pub(crate) struct Sender(Arc<Queue>);

/// The end that takes. What still waits when it is dropped is dropped too, and nothing more is taken.
pub(crate) struct Receiver {
    queue: Arc<Queue>,
    /// How many are waited for, and until when.
    expected: usize,
    until: Instant,
    /// Whether anybody is waited for.
    is_patient: bool,
    /// So often nobody is, because the last time it was in vain.
    resigned: u32,
}

#[derive(Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    arrived: Condvar,
    /// How many jobs wait, for a look without the lock.
    count: AtomicUsize,
}

#[derive(Default)]
struct Waiting {
    jobs: Vec<Job>,
    /// The writer sleeps until so many are there; 0 while it works.
    wake_at: usize,
    is_ended: bool,
}

pub(crate) fn queue() -> (Sender, Receiver) {
    let queue = Arc::<Queue>::default();
    let receiver = Receiver {
        queue: queue.clone(),
        expected: 1,
        until: Instant::now(),
        is_patient: false,
        resigned: 0,
    };
    (Sender(queue), receiver)
}

impl Queue {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sender {
    /// Leaves a job; gives it back where nobody takes it any more.
    pub fn send(&self, job: Job) -> Result<(), Job> {
        let mut waiting = self.0.waiting();
        if waiting.is_ended {
            return Err(job);
        }
        waiting.jobs.push(job);
        self.0.count.store(waiting.jobs.len(), Ordering::Relaxed);
        // Waking the writer costs more than writing does, so it is done once, by the last one to come.
        if waiting.jobs.len() == waiting.wake_at {
            waiting.wake_at = 0;
            self.0.arrived.notify_one();
        }
        Ok(())
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.0.waiting().is_ended = true;
        self.0.arrived.notify_one();
    }
}

impl Receiver {
    /// Takes what waits, as soon as everybody is there who is expected; `None` when nobody is left to ask.
    pub fn take(&mut self) -> Option<Vec<Job>> {
        self.spin();
        let mut is_vain = false;
        let mut waiting = self.queue.waiting();
        while waiting.jobs.len() < self.expected && !waiting.is_ended {
            let patience = self.until.saturating_duration_since(Instant::now());
            is_vain |= patience.is_zero();
            if patience.is_zero() && !waiting.jobs.is_empty() {
                break;
            }
            let arrived = &self.queue.arrived;
            waiting = if patience.is_zero() {
                waiting.wake_at = 1;
                arrived.wait(waiting).unwrap_or_else(PoisonError::into_inner)
            } else {
                waiting.wake_at = self.expected;
                arrived.wait_timeout(waiting, patience).unwrap_or_else(PoisonError::into_inner).0
            };
        }
        waiting.wake_at = 0;
        if is_vain && self.is_patient {
            self.resigned = RESIGNED;
        }
        if waiting.jobs.is_empty() {
            return None;
        }
        let taken = waiting.jobs.len().min(MOST);
        let rest = waiting.jobs.split_off(taken);
        self.queue.count.store(rest.len(), Ordering::Relaxed);
        Some(std::mem::replace(&mut waiting.jobs, rest))
    }

    /// Stays awake for a moment: to fall asleep and be woken takes longer than most take to ask again.
    fn spin(&self) {
        let until = self.until.min(Instant::now() + SPIN);
        while self.queue.count.load(Ordering::Relaxed) < self.expected && Instant::now() < until {
            std::thread::yield_now();
        }
    }

    /// Expects those who were answered to come again beside those who wait already, for no longer than their flush took.
    /// Where they did not, they are not expected for a while.
    pub fn expect(&mut self, answered: usize, flushing: Duration) {
        (self.expected, self.until) = (1, Instant::now());
        self.is_patient = self.resigned == 0;
        if self.is_patient {
            let waiting = self.queue.waiting().jobs.len();
            self.expected = (waiting + answered).clamp(1, ENOUGH.max(waiting));
            self.until += flushing.min(LONGEST);
        } else {
            self.resigned -= 1;
        }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let mut waiting = self.queue.waiting();
        waiting.is_ended = true;
        drop(std::mem::take(&mut waiting.jobs));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job() -> Job {
        Job::Compact { revision: 1, reply: tokio::sync::oneshot::channel().0 }
    }

    #[test]
    fn what_waits_is_taken_together_but_never_too_much() {
        let (sender, mut receiver) = queue();
        (0..MOST + 2).for_each(|_| assert!(sender.send(job()).is_ok()));
        assert_eq!(receiver.take().unwrap().len(), MOST);
        assert_eq!(receiver.take().unwrap().len(), 2);
    }

    #[test]
    fn who_does_not_come_again_is_not_waited_for_forever() {
        let (sender, mut receiver) = queue();
        receiver.expect(3, Duration::from_secs(3_600));
        assert!(sender.send(job()).is_ok());
        assert_eq!(receiver.take().unwrap().len(), 1);
    }

    #[test]
    fn the_end_of_one_side_is_told_to_the_other() {
        let (sender, mut receiver) = queue();
        assert!(sender.send(job()).is_ok());
        drop(sender);
        assert!(receiver.take().is_some() && receiver.take().is_none());
        let (sender, receiver) = queue();
        drop(receiver);
        assert!(sender.send(job()).is_err());
    }
}
