//! The state of a running operator: queued objects and why, failures, watches.

use crate::engine::queue::{Priority, QueuePosition};
use crate::engine::runtime::{ControllerHandle, Runtime};
use crate::engine::work::MapperFailure;
use crate::{Cache, Key, Running, Why};
use std::sync::Arc;
use tokio::time::Instant;

/// One controller's queue at this moment.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct QueueState {
    /// The controller's name.
    pub controller: String,
    /// The kind that it reconciles.
    pub kind: String,
    /// How many objects could be reconciled now.
    pub ready: usize,
    /// How many objects wait for their time.
    pub waiting: usize,
    /// How many objects are being reconciled.
    pub running: usize,
    /// The objects themselves, as many as were asked for: the running ones, then in about the order they will run.
    pub objects: Vec<Queued>,
    /// Objects whose last reconcile failed, as many as were asked for, in order.
    pub failing: Vec<Failing>,
    /// The last failure of a mapper of [`Controller::watches`](crate::Controller::watches).
    pub mapper_failure: Option<MapperFailure>,
}

/// One object in a queue.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Queued {
    /// Which object.
    pub key: Key,
    /// Why it is there.
    pub why: Why,
    /// What it waits for.
    pub position: QueuePosition,
    /// Whether it is behind what happens now: found by a list or a resync.
    pub background: bool,
}

/// An object whose last reconcile failed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Failing {
    /// Which object.
    pub key: Key,
    /// Failures in a row.
    pub failures: u32,
    /// What the last reconcile said; of the first thousand objects that fail at the same time.
    pub error: Option<Arc<str>>,
    /// When it failed last.
    pub at: Instant,
    /// Whether it is not retried before something changes.
    pub gave_up: bool,
}

impl Running {
    /// The queue of every controller, with at most `most` objects of each.
    pub fn queues(&self, most: usize) -> Vec<QueueState> {
        self.operator.queues(most)
    }

    /// What the operator has cached, and how its watches fare.
    pub fn cache(&self) -> &Cache {
        &self.operator.cache
    }

    /// Asks a controller for a reconcile of one object, or of all, and says of how many; `by` is the reason that is logged.
    pub fn reconcile(&self, controller: &str, key: Option<&Key>, by: &str) -> usize {
        self.operator.reconcile(controller, key, by)
    }
}

impl Runtime {
    pub(crate) fn queues(&self, most: usize) -> Vec<QueueState> {
        self.handles().iter().map(|handle| state(handle, most)).collect()
    }

    pub(crate) fn reconcile(&self, controller: &str, key: Option<&Key>, by: &str) -> usize {
        let handles = self.handles().into_iter().filter(|handle| handle.name == controller);
        handles.map(|handle| ask(&handle, key, by)).sum()
    }
}

fn ask(handle: &ControllerHandle, key: Option<&Key>, by: &str) -> usize {
    let objects = match key {
        Some(key) => handle.mirror.get(key).into_iter().collect(),
        None => handle.mirror.list(None),
    };
    for object in &objects {
        handle.queue.add(object.key.clone(), Priority::Live, Why::asked(by));
    }
    objects.len()
}

fn state(handle: &ControllerHandle, most: usize) -> QueueState {
    let (ready, waiting, running) = handle.queue.counts();
    let objects = handle.queue.contents(most).into_iter().map(|(key, position, ask)| Queued {
        key,
        position,
        why: ask.why,
        background: ask.priority == Priority::Background,
    });
    let failing = handle.queue.failures(most).into_iter().map(|(key, failure)| Failing {
        key,
        failures: failure.count,
        error: failure.error,
        at: failure.at,
        gave_up: failure.gave_up,
    });
    QueueState {
        controller: handle.name.clone(),
        kind: handle.mirror.kind().name().to_owned(),
        ready,
        waiting,
        running,
        objects: objects.collect(),
        failing: failing.collect(),
        mapper_failure: handle.queue.mapper_failure(),
    }
}
