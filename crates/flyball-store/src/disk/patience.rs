//! When to flush. Whoever was just answered is likely to ask again at once, so the writer gives those who may come a moment
//! before it flushes; who writes alone waits for nobody.

use std::time::{Duration, Instant};

/// With so many a flush is worth it, whoever else may come.
const ENOUGH: usize = 64;

/// Nobody is waited for longer than this, however slow the disk is.
const LONGEST: Duration = Duration::from_millis(1);

/// After waiting in vain the writer takes so often what there is.
const RESIGNED: u32 = 8;

/// How many are waited for, and until when.
pub(crate) struct Patience {
    expected: usize,
    until: Instant,
    /// So often nobody is waited for, because the last time it was in vain.
    resigned: u32,
}

impl Patience {
    pub fn new(now: Instant) -> Patience {
        Patience { expected: 1, until: now, resigned: 0 }
    }

    /// With so many it is time to flush.
    pub fn expected(&self) -> usize {
        self.expected
    }

    /// How long the others are still waited for.
    pub fn left(&self, now: Instant) -> Duration {
        self.until.saturating_duration_since(now)
    }

    /// Notes how many came, and by when.
    pub fn end(&mut self, count: usize, now: Instant) {
        self.resigned = match self.resigned {
            0 if count < self.expected && self.left(now).is_zero() => RESIGNED,
            0 => 0,
            times => times - 1,
        };
        self.expected = 1;
    }

    /// Expects those who were answered to come again beside those who wait already, for no longer than their flush took.
    pub fn renew(&mut self, answered: usize, waiting: usize, took: Duration, now: Instant) {
        if self.resigned == 0 {
            self.expected = (waiting + answered).clamp(1, ENOUGH);
            self.until = now + took.min(LONGEST);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLUSH: Duration = Duration::from_micros(300);

    #[test]
    fn those_who_were_answered_are_expected_for_as_long_as_their_flush_took() {
        let now = Instant::now();
        let mut patience = Patience::new(now);
        patience.renew(10, 6, FLUSH, now);
        assert_eq!((patience.expected(), patience.left(now)), (16, FLUSH));
        patience.renew(200, 0, Duration::from_secs(1), now);
        assert_eq!((patience.expected(), patience.left(now)), (ENOUGH, LONGEST));
    }

    #[test]
    fn who_does_not_come_again_is_not_waited_for_the_next_times() {
        let now = Instant::now();
        let mut patience = Patience::new(now);
        patience.renew(3, 0, FLUSH, now);
        patience.end(1, now + FLUSH);
        for _ in 0..RESIGNED {
            patience.renew(3, 0, FLUSH, now);
            assert_eq!(patience.expected(), 1);
            patience.end(1, now);
        }
        patience.renew(3, 0, FLUSH, now);
        assert_eq!(patience.expected(), 3);
    }

    #[test]
    fn who_comes_in_time_is_waited_for_again() {
        let now = Instant::now();
        let mut patience = Patience::new(now);
        for _ in 0..3 {
            patience.renew(3, 0, FLUSH, now);
            assert_eq!(patience.expected(), 3);
            patience.end(3, now + FLUSH);
        }
    }
}
