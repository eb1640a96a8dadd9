//! The metrics of one review that is being answered.

use crate::metrics::family::FloatGauge;
use crate::metrics::instruments::{Counters, Instruments};
use http::StatusCode;
use prometheus_client::metrics::{counter::Counter, histogram::Histogram};
use tokio::time::Instant;

/// A review under way. It counts as in flight until it is dropped.
pub(crate) struct Reviewing {
    path: String,
    requests: Counters<2>,
    panics: Counter,
    latency: Histogram,
    in_flight: FloatGauge,
    started: Instant,
}

impl Reviewing {
    pub(super) fn begin(instruments: &Instruments, path: &str) -> Reviewing {
        let in_flight = instruments.webhook_in_flight.with([path]);
        in_flight.inc();
        Reviewing {
            path: path.into(),
            requests: instruments.webhook_requests.clone(),
            panics: instruments.webhook_panics.with([path]),
            latency: instruments.webhook_latency.with([path]),
            in_flight,
            started: Instant::now(),
        }
    }

    pub(crate) fn panicked(&self) {
        self.panics.inc();
    }

    pub(crate) fn answered(&self, status: StatusCode) {
        self.requests.with([&self.path, status.as_str()]).inc();
        self.latency.observe(self.started.elapsed().as_secs_f64());
    }
}

impl Drop for Reviewing {
    fn drop(&mut self) {
        self.in_flight.dec();
    }
}
