//! Random choices that a seed repeats.

use std::hash::{BuildHasher, Hasher, RandomState};

/// A sequence of choices (splitmix64).
pub struct Chance {
    /// The seed that repeats the sequence.
    pub seed: u64,
    state: u64,
}

impl Chance {
    /// Begins the sequence of a seed.
    pub fn new(seed: u64) -> Chance {
        Chance { seed, state: seed }
    }

    /// Takes the seed from `FLYBALL_SEED`, or any.
    pub fn from_environment() -> Chance {
        Chance::new(match std::env::var("FLYBALL_SEED") {
            Ok(text) => text.parse().expect("FLYBALL_SEED is a number"),
            Err(_) => RandomState::new().build_hasher().finish(),
        })
    }

    /// Chooses a number below another.
    pub fn below(&mut self, end: usize) -> usize {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % end as u64) as usize
    }

    /// Returns `true` once in `times` calls, on average.
    pub fn sometimes(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }
}
