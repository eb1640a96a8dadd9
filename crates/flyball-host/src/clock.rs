//! The wall clock. Timestamps follow it, through suspends and corrections, unless tokio's time is paused: then they follow
//! tokio's, so that a test decides what time it is.

use jiff::{SignedDuration, Timestamp};
use std::time::Instant as MonotonicInstant;
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
    /// A clock that follows the system's.
    pub fn start() -> Clock {
        Clock::follow(Timestamp::now)
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
        let elapsed = SignedDuration::try_from(started.elapsed()).unwrap_or(SignedDuration::MAX);
        wall.saturating_add(elapsed).unwrap_or(Timestamp::MAX)
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
