//! What an operator counts and measures, under the names that dashboards know, and how an author adds more.

mod api;
mod controller;
mod family;
mod instruments;
mod process;
mod sample;
mod text;
mod webhook;

pub use family::{Counter, Gauge, Histogram, Timer};
pub use text::Format;

pub(crate) use api::MeasuredClient;
pub(crate) use controller::{ControllerMetrics, Ended};

use crate::engine::runtime::Runtime;
use instruments::Instruments;
use prometheus_client::registry::Registry;
use std::{
    any::Any,
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, Weak},
};

/// Buckets of durations, 5 ms to 10 s.
pub const SECONDS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// The metrics of an operator. Clones are handles to the same ones.
///
/// A reconcile gets them from [`Context::metrics`](crate::Context::metrics); what is needed before the operator starts is
/// made first and handed to [`Operator::metrics`](crate::Operator::metrics).
///
/// Label values are bounded: once a label of a metric has had 200 values, all further ones are counted as `other`.
#[derive(Clone, Default)]
pub struct Metrics {
    inside: Arc<Inside>,
}

struct Inside {
    registry: Mutex<Registry>,
    instruments: Instruments,
    /// What authors added, by name.
    added: Mutex<HashMap<String, Box<dyn Any + Send + Sync>>>,
    /// The operators that are sampled at a scrape.
    operators: Mutex<Vec<Weak<Runtime>>>,
}

impl Default for Inside {
    fn default() -> Inside {
        let mut registry = Registry::default();
        let instruments = Instruments::register(&mut registry);
        registry.register_collector(Box::new(process::Process));
        Inside {
            registry: Mutex::new(registry),
            instruments,
            added: Mutex::default(),
            operators: Mutex::default(),
        }
    }
}

/// Why a metric cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum MetricError {
    /// Prometheus would not take the name.
    #[error("metric {0:?}: a name is letters, digits, underscores and colons, and begins with no digit")]
    Name(String),
    /// A metric of that name exists and is of another type or has other labels.
    #[error("metric {0:?} exists with another type or other labels")]
    Differs(String),
}

