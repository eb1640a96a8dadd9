//! Time is tokio's: the wall clock is read in one file, and no thread sleeps.

use crate::{Complaint, source::Source};

// Split, so that this file does not break its own rule.
const WALL: [&str; 4] = [
    concat!("SystemTime", "::now"),
    concat!("Timestamp", "::now"),
    concat!("Zoned", "::now"),
    concat!("Utc", "::now"),
];
/// The one file that reads the wall clock.
const FILE: &str = "crates/flyball-host/src/clock.rs";
const SLEEP: &str = concat!("thread", "::sleep");

/// Complains of reads of the wall clock outside its file, and of sleeping threads anywhere.
///
/// `bench/` and `conformance/` work beside processes that keep real time, so the wall clock is theirs to read.
pub fn complaints(source: &Source) -> Vec<Complaint> {
    let real = source.path.starts_with("bench/") || source.path.starts_with("conformance/");
    let clock = real || source.path == FILE;
    let mut complaints = Vec::new();
    for (index, line) in source.text.lines().enumerate() {
        if line.contains(SLEEP) {
            complaints.push(format!("{}:{}: a thread sleeps: wait for what you wait for", source.path, index + 1));
        }
        if !clock && WALL.iter().any(|call| line.contains(call)) {
            complaints.push(format!("{}:{}: use flyball_host::Clock for the time of day", source.path, index + 1));
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str, text: &str) -> usize {
        complaints(&Source { path: path.into(), text: text.into() }).len()
    }

    #[test]
    fn the_wall_clock_is_complained_of_outside_its_file() {
        assert_eq!(of("crates/a/src/lease.rs", WALL[0]), 1);
        assert_eq!(of("crates/a/src/clock.rs", WALL[1]), 1);
        assert_eq!(of(FILE, WALL[1]), 0);
        assert_eq!(of("bench/src/main.rs", WALL[0]), 0);
    }

    #[test]
    fn a_sleeping_thread_is_complained_of_everywhere() {
        assert_eq!(of("bench/src/main.rs", SLEEP), 1);
    }
}
