//! One controller's metrics, found once, so that a reconcile costs a few additions and no search.

use crate::metrics::instruments::Instruments;
use prometheus_client::metrics::{counter::Counter, histogram::Histogram};
use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::time::Instant;

use crate::metrics::family::FloatGauge;
use crate::metrics::instruments::Counters;

/// Handles to a controller's metrics.
#[derive(Clone)]
pub(crate) struct ControllerMetrics {
    handles: Arc<Handles>,
}

struct Handles {
    name: Box<str>,
    mapper_errors: Counters<2>,
    results: [(Counter, Counter); RESULTS.len()],
    errors: (Counter, Counter),
    terminal: Counter,
    panics: Counter,
    timeouts: Counter,
    durations: (Histogram, Histogram, Histogram),
    lag: Histogram,
    max_concurrent: FloatGauge,
    active: FloatGauge,
    adds: Counter,
    retries: Counter,
    waits: Histogram,
    unfinished: FloatGauge,
    longest: FloatGauge,
    /// Since when each reconcile of now runs.
    running: Mutex<HashMap<u64, Instant>>,
    runs: AtomicU64,
}

/// How a reconcile ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Success,
    RequeueAfter,
    Error,
    /// Failed, and is not retried.
    Permanent,
}

impl Ended {
    /// As `controller_reconcile_total` has it.
    pub(crate) fn result(self) -> &'static str {
        match self {
            Ended::Success => RESULTS[0],
            Ended::RequeueAfter => RESULTS[1],
            Ended::Error | Ended::Permanent => RESULTS[2],
        }
    }
}

/// controller-runtime's values of `result`; `requeue` is one that it knows and Flyball does not.
const RESULTS: [&str; 3] = ["success", "requeue_after", "error"];

/// A reconcile under way. It counts as running until it ends or is dropped.
pub(crate) struct Run {
    handles: Arc<Handles>,
    id: u64,
    started: Instant,
}

impl ControllerMetrics {
    pub(super) fn new(instruments: &Instruments, name: &str) -> ControllerMetrics {
        let queue = [name, name];
        let result = |result| {
            let labels = [name, result];
            (instruments.reconciles.with(labels), instruments.runtime_reconciles.with(labels))
        };
        let handles = Handles {
            name: name.into(),
            mapper_errors: instruments.mapper_errors.clone(),
            results: RESULTS.map(result),
            errors: (instruments.errors.with([name]), instruments.runtime_errors.with([name])),
            terminal: instruments.runtime_terminal_errors.with([name]),
            panics: instruments.runtime_panics.with([name]),
            timeouts: instruments.runtime_timeouts.with([name]),
            durations: (
                instruments.durations.with([name]),
                instruments.runtime_durations.with([name]),
                instruments.work_durations.with(queue),
            ),
            lag: instruments.event_lag.with([name]),
            max_concurrent: instruments.max_concurrent.with([name]),
            active: instruments.active_workers.with([name]),
            adds: instruments.adds.with(queue),
            retries: instruments.retries.with(queue),
            waits: instruments.queue_durations.with(queue),
            unfinished: instruments.unfinished.with(queue),
            longest: instruments.longest_running.with(queue),
            running: Mutex::default(),
            runs: AtomicU64::new(0),
        };
        ControllerMetrics { handles: Arc::new(handles) }
    }

    /// How many reconciles may run at the same time.
    pub(crate) fn concurrency(&self, reconciles: usize) {
        self.handles.max_concurrent.set(reconciles as f64);
    }

    /// An object is added to the queue.
    pub(crate) fn added(&self) {
        self.handles.adds.inc();
    }

    /// An object is put back into the queue for later.
    pub(crate) fn retried(&self) {
        self.handles.retries.inc();
    }

    /// A worker takes an object that was ready for `waited`.
    pub(crate) fn taken(&self, waited: Duration) {
        self.handles.waits.observe(waited.as_secs_f64());
    }

    /// A reconcile begins, `lag` after the change that caused it was heard of.
    pub(crate) fn began(&self, lag: Option<Duration>) -> Run {
        if let Some(lag) = lag {
            self.handles.lag.observe(lag.as_secs_f64());
        }
        let (id, started) = (self.handles.runs.fetch_add(1, Ordering::Relaxed), Instant::now());
        let running = {
            let mut running = self.handles.running();
            running.insert(id, started);
            running.len()
        };
        self.handles.active.set(running as f64);
        Run { handles: self.handles.clone(), id, started }
    }

    /// A reconcile panicked; it also ended in an error.
    pub(crate) fn panicked(&self) {
        self.handles.panics.inc();
    }

    /// A reconcile took too long; it also ended in an error.
    pub(crate) fn timed_out(&self) {
        self.handles.timeouts.inc();
    }

    /// A mapper failed on an object of this kind. Answers with the controller's name.
    pub(crate) fn mapper_failed(&self, kind: &str) -> &str {
        let Handles { name, mapper_errors, .. } = &*self.handles;
        mapper_errors.with([name, kind]).inc();
        name
    }

    /// Says how long the reconciles of now have run.
    pub(crate) fn sample(&self) {
        let now = Instant::now();
        let ages: Vec<_> = self.handles.running().values().map(|started| now - *started).collect();
        self.handles.unfinished.set(ages.iter().sum::<Duration>().as_secs_f64());
        self.handles.longest.set(ages.iter().max().copied().unwrap_or_default().as_secs_f64());
    }
}

impl Run {
    /// The reconcile came to an end of its own.
    pub(crate) fn ended(self, how: Ended) {
        let result = match how {
            Ended::Success => 0,
            Ended::RequeueAfter => 1,
            Ended::Error | Ended::Permanent => 2,
        };
        let handles = &self.handles;
        let (seeds, runtime) = &handles.results[result];
        seeds.inc();
        runtime.inc();
        if matches!(how, Ended::Error | Ended::Permanent) {
            handles.errors.0.inc();
            handles.errors.1.inc();
        }
        if how == Ended::Permanent {
            handles.terminal.inc();
        }
        let seconds = self.started.elapsed().as_secs_f64();
        let (seeds, runtime, work) = &handles.durations;
        seeds.observe(seconds);
        runtime.observe(seconds);
        work.observe(seconds);
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let running = {
            let mut running = self.handles.running();
            running.remove(&self.id);
            running.len()
        };
        self.handles.active.set(running as f64);
    }
}

impl Handles {
    fn running(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Instant>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for ControllerMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ControllerMetrics")
    }
}
