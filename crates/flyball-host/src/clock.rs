//! The wall clock. Timestamps follow it, through suspends and corrections, unless tokio's time is paused: then they follow
//! tokio's, so that a test decides what time it is.

use jiff::{SignedDuration, Timestamp};
use std::{sync::OnceLock, time::Instant as MonotonicInstant};
use tokio::time::Instant;

/// More reads of a monotonic clock than it needs to advance.
const MAX_READS: usize = 10_000;

/// Tells the time.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    wall: fn() -> Timestamp,
    start: (Timestamp, Instant),
}

impl Clock {
    /// A clock that follows the system's. While tokio's time is paused, all of them show the same time.
    pub fn start() -> Clock {
        static ANCHOR: OnceLock<(Timestamp, MonotonicInstant)> = OnceLock::new();
        let (wall, started) = *ANCHOR.get_or_init(|| (Timestamp::now(), MonotonicInstant::now()));
        Clock {
            wall: Timestamp::now,
            start: (wall, Instant::from_std(started)),
        }
    }

    /// A clock that follows another source of the time of day.
    pub fn follow(wall: fn() -> Timestamp) -> Clock {
        Clock { wall, start: (wall(), Instant::now()) }
    }

    /// The time now.
    pub fn now(&self) -> Timestamp {
        if !is_paused() {
            return (self.wall)();
        }
        let (wall, started) = self.start;
        wall.saturating_add(between(started, Instant::now())).unwrap_or(Timestamp::MAX)
    }
}

fn between(from: Instant, to: Instant) -> SignedDuration {
    let signed = |time| SignedDuration::try_from(time).unwrap_or(SignedDuration::MAX);
    match to.checked_duration_since(from) {
        Some(forward) => signed(forward),
        None => -signed(from.duration_since(to)),
    }
}

/// Whether tokio's time stands still while the machine's goes on; tokio itself does not tell.
fn is_paused() -> bool {
    let (tokio, machine) = (Instant::now(), MonotonicInstant::now());
    let advanced = (0..MAX_READS).any(|_| MonotonicInstant::now() > machine);
    advanced && Instant::now() == tokio
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        sync::atomic::{AtomicI64, Ordering},
        time::Duration,
    };

    #[tokio::test(start_paused = true)]
    async fn paused_time_passes_only_when_tokio_advances_it() {
        let clock = Clock::start();
        let before = clock.now();

        tokio::time::advance(Duration::from_secs(300)).await;

        assert_eq!(clock.now(), before + Duration::from_secs(300));
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_starts_later_shows_the_same_paused_time() {
        let first = Clock::start();
        tokio::time::advance(Duration::from_secs(300)).await;

        assert_eq!(Clock::start().now(), first.now());
    }

    #[tokio::test]
    async fn the_clock_follows_jumps_of_the_wall_clock() {
        static WALL: AtomicI64 = AtomicI64::new(1_800_000_000);
        fn wall() -> Timestamp {
            Timestamp::from_second(WALL.load(Ordering::Relaxed)).expect("a time of this century")
        }
        let clock = Clock::follow(wall);
        for jump in [0, 8 * 3600, -24 * 3600] {
            WALL.fetch_add(jump, Ordering::Relaxed);
            assert_eq!(clock.now(), wall());
        }
    }
}
