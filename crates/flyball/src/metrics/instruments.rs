//! Every metric that the framework itself keeps, by its name: the seeds' and controller-runtime's, and what that lacks.

use crate::metrics::SECONDS;
use crate::metrics::family::{Bounded, FloatGauge};
use prometheus_client::{
    metrics::{counter::Counter, histogram::Histogram},
    registry::Registry,
};

pub(super) type Counters<const N: usize> = Bounded<Counter, N>;
pub(super) type Gauges<const N: usize> = Bounded<FloatGauge, N>;
pub(super) type Histograms<const N: usize> = Bounded<Histogram, N>;

/// As controller-runtime's `workqueue_*_duration_seconds`: 10 ns to 1,000 s.
const QUEUE_SECONDS: [f64; 12] = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0, 1000.0];

/// The names below that an author's metric may not take, without `_total`.
#[rustfmt::skip]
pub(super) const NAMES: &[&str] = &[
    "controller_reconcile", "controller_reconcile_errors", "controller_reconcile_duration_seconds",
    "controller_runtime_reconcile", "controller_runtime_reconcile_errors",
    "controller_runtime_terminal_reconcile_errors", "controller_runtime_reconcile_panics",
    "controller_runtime_reconcile_timeouts", "controller_runtime_reconcile_time_seconds",
    "controller_runtime_max_concurrent_reconciles", "controller_runtime_active_workers",
    "workqueue_depth", "workqueue_adds", "workqueue_retries", "workqueue_queue_duration_seconds",
    "workqueue_work_duration_seconds", "workqueue_unfinished_work_seconds",
    "workqueue_longest_running_processor_seconds",
    "rest_client_requests", "rest_client_request_duration_seconds", "flyball_api_requests",
    "leader_election_status", "leader_election_master_status", "leader_transitions",
    "event",
    "resource_count", "resource_phase_count",
    "flyball_cache_objects", "flyball_cache_bytes", "flyball_cache_synced", "flyball_watch_restarts",
    "flyball_event_to_reconcile_seconds", "flyball_writes_fenced", "flyball_drift_corrected",
    "flyball_task_runs", "flyball_mapper_errors", "flyball_cache_unindexed_objects",
    "controller_runtime_webhook_requests", "controller_runtime_webhook_requests_in_flight",
    "controller_runtime_webhook_latency_seconds", "controller_runtime_webhook_panics",
    "process_cpu_seconds", "process_resident_memory_bytes", "process_virtual_memory_bytes",
    "process_start_time_seconds", "process_open_fds", "process_max_fds",
];

/// The framework's metrics.
pub(super) struct Instruments {
    pub(super) reconciles: Counters<2>,
    pub(super) errors: Counters<1>,
    pub(super) durations: Histograms<1>,
    pub(super) runtime_reconciles: Counters<2>,
    pub(super) runtime_errors: Counters<1>,
    pub(super) runtime_terminal_errors: Counters<1>,
    pub(super) runtime_panics: Counters<1>,
    pub(super) runtime_timeouts: Counters<1>,
    pub(super) runtime_durations: Histograms<1>,
    pub(super) max_concurrent: Gauges<1>,
    pub(super) active_workers: Gauges<1>,
    pub(super) event_lag: Histograms<1>,
    pub(super) mapper_errors: Counters<2>,
    pub(super) cache_unindexed: Gauges<1>,
    pub(super) depth: Gauges<2>,
    pub(super) adds: Counters<2>,
    pub(super) retries: Counters<2>,
    pub(super) queue_durations: Histograms<2>,
    pub(super) work_durations: Histograms<2>,
    pub(super) unfinished: Gauges<2>,
    pub(super) longest_running: Gauges<2>,
    pub(super) rest_requests: Counters<3>,
    pub(super) rest_durations: Histograms<2>,
    pub(super) api_requests: Counters<3>,
    pub(super) fenced: Counters<1>,
    pub(super) drift: Counters<1>,
    pub(super) task_runs: Counters<2>,
    pub(super) leader_status: Gauges<1>,
    pub(super) master_status: Gauges<1>,
    pub(super) leader_transitions: Counters<1>,
    pub(super) events: Counters<2>,
    pub(super) resources: Gauges<2>,
    pub(super) phases: Gauges<2>,
    pub(super) cache_objects: Gauges<1>,
    pub(super) cache_bytes: Gauges<1>,
    pub(super) cache_synced: Gauges<1>,
    pub(super) watch_restarts: Counters<2>,
    pub(super) webhook_requests: Counters<2>,
    pub(super) webhook_in_flight: Gauges<1>,
    pub(super) webhook_latency: Histograms<1>,
    pub(super) webhook_panics: Counters<1>,
}

