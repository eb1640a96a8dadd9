//! Staying awake for a moment without work: to fall asleep and be woken takes longer than most take to ask again. That is
//! worth it only as long as nobody else needs the processor.

use std::{
    hint,
    time::{Duration, Instant},
};

/// So long a thread stays awake.
const MOMENT: Duration = Duration::from_micros(200);

/// Between two looks there is less than this, unless somebody else had the processor.
const GLANCE: Duration = Duration::from_micros(50);

/// A thread that lost the processor again and again falls asleep at once so often.
const MOST_RESIGNED: u32 = 1_024;

/// How a thread waits for what is likely to come at once.
pub(crate) struct Awake {
    /// So often it falls asleep at once, because the last time somebody else needed the processor.
    resigned: u32,
    /// So often it will when that happens the next time.
    next: u32,
}

impl Awake {
    pub fn new() -> Awake {
        Awake { resigned: 0, next: 1 }
    }

    /// Looks until something has come, or a moment has passed, or somebody else needs the processor.
    pub fn look(&mut self, mut has_come: impl FnMut() -> bool) {
        if self.resigned > 0 {
            self.resigned -= 1;
            return;
        }
        let started = Instant::now();
        let mut last = started;
        while !has_come() && last - started < MOMENT {
            hint::spin_loop();
            let now = Instant::now();
            if now - last > GLANCE {
                self.resigned = self.next;
                self.next = (self.next * 2).min(MOST_RESIGNED);
                return;
            }
            last = now;
        }
        self.next = (self.next / 2).max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks while somebody else has the processor; says how often.
    fn look_in_vain(awake: &mut Awake) -> u32 {
        let mut looks = 0;
        awake.look(|| {
            looks += 1;
            let started = Instant::now();
            while started.elapsed() <= GLANCE {}
            false
        });
        looks
    }

    #[test]
    fn who_lost_the_processor_leaves_it_to_others_for_longer_and_longer() {
        let mut awake = Awake::new();
        let looks: Vec<_> = (0..12).map(|_| look_in_vain(&mut awake)).collect();
        assert_eq!(looks, [1, 0, 1, 0, 0, 1, 0, 0, 0, 0, 1, 0]);
        for _ in 0..100_000 {
            look_in_vain(&mut awake);
        }
        assert_eq!(awake.next, MOST_RESIGNED);
    }

    #[test]
    fn who_finds_what_has_come_stays_awake_the_next_times() {
        let mut awake = Awake { resigned: 0, next: 8 };
        for next in [4, 2, 1, 1] {
            let mut looks = 0;
            awake.look(|| {
                looks += 1;
                true
            });
            assert_eq!((looks, awake.resigned, awake.next), (1, 0, next));
        }
    }
}
