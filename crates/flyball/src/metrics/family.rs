//! Metrics with labels whose values are bounded: a label that takes ever new values ends in `other`, not in a full memory.

use prometheus_client::{
    encoding::{EncodeLabelSet, EncodeMetric},
    metrics::{
        TypedMetric,
        counter::Counter as PlainCounter,
        family::{Family, MetricConstructor},
        gauge::Gauge as PlainGauge,
        histogram::Histogram as PlainHistogram,
    },
};
use std::{
    collections::HashSet,
    fmt,
    sync::{Arc, Mutex, PoisonError, atomic::AtomicU64},
};
use tokio::time::Instant;

/// How many values a label of a metric has before all further ones are `other`.
const VALUES: usize = 200;

pub(super) type FloatGauge = PlainGauge<f64, AtomicU64>;
type Labels = Vec<(&'static str, Arc<str>)>;

/// One metric for each combination of the values of `N` labels.
pub(super) struct Bounded<M, const N: usize> {
    labels: [&'static str; N],
    family: Family<Labels, M, Make<M>>,
    values: Arc<Mutex<[HashSet<Arc<str>>; N]>>,
}

/// Makes the metric of one more combination.
pub(super) struct Make<M>(Arc<dyn Fn() -> M + Send + Sync>);

impl<M> MetricConstructor<M> for Make<M> {
    fn new_metric(&self) -> M {
        (self.0)()
    }
}

impl<M> Clone for Make<M> {
    fn clone(&self) -> Make<M> {
        Make(self.0.clone())
    }
}

impl<M, const N: usize> Clone for Bounded<M, N> {
    fn clone(&self) -> Bounded<M, N> {
        Bounded {
            labels: self.labels,
            family: self.family.clone(),
            values: self.values.clone(),
        }
    }
}

impl<M: Clone, const N: usize> Bounded<M, N> {
    pub(super) fn made_by(labels: [&'static str; N], make: impl Fn() -> M + Send + Sync + 'static) -> Bounded<M, N> {
        Bounded {
            labels,
            family: Family::new_with_constructor(Make(Arc::new(make))),
            values: Arc::new(Mutex::new(std::array::from_fn(|_| HashSet::new()))),
        }
    }

    /// The metric with these values of its labels.
    pub(super) fn with(&self, values: [&str; N]) -> M {
        self.family.get_or_create_owned(&self.bound(values))
    }

    /// Forgets all combinations.
    pub(super) fn clear(&self) {
        self.family.clear();
    }

    pub(super) fn family(&self) -> impl EncodeMetric + TypedMetric + fmt::Debug + Send + Sync + 'static + use<M, N>
    where
        M: EncodeMetric + TypedMetric + fmt::Debug + Send + Sync + 'static,
        Labels: EncodeLabelSet,
    {
        self.family.clone()
    }

    fn bound(&self, values: [&str; N]) -> Labels {
        let mut known = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        let bounded = self.labels.iter().zip(values).zip(known.iter_mut());
        bounded.map(|((label, value), known)| (*label, intern(known, value))).collect()
    }
}

fn intern(known: &mut HashSet<Arc<str>>, value: &str) -> Arc<str> {
    let value = match known.get(value) {
        Some(known) => return known.clone(),
        None if known.len() < VALUES => value,
        None => "other",
    };
    let value = Arc::from(value);
    known.insert(Arc::clone(&value));
    value
}

impl<const N: usize> Bounded<PlainCounter, N> {
    pub(super) fn counter(labels: [&'static str; N]) -> Self {
        Bounded::made_by(labels, PlainCounter::default)
    }
}

impl<const N: usize> Bounded<FloatGauge, N> {
    pub(super) fn gauge(labels: [&'static str; N]) -> Self {
        Bounded::made_by(labels, FloatGauge::default)
    }
}

impl<const N: usize> Bounded<PlainHistogram, N> {
    pub(super) fn histogram(labels: [&'static str; N], buckets: &[f64]) -> Self {
        let buckets = buckets.to_vec();
        Bounded::made_by(labels, move || PlainHistogram::new(buckets.iter().copied()))
    }
}

/// Counts what happens, by the values of `N` labels.
#[derive(Clone)]
pub struct Counter<const N: usize>(Bounded<PlainCounter, N>);

/// Holds a value that goes up and down, for the values of `N` labels.
#[derive(Clone)]
pub struct Gauge<const N: usize>(Bounded<FloatGauge, N>);

/// Counts values by size, for the values of `N` labels.
#[derive(Clone)]
pub struct Histogram<const N: usize>(Bounded<PlainHistogram, N>);

/// Observes, when it is dropped, how long it was there.
pub struct Timer {
    histogram: PlainHistogram,
    started: Instant,
}

impl<const N: usize> Counter<N> {
    pub(super) fn new(labels: [&'static str; N]) -> Counter<N> {
        Counter(Bounded::counter(labels))
    }

    /// Counts one.
    pub fn inc(&self, labels: [&str; N]) {
        self.0.with(labels).inc();
    }

    /// Counts several.
    pub fn add(&self, labels: [&str; N], count: u64) {
        self.0.with(labels).inc_by(count);
    }

    pub(super) fn labels(&self) -> &[&'static str; N] {
        &self.0.labels
    }

    pub(super) fn family(&self) -> impl EncodeMetric + TypedMetric + fmt::Debug + Send + Sync + 'static + use<N> {
        self.0.family()
    }
}

impl<const N: usize> Gauge<N> {
    pub(super) fn new(labels: [&'static str; N]) -> Gauge<N> {
        Gauge(Bounded::gauge(labels))
    }

    /// Sets the value.
    pub fn set(&self, labels: [&str; N], value: f64) {
        self.0.with(labels).set(value);
    }

    /// Changes the value by this much.
    pub fn add(&self, labels: [&str; N], change: f64) {
        self.0.with(labels).inc_by(change);
    }

    pub(super) fn labels(&self) -> &[&'static str; N] {
        &self.0.labels
    }

    pub(super) fn family(&self) -> impl EncodeMetric + TypedMetric + fmt::Debug + Send + Sync + 'static + use<N> {
        self.0.family()
    }
}

impl<const N: usize> Histogram<N> {
    pub(super) fn new(labels: [&'static str; N], buckets: &[f64]) -> Histogram<N> {
        Histogram(Bounded::histogram(labels, buckets))
    }

    /// Counts a value.
    pub fn observe(&self, labels: [&str; N], value: f64) {
        self.0.with(labels).observe(value);
    }

    /// Counts the seconds until the answer is dropped.
    pub fn time(&self, labels: [&str; N]) -> Timer {
        Timer { histogram: self.0.with(labels), started: Instant::now() }
    }

    pub(super) fn labels(&self) -> &[&'static str; N] {
        &self.0.labels
    }

    pub(super) fn family(&self) -> impl EncodeMetric + TypedMetric + fmt::Debug + Send + Sync + 'static + use<N> {
        self.0.family()
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.histogram.observe(self.started.elapsed().as_secs_f64());
    }
}

impl<const N: usize> fmt::Debug for Counter<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Counter {:?}", self.0.labels)
    }
}

impl<const N: usize> fmt::Debug for Gauge<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Gauge {:?}", self.0.labels)
    }
}

impl<const N: usize> fmt::Debug for Histogram<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Histogram {:?}", self.0.labels)
    }
}

impl fmt::Debug for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Timer of {:?}", self.started.elapsed())
    }
}

impl<M> fmt::Debug for Make<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Make")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_with_ever_new_values_ends_in_other() {
        let counter = Counter::new(["object"]);
        for object in 0..10 * VALUES {
            counter.inc([&object.to_string()]);
        }
        assert_eq!(counter.0.values.lock().unwrap()[0].len(), VALUES + 1);
        assert_eq!(counter.0.with(["other"]).get() as usize, 9 * VALUES);
    }
}