impl Instruments {
    // tidy: table
    #[rustfmt::skip]
    pub(super) fn register(to: &mut Registry) -> Instruments {
        let queue = ["name", "controller"];
        Instruments {
            reconciles: counter(to, "controller_reconcile", "Reconciles by result", ["controller", "result"]),
            errors: counter(to, "controller_reconcile_errors", "Reconciles that failed", ["controller"]),
            durations: seconds(to, "controller_reconcile_duration_seconds", "How long reconciles take", ["controller"]),
            runtime_reconciles: counter(to, "controller_runtime_reconcile", "Reconciles by result", ["controller", "result"]),
            runtime_errors: counter(to, "controller_runtime_reconcile_errors", "Reconciles that failed", ["controller"]),
            runtime_terminal_errors: counter(to, "controller_runtime_terminal_reconcile_errors", "Reconciles that failed and are not retried", ["controller"]),
            runtime_panics: counter(to, "controller_runtime_reconcile_panics", "Reconciles that panicked", ["controller"]),
            runtime_timeouts: counter(to, "controller_runtime_reconcile_timeouts", "Reconciles that took too long", ["controller"]),
            runtime_durations: seconds(to, "controller_runtime_reconcile_time_seconds", "How long reconciles take", ["controller"]),
            max_concurrent: gauge(to, "controller_runtime_max_concurrent_reconciles", "How many reconciles may run at the same time", ["controller"]),
            active_workers: gauge(to, "controller_runtime_active_workers", "How many reconciles run now", ["controller"]),
            event_lag: seconds(to, "flyball_event_to_reconcile_seconds", "From the notification of a change to the reconcile that it causes", ["controller"]),
            depth: gauge(to, "workqueue_depth", "Objects that are ready and wait for a worker", queue),
            adds: counter(to, "workqueue_adds", "Objects added to the queue", queue),
            retries: counter(to, "workqueue_retries", "Objects added to the queue for later", queue),
            queue_durations: queued(to, "workqueue_queue_duration_seconds", "How long objects wait for a worker", queue),
            work_durations: queued(to, "workqueue_work_duration_seconds", "How long workers keep an object", queue),
            unfinished: gauge(to, "workqueue_unfinished_work_seconds", "Total seconds of in-progress reconciles", queue),
            longest_running: gauge(to, "workqueue_longest_running_processor_seconds", "Seconds that the oldest in-progress reconcile has run", queue),
            rest_requests: counter(to, "rest_client_requests", "Requests to the API server", ["code", "method", "host"]),
            rest_durations: seconds(to, "rest_client_request_duration_seconds", "How long the API server takes to begin its answer", ["verb", "host"]),
            api_requests: counter(to, "flyball_api_requests", "Requests to the API server by what was asked of which resource", ["verb", "resource", "code"]),
            fenced: counter(to, "flyball_writes_fenced", "Writes that were not sent because this process does not lead", ["name"]),
            drift: counter(to, "flyball_drift_corrected", "Children that others had changed and that were put back", ["kind"]),
            mapper_errors: counter(to, "flyball_mapper_errors", "Objects whose mapper failed, which triggered no reconcile", ["controller", "kind"]),
            cache_unindexed: gauge(to, "flyball_cache_unindexed_objects", "Objects in the cache that an index lacks because they do not decode", ["kind"]),
            task_runs: counter(to, "flyball_task_runs", "Runs of tasks that ended, by result", ["task", "result"]),
            leader_status: gauge(to, "leader_election_status", "1 if this process leads, 0 if it follows", ["name"]),
            master_status: gauge(to, "leader_election_master_status", "1 if this process leads, 0 if it follows", ["name"]),
            leader_transitions: counter(to, "leader_transitions", "New leaders that were seen", ["name"]),
            events: counter(to, "event", "Events published", ["type", "severity"]),
            resources: gauge(to, "resource_count", "Objects of the kinds that are reconciled", ["kind", "namespace"]),
            phases: gauge(to, "resource_phase_count", "Objects of the kinds that are reconciled, by status.phase", ["kind", "phase"]),
            cache_objects: gauge(to, "flyball_cache_objects", "Objects in the cache", ["kind"]),
            cache_bytes: gauge(to, "flyball_cache_bytes", "Bytes that the objects in the cache take", ["kind"]),
            cache_synced: gauge(to, "flyball_cache_synced", "1 if the kind is listed and watched, 0 if that fails", ["kind"]),
            watch_restarts: counter(to, "flyball_watch_restarts", "Watches that began anew, by why the last one ended", ["kind", "reason"]),
            webhook_requests: counter(to, "controller_runtime_webhook_requests", "Reviews by the status of the response", ["webhook", "code"]),
            webhook_in_flight: gauge(to, "controller_runtime_webhook_requests_in_flight", "Reviews that are answered now", ["webhook"]),
            webhook_latency: seconds(to, "controller_runtime_webhook_latency_seconds", "How long answers to reviews take", ["webhook"]),
            webhook_panics: counter(to, "controller_runtime_webhook_panics", "Reviews whose function panicked", ["webhook"]),
        }
    }
}

fn counter<const N: usize>(to: &mut Registry, name: &str, help: &str, labels: [&'static str; N]) -> Counters<N> {
    let counters = Bounded::counter(labels);
    to.register(name, help, counters.family());
    counters
}

fn gauge<const N: usize>(to: &mut Registry, name: &str, help: &str, labels: [&'static str; N]) -> Gauges<N> {
    let gauges = Bounded::gauge(labels);
    to.register(name, help, gauges.family());
    gauges
}

fn seconds<const N: usize>(to: &mut Registry, name: &str, help: &str, labels: [&'static str; N]) -> Histograms<N> {
    let histograms = Bounded::histogram(labels, &SECONDS);
    to.register(name, help, histograms.family());
    histograms
}

fn queued<const N: usize>(to: &mut Registry, name: &str, help: &str, labels: [&'static str; N]) -> Histograms<N> {
    let histograms = Bounded::histogram(labels, &QUEUE_SECONDS);
    to.register(name, help, histograms.family());
    histograms
}
