//! What Rust's peers are told by the environment, and what they say on standard output.

use std::{
    env,
    sync::atomic::{AtomicU64, Ordering},
};

/// The work of a peer, and how much of it is done.
pub struct Tally {
    /// Zero where nothing is written.
    pub round: u64,
    reconciled: AtomicU64,
    written: AtomicU64,
}

impl Tally {
    /// As ROUND says.
    pub fn of_environment() -> Tally {
        Tally {
            round: number("ROUND"),
            reconciled: AtomicU64::default(),
            written: AtomicU64::default(),
        }
    }

    /// One more object was looked at.
    pub fn reconciled(&self) {
        tell("reconciled", &self.reconciled);
    }

    /// One more status was written.
    pub fn written(&self) {
        tell("written", &self.written);
    }
}

/// How many workers there should be.
pub fn workers() -> u16 {
    u16::try_from(number("WORKERS")).expect("not that many workers")
}

fn number(name: &str) -> u64 {
    let value = env::var(name).unwrap_or_else(|_| panic!("{name} is set by the bench"));
    value.parse().unwrap_or_else(|_| panic!("{name} is a number"))
}

fn tell(word: &str, count: &AtomicU64) {
    let count = count.fetch_add(1, Ordering::Relaxed) + 1;
    if count.is_multiple_of(100) {
        println!("{word} {count}");
    }
}
