//! How long to wait after a failure, and after the next one.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

/// Delays that grow with each failure in a row.
///
/// A tenth of each delay depends on what failed, so that objects which failed together do not come back together, while
/// the same object under the same clock always waits the same time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backoff {
    /// The delay after the first failure.
    pub initial: Duration,
    /// No delay is longer than this.
    pub max: Duration,
    /// By how much each delay is longer than the one before.
    pub multiplier: f64,
    /// After this many retries in a row that failed, the object waits for a change; it then begins anew.
    pub max_retries: Option<u32>,
}

impl Default for Backoff {
    /// From a tenth of a second, doubled each time, to five minutes, for as long as it takes.
    fn default() -> Backoff {
        Backoff {
            initial: Duration::from_millis(100),
            max: Duration::from_secs(300),
            multiplier: 2.0,
            max_retries: None,
        }
    }
}

impl Backoff {
    /// The delays between attempts to list or watch a kind (client-go's reflector: 0.8 s to 30 s).
    pub(crate) const WATCH: Backoff = Backoff {
        initial: Duration::from_millis(800),
        max: Duration::from_secs(30),
        multiplier: 2.0,
        max_retries: None,
    };

    /// Whether an object that has failed this often in a row is retried.
    pub(crate) fn retries(&self, failures: u32) -> bool {
        self.max_retries.is_none_or(|most| failures <= most)
    }

    /// The delay after `failures` in a row of `what`.
    pub(crate) fn delay(&self, failures: u32, what: &impl Hash) -> Duration {
        let exponent = i32::try_from(failures.saturating_sub(1)).unwrap_or(i32::MAX);
        let grown = self.initial.as_secs_f64() * self.multiplier.max(1.0).powi(exponent);
        let capped = grown.min(self.max.as_secs_f64());
        Duration::from_secs_f64(capped * (1.0 - 0.1 * fraction(failures, what)))
    }
}

fn fraction(failures: u32, what: &impl Hash) -> f64 {
    let mut hasher = DefaultHasher::new();
    (failures, what).hash(&mut hasher);
    f64::from(hasher.finish() as u32) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_longest() {
        let backoff = Backoff::default();
        let seconds = |failures| backoff.delay(failures, &"ada").as_secs_f64();
        for (failures, expected) in [
            (1, 0.1),
            (2, 0.2),
            (5, 1.6),
            (12, 204.8),
            (13, 300.0),
            (u32::MAX, 300.0),
        ] {
            assert!(
                (expected * 0.9..=expected).contains(&seconds(failures)),
                "{failures}: {}",
                seconds(failures)
            );
        }
    }

    #[test]
    fn five_retries_from_one_second_to_sixteen() {
        let backoff = Backoff {
            initial: Duration::from_secs(1),
            max: Duration::from_secs(16),
            max_retries: Some(5),
            ..Backoff::default()
        };
        let delays = (1..).take_while(|failures| backoff.retries(*failures)).map(|failures| {
            let delay = backoff.delay(failures, &"ada").as_secs_f64();
            // A tenth at most is left out.
            delay.ceil() as u32
        });
        let delays: Vec<_> = delays.collect();
        assert_eq!((delays.len(), delays[0], delays[1]), (5, 1, 2));
        assert!((15..=16).contains(&delays[4]), "{delays:?}");
    }

    #[test]
    fn objects_that_fail_together_do_not_return_together() {
        let backoff = Backoff::default();
        assert_ne!(backoff.delay(3, &"ada"), backoff.delay(3, &"bob"));
        assert_eq!(backoff.delay(3, &"ada"), backoff.delay(3, &"ada"));
    }
}
