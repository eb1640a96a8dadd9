//! A queue that a controller can wait on: the order is the queue's, the time is tokio's. It also knows who keeps failing.

use crate::engine::queue::{Ask, Job, Priority, Queue, QueuePosition};
use crate::metrics::ControllerMetrics;
use crate::{Error, Key, Why};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

/// Of this many failing objects the last error is kept; of others only how often they failed.
const MAX_KEPT_ERRORS: usize = 1_000;
/// As much of an error as is kept.
const MAX_ERROR_BYTES: usize = 1_024;

/// What a controller has to do. Any task adds to it; its runner takes from it.
#[derive(Debug, Default)]
pub(crate) struct WorkQueue {
    inner: Mutex<Inner>,
    changed: Notify,
    metrics: Option<ControllerMetrics>,
}

#[derive(Debug, Default)]
struct Inner {
    queue: Queue<Key>,
    limit: Option<Limit>,
    failures: HashMap<Key, Failure>,
    mapper_failure: Option<MapperFailure>,
}

/// The last time that a mapper failed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MapperFailure {
    /// The kind of the object that was mapped.
    pub kind: String,
    /// Which object.
    pub key: Key,
    /// Why its mapper failed.
    pub error: Arc<str>,
    /// When.
    pub at: Instant,
}

/// Objects whose last reconcile failed, for as long as that is so.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    /// In a row.
    pub(crate) count: u32,
    pub(crate) error: Option<Arc<str>>,
    pub(crate) at: Instant,
    /// Whether it is not retried before something changes.
    pub(crate) gave_up: bool,
}

/// So many runs may begin in a second, and so many at once after a pause.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rate {
    pub(crate) every: Duration,
    pub(crate) burst: u32,
}

/// A leaky bucket (ITU-T I.371, "virtual scheduling"): `full` is when it will be full again.
#[derive(Debug)]
struct Limit {
    rate: Rate,
    full: Option<Instant>,
}

impl Limit {
    /// When the next run may begin.
    fn next(&self, now: Instant) -> Instant {
        let slack = self.rate.every * self.rate.burst.saturating_sub(1);
        self.full.and_then(|full| full.checked_sub(slack)).map_or(now, |next| next.max(now))
    }

    fn take(&mut self, now: Instant) {
        self.full = Some(self.full.map_or(now, |full| full.max(now)) + self.rate.every);
    }
}

impl WorkQueue {
    pub(crate) fn new(rate: Option<Rate>, metrics: ControllerMetrics) -> WorkQueue {
        WorkQueue { metrics: Some(metrics), ..WorkQueue::limited(rate) }
    }

    fn limited(rate: Option<Rate>) -> WorkQueue {
        let limit = rate.map(|rate| Limit { rate, full: None });
        let inner = Mutex::new(Inner { limit, ..Inner::default() });
        WorkQueue { inner, ..WorkQueue::default() }
    }

    /// Asks for a run as soon as possible.
    pub(crate) fn add(&self, key: Key, priority: Priority, why: Why) {
        self.add_after(key, Duration::ZERO, priority, why);
    }

    /// Asks for a run after `delay`.
    pub(crate) fn add_after(&self, key: Key, delay: Duration, priority: Priority, why: Why) {
        if let Some(metrics) = &self.metrics {
            if delay.is_zero() {
                metrics.added();
            } else {
                metrics.retried();
            }
        }
        let now = Instant::now();
        let at = now.checked_add(delay).unwrap_or_else(|| now + Duration::from_secs(60 * 60 * 24 * 365));
        if self.lock().queue.add(key, Ask { at, priority, why }, now) {
            self.changed.notify_one();
        }
    }

    /// Waits for the next object. Nothing is lost when the wait is cancelled.
    pub(crate) async fn next(self: &Arc<WorkQueue>) -> WorkItem {
        loop {
            let wake = match self.take() {
                Ok(job) => return self.item(job),
                Err(wake) => wake,
            };
            match wake {
                Some(at) => tokio::select! {
                    () = sleep_until(at) => {}
                    () = self.changed.notified() => {}
                },
                None => self.changed.notified().await,
            }
        }
    }

