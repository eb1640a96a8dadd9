//! The environment of the peers in Rust, and the lines that they print.

use std::{
    env,
    sync::atomic::{AtomicU64, Ordering},
};

/// The work of a peer, and how much of it is done.
pub struct Tally {
    /// Zero where nothing is written.
    pub round: u64,
    /// Whether each reconcile reads two other kinds and applies a child.
    pub has_child: bool,
    reconciled: AtomicU64,
    written: AtomicU64,
}

impl Tally {
    /// As ROUND and WORK say.
    pub fn of_environment() -> Tally {
        Tally {
            round: number("ROUND"),
            has_child: env::var("WORK").is_ok_and(|work| work == "child"),
            reconciled: AtomicU64::default(),
            written: AtomicU64::default(),
        }
    }

    /// Counts an object that was reconciled.
    pub fn reconciled(&self) {
        tell("reconciled", &self.reconciled);
    }

    /// Counts an object whose status was written.
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
