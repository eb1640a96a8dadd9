//! How fast a controller works: how much at once, how often, how long, and how soon again after a failure.

use crate::declare::controller::Controller;
use crate::engine::work::Rate;
use crate::{Backoff, Election};
use std::time::Duration;

impl<K> Controller<K> {
    /// Names the controller in logs and metrics; the kind in lower case unless set.
    pub fn named(mut self, name: impl Into<String>) -> Controller<K> {
        self.spec.name = name.into();
        self
    }

    /// Works only while it leads this election of its own, and not with the rest of its operator.
    pub fn election(mut self, election: Election) -> Controller<K> {
        self.spec.election = Some(election);
        self
    }

    /// Reconciles at most this many objects at the same time; 64 unless set.
    pub fn concurrency(mut self, objects: usize) -> Controller<K> {
        self.spec.concurrency = objects.max(1);
        self
    }

    /// Sets the delays between retries of an object that fails, and how many there are.
    pub fn backoff(mut self, backoff: Backoff) -> Controller<K> {
        self.spec.backoff = backoff;
        self
    }

    /// Cancels a reconcile that takes longer than this, and retries it like any that fails; ten minutes unless set.
    pub fn timeout(mut self, time: Duration) -> Controller<K> {
        self.spec.timeout = time;
        self
    }

    /// Reconciles every object once in this time even if nothing changes, after whatever did change.
    pub fn resync(mut self, period: Duration) -> Controller<K> {
        if period.is_zero() {
            self.spec
                .mistakes
                .push(format!("the {} controller resyncs without a pause", self.spec.name));
        }
        self.spec.resync = Some(period);
        self
    }

    /// Gives reconciles this long to end when the operator stops, and then cancels them; the operator's
    /// ([`Operator::shutdown_grace`](crate::Operator::shutdown_grace)) unless set.
    pub fn shutdown_grace(mut self, time: Duration) -> Controller<K> {
        self.spec.shutdown_grace = Some(time);
        self
    }

    /// Begins at most this many reconciles a second, and at most `burst` at once after a pause.
    pub fn rate_limit(mut self, per_second: f64, burst: u32) -> Controller<K> {
        let every = Duration::try_from_secs_f64(1.0 / per_second);
        match every {
            Ok(every) if !every.is_zero() => self.spec.rate = Some(Rate { every, burst: burst.max(1) }),
            _ => self.spec.mistakes.push(format!(
                "the {} controller is limited to {per_second} reconciles a second",
                self.spec.name
            )),
        }
        self
    }
}