    /// The next object, if one is ready and may run now.
    pub(crate) fn try_next(self: &Arc<WorkQueue>) -> Option<WorkItem> {
        self.take().ok().map(|job| self.item(job))
    }

    fn item(self: &Arc<WorkQueue>, job: Job<Key>) -> WorkItem {
        WorkItem { queue: self.clone(), job, ended: false }
    }

    /// The next object, or when to look again.
    fn take(&self) -> Result<Job<Key>, Option<Instant>> {
        let now = Instant::now();
        let mut inner = self.lock();
        if let Some(limit) = &inner.limit {
            let next = limit.next(now);
            if next > now {
                return Err(Some(next));
            }
        }
        let Some(job) = inner.queue.pop(now) else {
            return Err(inner.queue.next_at());
        };
        if let Some(limit) = &mut inner.limit {
            limit.take(now);
        }
        drop(inner);
        if let Some(metrics) = &self.metrics {
            metrics.taken(now.saturating_duration_since(job.due));
        }
        Ok(job)
    }

    /// Takes back an object whose run has ended.
    fn done(&self, key: &Key) {
        let again = self.lock().queue.done(key, Instant::now());
        if again {
            self.changed.notify_one();
        }
    }

    /// Counts a failure, and says how many there were in a row.
    pub(crate) fn failed(&self, key: &Key, error: &str) -> u32 {
        let mut inner = self.lock();
        let keep = inner.failures.len() < MAX_KEPT_ERRORS || inner.failures.contains_key(key);
        let error = keep.then(|| Arc::from(shortened(error)));
        let failure = inner.failures.entry(key.clone()).or_insert_with(|| Failure {
            count: 0,
            error: None,
            at: Instant::now(),
            gave_up: false,
        });
        let count = if failure.gave_up {
            1
        } else {
            failure.count.saturating_add(1)
        };
        *failure = Failure { count, error, at: Instant::now(), gave_up: false };
        count
    }

    /// A mapper has failed: what it would have named is not reconciled.
    pub(crate) fn mapper_failed(&self, kind: &str, key: &Key, error: &Error) {
        let error = error.to_string();
        let controller = self.metrics.as_ref().map(|metrics| metrics.mapper_failed(kind));
        tracing::error!(controller, kind, %key, error, "the mapper failed and triggers no reconcile");
        self.lock().mapper_failure = Some(MapperFailure {
            kind: kind.into(),
            key: key.clone(),
            error: shortened(&error).into(),
            at: Instant::now(),
        });
    }

    /// The last failure of a mapper.
    pub(crate) fn mapper_failure(&self) -> Option<MapperFailure> {
        self.lock().mapper_failure.clone()
    }

    /// No retry follows the last failure.
    pub(crate) fn gave_up(&self, key: &Key) {
        if let Some(failure) = self.lock().failures.get_mut(key) {
            failure.gave_up = true;
        }
    }

    /// Forgets the failures of an object that succeeded, or is gone.
    pub(crate) fn succeeded(&self, key: &Key) {
        let mut inner = self.lock();
        if inner.failures.remove(key).is_some() && inner.failures.is_empty() {
            inner.failures.shrink_to_fit();
        }
    }

    /// Whether the last run of an object failed.
    pub(crate) fn is_failing(&self, key: &Key) -> bool {
        self.lock().failures.contains_key(key)
    }

    /// Whether a running object was added meanwhile.
    pub(crate) fn is_added_while_running(&self, key: &Key) -> bool {
        self.lock().queue.is_added_while_running(key)
    }

    /// Drops what was added for an object while it ran.
    pub(crate) fn forget_added_while_running(&self, key: &Key) {
        self.lock().queue.forget_added_while_running(key);
    }

    /// How many objects are ready and wait for a worker.
    pub(crate) fn depth(&self) -> usize {
        self.counts().0
    }

    /// How many objects are ready, waiting for their time, and running.
    pub(crate) fn counts(&self) -> (usize, usize, usize) {
        self.lock().queue.counts()
    }

    /// The first `most` objects in the queue.
    pub(crate) fn contents(&self, most: usize) -> Vec<(Key, QueuePosition, Ask)> {
        let inner = self.lock();
        let contents = inner.queue.contents().take(most);
        contents.map(|(key, position, ask)| (key.clone(), position, ask.clone())).collect()
    }

