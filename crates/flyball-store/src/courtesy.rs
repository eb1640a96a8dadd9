//! Leaving the processor to others in the middle of long work, because somebody may be waiting for a commit. Whoever else
//! wants it keeps it for milliseconds, so that is done only as long as it takes no longer than the work itself.

use std::{
    thread,
    time::{Duration, Instant},
};

/// How long somebody has worked, and how long others had the processor meanwhile.
pub(crate) struct Courtesy {
    since: Instant,
    worked: Duration,
    waited: Duration,
}

impl Courtesy {
    /// Begins to work.
    pub fn new() -> Courtesy {
        Courtesy {
            since: Instant::now(),
            worked: Duration::ZERO,
            waited: Duration::ZERO,
        }
    }

    /// Leaves the processor to others, unless they have had more of it already.
    pub fn give_way(&mut self) {
        self.give_way_with(thread::yield_now);
    }

    fn give_way_with(&mut self, leave: impl FnOnce()) {
        let left = Instant::now();
        self.worked += left - self.since;
        self.since = left;
        if self.waited <= self.worked {
            leave();
            self.since = Instant::now();
            self.waited += self.since - left;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(3_600);

    fn pass(time: Duration) {
        let started = Instant::now();
        while started.elapsed() < time {}
    }

    /// Whether somebody who has worked and waited for so long leaves the processor.
    fn leaves(courtesy: &mut Courtesy) -> bool {
        let mut leaves = false;
        courtesy.give_way_with(|| leaves = true);
        leaves
    }

    #[test]
    fn others_have_the_processor_until_they_had_it_longer_than_the_work_took() {
        let mut courtesy = Courtesy { worked: LONG, ..Courtesy::new() };
        courtesy.give_way_with(|| pass(Duration::from_millis(1)));
        assert!(courtesy.waited >= Duration::from_millis(1));
        assert!(leaves(&mut courtesy));
        courtesy.waited += 2 * LONG;
        assert!(!leaves(&mut courtesy));
    }

    #[test]
    fn work_counts_once_whether_or_not_others_were_let_in() {
        let started = Instant::now();
        let mut courtesy = Courtesy { waited: LONG, ..Courtesy::new() };
        pass(Duration::from_millis(1));
        assert!(!leaves(&mut courtesy));
        pass(Duration::from_millis(1));
        assert!(!leaves(&mut courtesy));
        assert!(courtesy.worked <= started.elapsed());
        courtesy.waited = Duration::from_millis(2);
        assert!(leaves(&mut courtesy));
    }
}