impl Metrics {
    /// A counter of that name, made when it is asked for first. `_total` is added to the name unless it is there.
    pub fn counter<const N: usize>(
        &self,
        name: &str,
        help: &str,
        labels: [&'static str; N],
    ) -> Result<Counter<N>, MetricError> {
        let stem = name.strip_suffix("_total").unwrap_or(name);
        self.added(
            stem,
            labels,
            Counter::labels,
            || Counter::new(labels),
            |registry, counter| {
                registry.register(stem, sentence(help), counter.family());
            },
        )
    }

    /// A gauge of that name, made when it is asked for first.
    pub fn gauge<const N: usize>(
        &self,
        name: &str,
        help: &str,
        labels: [&'static str; N],
    ) -> Result<Gauge<N>, MetricError> {
        self.added(
            name,
            labels,
            Gauge::labels,
            || Gauge::new(labels),
            |registry, gauge| {
                registry.register(name, sentence(help), gauge.family());
            },
        )
    }

    /// A histogram of that name, made when it is asked for first; [`SECONDS`] are buckets for durations.
    pub fn histogram<const N: usize>(
        &self,
        name: &str,
        help: &str,
        labels: [&'static str; N],
        buckets: &[f64],
    ) -> Result<Histogram<N>, MetricError> {
        self.added(
            name,
            labels,
            Histogram::labels,
            || Histogram::new(labels, buckets),
            |registry, histogram| {
                registry.register(name, sentence(help), histogram.family());
            },
        )
    }

    /// Registers whatever prometheus-client knows: native histograms, exemplars, collectors.
    ///
    /// Names that are taken are not noticed, and a bound of label values is the author's to keep.
    pub fn register(&self, register: impl FnOnce(&mut Registry)) {
        register(&mut self.registry());
    }

    /// Everything, as a scraper reads it.
    pub fn text(&self, format: Format) -> String {
        let operators: Vec<_> = lock(&self.inside.operators).iter().filter_map(Weak::upgrade).collect();
        // Locked throughout: what is sampled is set anew for each reader.
        let registry = self.registry();
        self.inside.instruments.sample(&operators);
        text::encode(&registry, format)
    }

    /// Handles to a controller's metrics.
    pub(crate) fn controller(&self, name: &str) -> ControllerMetrics {
        ControllerMetrics::new(self.instruments(), name)
    }

    /// A watch of a kind begins anew, or its list does, and why.
    /// Begins a review of the webhook at a path.
    pub(crate) fn webhook(&self, path: &str) -> webhook::Reviewing {
        webhook::Reviewing::begin(self.instruments(), path)
    }

    pub(crate) fn watch_restarted(&self, kind: &str, reason: &str) {
        self.instruments().watch_restarts.with([kind, reason]).inc();
    }

    /// An event is published.
    pub(crate) fn event(&self, type_: &str, severity: &str) {
        self.instruments().events.with([type_, severity]).inc();
    }

    /// A child that others had changed was put back.
    pub(crate) fn drift_corrected(&self, kind: &str) {
        self.instruments().drift.with([kind]).inc();
    }

    /// A run of a task ended.
    pub(crate) fn task_ended(&self, task: &str, succeeded: bool) {
        let result = if succeeded { "success" } else { "error" };
        self.instruments().task_runs.with([task, result]).inc();
    }

    /// This process leads an election, or does not.
    pub(crate) fn leads(&self, election: &str, leads: bool) {
        let value = f64::from(u8::from(leads));
        self.instruments().leader_status.with([election]).set(value);
        self.instruments().master_status.with([election]).set(value);
    }

    /// A write was not sent, since this process does not lead.
    pub(crate) fn fenced(&self, election: &str) {
        self.instruments().fenced.with([election]).inc();
    }

    /// An election has a new leader, this process or another.
    pub(crate) fn leader_changed(&self, election: &str) {
        self.instruments().leader_transitions.with([election]).inc();
    }

    pub(crate) fn observe(&self, operator: &Arc<Runtime>) {
        let mut operators = lock(&self.inside.operators);
        operators.retain(|operator| operator.strong_count() > 0);
        operators.push(Arc::downgrade(operator));
    }

    fn instruments(&self) -> &Instruments {
        &self.inside.instruments
    }

    fn registry(&self) -> MutexGuard<'_, Registry> {
        lock(&self.inside.registry)
    }

    fn added<M: Clone + Send + Sync + 'static, const N: usize>(
        &self,
        name: &str,
        labels: [&'static str; N],
        labels_of: impl Fn(&M) -> &[&'static str; N],
        make: impl FnOnce() -> M,
        register: impl FnOnce(&mut Registry, &M),
    ) -> Result<M, MetricError> {
        if !is_name(name) {
            return Err(MetricError::Name(name.into()));
        }
        // A counter's samples are called as a gauge could be.
        let stem = name.strip_suffix("_total").unwrap_or(name);
        let mut added = lock(&self.inside.added);
        if let Some(known) = added.get(stem) {
            let known = known.downcast_ref::<M>().filter(|known| *labels_of(known) == labels);
            return known.cloned().ok_or_else(|| MetricError::Differs(name.into()));
        }
        if instruments::NAMES.contains(&stem) {
            return Err(MetricError::Differs(name.into()));
        }
        let metric = make();
        register(&mut self.registry(), &metric);
        added.insert(stem.into(), Box::new(metric.clone()));
        Ok(metric)
    }
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Metrics")
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The registry adds a full stop.
fn sentence(help: &str) -> String {
    help.trim_end_matches('.').replace('\\', r"\\").replace('\n', r"\n")
}

fn is_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    !name.is_empty() && name.chars().all(allowed) && !name.starts_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_author_adds_metrics_and_asks_for_them_again() {
        let metrics = Metrics::default();
        for _ in 0..2 {
            let greetings = metrics.counter("greetings_total", "Greetings sent.", ["language"]).unwrap();
            greetings.inc(["en"]);
        }
        metrics.gauge("mood", "How it is", []).unwrap().set([], 0.5);
        metrics.histogram("length", "How long", [], &[1.0]).unwrap().observe([], 2.0);
        let text = metrics.text(Format::Prometheus);
        for line in [
            "# HELP greetings_total Greetings sent.",
            "# TYPE greetings_total counter",
            "greetings_total{language=\"en\"} 2",
            "mood 0.5",
            "length_bucket{le=\"1.0\"} 0",
            "length_count 1",
        ] {
            assert!(text.lines().any(|there| there == line), "{line} in {text}");
        }
    }

    #[test]
    fn a_name_that_is_taken_or_wrong_is_refused() {
        let metrics = Metrics::default();
        metrics.counter("a_total", "", ["x"]).unwrap();
        let refusals = [
            metrics.counter("a", "", ["y"]).unwrap_err(),
            metrics.gauge("a", "", ["x"]).unwrap_err(),
            metrics.gauge("a_total", "", ["x"]).unwrap_err(),
            metrics.gauge("controller_reconcile_total", "", []).unwrap_err(),
            metrics.counter("controller_reconcile_total", "", []).unwrap_err(),
            metrics.gauge("1a", "", []).unwrap_err(),
        ];
        let refusals = refusals.map(|refusal| refusal.to_string());
        assert!(
            refusals[..5].iter().all(|refusal| refusal.contains("exists with another")),
            "{refusals:?}"
        );
        assert!(refusals[5].contains("a name is"), "{refusals:?}");
    }
}
