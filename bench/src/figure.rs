//! A measured number with its unit, and which way is better.

use std::{fmt, time::Duration};

/// A measured number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Figure {
    /// A time; less is better.
    Time(Duration),
    /// Things done a second; more is better.
    Rate(f64),
    /// Memory; less is better.
    Bytes(f64),
    /// How often something happens; less is better.
    Count(f64),
}

impl Figure {
    /// How many times better this is than the other: over 1 is ahead. Figures of different units do not compare.
    pub fn times_better_than(self, other: Figure) -> Option<f64> {
        match (self, other) {
            (Figure::Time(ours), Figure::Time(peer)) => Some(peer.as_secs_f64() / ours.as_secs_f64()),
            (Figure::Bytes(ours), Figure::Bytes(peer)) | (Figure::Count(ours), Figure::Count(peer)) => {
                Some(peer / ours)
            }
            (Figure::Rate(ours), Figure::Rate(peer)) => Some(ours / peer),
            _ => None,
        }
    }
}

impl Figure {
    /// The middle one of several figures of the same unit.
    pub fn middle(mut figures: Vec<Figure>) -> Figure {
        figures.sort_by(|a, b| a.number().total_cmp(&b.number()));
        figures[figures.len() / 2]
    }

    fn number(self) -> f64 {
        match self {
            Figure::Time(time) => time.as_secs_f64(),
            Figure::Rate(number) | Figure::Bytes(number) | Figure::Count(number) => number,
        }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Figure::Time(time) if time.as_secs() >= 1 => write!(f, "{:.2} s", time.as_secs_f64()),
            Figure::Time(time) if time.as_millis() >= 1 => write!(f, "{:.2} ms", time.as_secs_f64() * 1e3),
            Figure::Time(time) => write!(f, "{:.1} µs", time.as_secs_f64() * 1e6),
            Figure::Rate(rate) => write!(f, "{rate:.0}/s"),
            Figure::Count(count) => write!(f, "{count:.0}"),
            Figure::Bytes(bytes) if bytes >= 1048576.0 => write!(f, "{:.1} MiB", bytes / 1048576.0),
            Figure::Bytes(bytes) => write!(f, "{:.2} KiB", bytes / 1024.0),
        }
    }
}

/// The middle one of several measurements of the same thing.
pub fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// The time under which the given share of the measurements lies.
pub fn percentile(times: &mut [Duration], share: f64) -> Duration {
    times.sort();
    times[((times.len() - 1) as f64 * share).round() as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_time_and_more_throughput_are_better() {
        let (fast, slow) = (Figure::Time(Duration::from_millis(1)), Figure::Time(Duration::from_millis(4)));
        assert_eq!(fast.times_better_than(slow), Some(4.0));
        assert_eq!(Figure::Rate(1.0).times_better_than(Figure::Rate(2.0)), Some(0.5));
        assert_eq!(fast.times_better_than(Figure::Rate(1.0)), None);
    }

    #[test]
    fn a_figure_shows_its_unit() {
        assert_eq!(Figure::Time(Duration::from_micros(1500)).to_string(), "1.50 ms");
        assert_eq!(Figure::Bytes(3.0 * 1024.0).to_string(), "3.00 KiB");
        assert_eq!(Figure::Rate(1234.4).to_string(), "1234/s");
    }

    #[test]
    fn the_median_is_the_middle() {
        let times = [3, 1, 2].map(Duration::from_millis).to_vec();
        assert_eq!(median(times), Duration::from_millis(2));
    }
}
