//! The wall clock, as an offset to tokio's: when a test pauses or advances time, timestamps follow.

use jiff::Timestamp;
use tokio::time::Instant;

/// Tells the time.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    started: Instant,
    wall: Timestamp,
}

impl Clock {
    /// A clock that shows the wall's time now, and follows tokio's from here on.
    pub fn start() -> Clock {
        Clock { started: Instant::now(), wall: Timestamp::now() }
    }

    /// The time now.
    pub fn now(&self) -> Timestamp {
        self.wall + self.started.elapsed()
    }
}

/// A time as `metav1.Time` writes it: in seconds.
pub fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A time as `metav1.MicroTime` writes it: in microseconds.
pub fn microseconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn time_passes_only_when_tokio_says_so() {
        let clock = Clock::start();
        let before = clock.now();

        tokio::time::advance(Duration::from_secs(300)).await;

        assert_eq!(clock.now(), before + Duration::from_secs(300));
    }

    #[test]
    fn times_are_written_as_kubernetes_writes_them() {
        let time: Timestamp = "2026-11-15T21:30:05.123456789Z".parse().unwrap();

        assert_eq!(seconds(time), "2026-11-15T21:30:05Z");
        assert_eq!(microseconds(time), "2026-11-15T21:30:05.123456Z");
    }
}
