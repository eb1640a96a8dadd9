//! The wall clock, for timestamps that others read. It advances with tokio's clock, so tests may pause and advance it.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use tokio::time::Instant;

/// Tells the time of day from the moment it was started at and tokio's clock since.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    wall: Timestamp,
    started: Instant,
}

impl Clock {
    pub(crate) fn start() -> Clock {
        Clock { wall: Timestamp::now(), started: Instant::now() }
    }

    /// The time to the second, which is all that Kubernetes keeps.
    pub(crate) fn time(&self) -> Time {
        Time(Timestamp::from_second(self.now().as_second()).expect("it was a timestamp before"))
    }

    pub(crate) fn now(&self) -> Timestamp {
        let elapsed = SignedDuration::try_from(self.started.elapsed()).unwrap_or(SignedDuration::MAX);
        self.wall.saturating_add(elapsed).unwrap_or(Timestamp::MAX)
    }
}