    /// The first `most` objects whose last reconcile failed, in order.
    pub(crate) fn failures(&self, most: usize) -> Vec<(Key, Failure)> {
        let inner = self.lock();
        let mut failures: Vec<_> = inner.failures.iter().collect();
        failures.sort_by_key(|(key, _)| *key);
        let failures = failures.into_iter().take(most);
        failures.map(|(key, failure)| (key.clone(), failure.clone())).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("the queue does not panic")
    }
}

/// An object that was handed out. Unless its run ended, it is added again when this is dropped: after a panic or an abort, and even if
/// that never began.
#[must_use = "an object that is dropped runs again"]
pub(crate) struct WorkItem {
    queue: Arc<WorkQueue>,
    pub(crate) job: Job<Key>,
    ended: bool,
}

impl WorkItem {
    /// Its run has ended.
    pub(crate) fn ended(mut self) {
        self.ended = true;
    }
}

impl Drop for WorkItem {
    fn drop(&mut self) {
        if !self.ended {
            self.queue.add(self.job.key.clone(), self.job.priority, self.job.why.clone());
        }
        self.queue.done(&self.job.key);
    }
}

fn shortened(error: &str) -> &str {
    let mut end = error.len().min(MAX_ERROR_BYTES);
    while !error.is_char_boundary(end) {
        end -= 1;
    }
    &error[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn so_many_begin_at_once_and_then_so_many_a_second() {
        let rate = Rate { every: Duration::from_millis(100), burst: 3 };
        let (queue, start) = (Arc::new(WorkQueue::limited(Some(rate))), Instant::now());
        for name in ["a", "b", "c", "d", "e"] {
            queue.add(name.into(), Priority::Live, Why::Changed);
        }
        let mut waited = Vec::new();
        for _ in 0..5 {
            queue.next().await.ended();
            waited.push(start.elapsed().as_millis());
        }
        assert_eq!(waited, [0, 0, 0, 100, 200]);
        tokio::time::sleep(Duration::from_secs(60)).await;
        let (start, more) = (Instant::now(), ["f", "g", "h", "i"]);
        for name in more {
            queue.add(name.into(), Priority::Live, Why::Changed);
        }
        for _ in more {
            queue.next().await.ended();
        }
        assert_eq!(start.elapsed().as_millis(), 100);
    }

    #[tokio::test(start_paused = true)]
    async fn an_object_whose_worker_is_aborted_before_it_begins_is_handed_out_again() {
        let queue = Arc::new(WorkQueue::default());
        queue.add("ada".into(), Priority::Live, Why::Changed);
        let item = queue.next().await;
        let mut workers = tokio::task::JoinSet::new();
        workers.spawn(async move { item.ended() });
        workers.shutdown().await;
        assert_eq!(queue.counts(), (1, 0, 0));
        let again = queue.try_next().unwrap();
        assert_eq!((again.job.key.name(), &again.job.why), ("ada", &Why::Changed));
        again.ended();
        assert_eq!(queue.counts(), (0, 0, 0));
    }

    #[test]
    fn failures_are_counted_in_a_row_and_their_errors_are_bounded() {
        let queue = WorkQueue::default();
        for index in 0..2 * MAX_KEPT_ERRORS {
            queue.failed(&Key::cluster(index.to_string()), &"é".repeat(MAX_ERROR_BYTES));
        }
        let failures = queue.failures(usize::MAX);
        let kept: Vec<_> = failures.iter().filter_map(|(_, failure)| failure.error.as_ref()).collect();
        assert_eq!((failures.len(), kept.len()), (2 * MAX_KEPT_ERRORS, MAX_KEPT_ERRORS));
        assert!(kept.iter().all(|error| error.len() <= MAX_ERROR_BYTES));

        let ada = Key::cluster("ada");
        assert_eq!((queue.failed(&ada, "a"), queue.failed(&ada, "b")), (1, 2));
        queue.gave_up(&ada);
        assert_eq!(queue.failed(&ada, "after a change"), 1);
        queue.succeeded(&ada);
        assert_eq!(queue.failed(&ada, "c"), 1);
    }
}
