//! A queue that a controller can wait on: the order is the queue's, the time is tokio's.

use crate::{Key, metrics::ControllerMetrics, queue::Queue};
use std::{
    sync::{Mutex, MutexGuard},
    time::Duration,
};
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

/// What a controller has to do. Any task adds to it; its runner takes from it.
#[derive(Debug, Default)]
pub(crate) struct WorkQueue {
    queue: Mutex<Queue<Key>>,
    changed: Notify,
    metrics: Option<ControllerMetrics>,
}

impl WorkQueue {
    pub(crate) fn measured_by(metrics: ControllerMetrics) -> WorkQueue {
        WorkQueue { metrics: Some(metrics), ..WorkQueue::default() }
    }

    /// Asks for a run as soon as possible.
    pub(crate) fn add(&self, key: Key) {
        self.add_after(key, Duration::ZERO);
    }

    /// Asks for a run after `delay`.
    pub(crate) fn add_after(&self, key: Key, delay: Duration) {
        if let Some(metrics) = &self.metrics {
            if delay.is_zero() {
                metrics.added()
            } else {
                metrics.retried()
            }
        }
        let now = Instant::now();
        let at = now.checked_add(delay).unwrap_or_else(|| now + Duration::from_secs(60 * 60 * 24 * 365));
        self.lock().add(key, at, now);
        self.changed.notify_one();
    }

    /// Waits for the next object. Nothing is lost when the wait is cancelled.
    pub(crate) async fn next(&self) -> Key {
        loop {
            let next_at = {
                let mut queue = self.lock();
                let now = Instant::now();
                if let Some((key, since)) = queue.pop(now) {
                    if let Some(metrics) = &self.metrics {
                        metrics.taken(now - since);
                    }
                    return key;
                }
                queue.next_at()
            };
            match next_at {
                Some(at) => tokio::select! {
                    () = sleep_until(at) => {}
                    () = self.changed.notified() => {}
                },
                None => self.changed.notified().await,
            }
        }
    }

    /// How many objects are ready and wait for a worker.
    pub(crate) fn depth(&self) -> usize {
        self.lock().depth()
    }

    /// Gives back an object whose run has ended.
    pub(crate) fn done(&self, key: &Key) {
        self.lock().done(key, Instant::now());
        self.changed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Queue<Key>> {
        self.queue.lock().expect("the queue does not panic")
    }
}
