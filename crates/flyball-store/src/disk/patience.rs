//! When to flush. Whoever was just answered is likely to ask again at once, so the writer gives those who may come a moment
//! before it flushes; who writes alone waits for nobody.

use super::awake::Awake;
use std::time::{Duration, Instant};

/// With so many a flush is worth it, whoever else may come.
const ENOUGH: usize = 64;

/// Nobody is waited for longer than this, however slow the disk is.
const LONGEST: Duration = Duration::from_millis(1);

/// After waiting in vain again and again the writer takes so often what there is.
const MOST_RESIGNED: u32 = 64;

/// How many are waited for, and until when.
pub(crate) struct Patience {
    expected: usize,
    until: Instant,
    /// How long a flush takes, as a rule.
    flush: Duration,
    /// So often nobody is waited for, because the last time it was in vain.
    resigned: u32,
    /// So often nobody will be waited for when it is in vain the next time.
    next: u32,
    /// How the first of them are waited for.
    pub awake: Awake,
}

impl Patience {
    pub fn new(now: Instant) -> Patience {
        Patience {
            expected: 1,
            until: now,
            flush: LONGEST,
            resigned: 0,
            next: 1,
            awake: Awake::new(),
        }
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
        let was_in_vain = count <= self.expected / 2 && self.left(now).is_zero();
        if self.resigned > 0 {
            self.resigned -= 1;
        } else if self.expected > 1 {
            self.resigned = if was_in_vain { self.next } else { 0 };
            self.next = if was_in_vain {
                (self.next * 2).min(MOST_RESIGNED)
            } else {
                1
            };
        }
        self.expected = 1;
    }

    /// Expects those who were answered to come again beside those who wait already, for no longer than a flush takes.
    pub fn renew(&mut self, answered: usize, waiting: usize, took: Duration, now: Instant) {
        self.flush = (self.flush * 7 + took.min(LONGEST)) / 8;
        if self.resigned == 0 {
            self.expected = (waiting + answered).clamp(1, ENOUGH);
            self.until = now + self.flush;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLUSH: Duration = Duration::from_micros(300);

    /// Has seen many flushes.
    fn patience(now: Instant) -> Patience {
        let mut patience = Patience::new(now);
        for _ in 0..100 {
            patience.renew(1, 0, FLUSH, now);
            patience.end(1, now);
        }
        patience
    }

    #[test]
    fn those_who_were_answered_are_expected_for_as_long_as_a_flush_takes() {
        let now = Instant::now();
        let mut patience = patience(now);
        patience.renew(10, 6, FLUSH, now);
        let left = patience.left(now).as_micros();
        assert!(patience.expected() == 16 && left.abs_diff(FLUSH.as_micros()) < 5, "{left}");
        patience.renew(200, 0, Duration::from_secs(1), now);
        assert!(patience.expected() == ENOUGH && patience.left(now) < FLUSH * 2);
    }

    #[test]
    fn who_does_not_come_again_is_waited_for_less_and_less() {
        let now = Instant::now();
        let mut patience = patience(now);
        let mut waits = Vec::new();
        for n in 0..300 {
            patience.renew(3, 0, FLUSH, now);
            if patience.expected() > 1 {
                waits.push(n);
            }
            patience.end(1, now + LONGEST);
        }
        assert_eq!(waits, [0, 2, 5, 10, 19, 36, 69, 134, 199, 264]);
        // Those who do come make up for it.
        for _ in 0..=MOST_RESIGNED {
            patience.renew(3, 0, FLUSH, now);
            patience.end(3, now);
        }
        patience.renew(3, 0, FLUSH, now);
        patience.end(1, now + LONGEST);
        patience.renew(3, 0, FLUSH, now);
        assert_eq!((patience.expected(), patience.resigned), (1, 1));
    }

    #[test]
    fn who_comes_in_time_is_waited_for_again() {
        let now = Instant::now();
        let mut patience = patience(now);
        for _ in 0..3 {
            patience.renew(3, 0, FLUSH, now);
            assert_eq!(patience.expected(), 3);
            patience.end(3, now + FLUSH);
        }
    }
}
