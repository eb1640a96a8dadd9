//! Random choices that a seed repeats.

/// A sequence of choices.
pub struct Chance {
    /// The seed that repeats the sequence.
    pub seed: u64,
    random: fastrand::Rng,
}

impl Chance {
    /// Begins the sequence of a seed.
    pub fn new(seed: u64) -> Chance {
        Chance { seed, random: fastrand::Rng::with_seed(seed) }
    }

    /// Takes the seed from `FLYBALL_SEED`, or any.
    pub fn from_environment() -> Chance {
        Chance::new(match std::env::var("FLYBALL_SEED") {
            Ok(text) => text.parse().expect("FLYBALL_SEED is a number"),
            Err(_) => fastrand::u64(..),
        })
    }

    /// Chooses a number below another.
    pub fn below(&mut self, end: usize) -> usize {
        self.random.usize(..end)
    }

    /// Returns `true` once in `times` calls, on average.
    pub fn sometimes(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }
}
