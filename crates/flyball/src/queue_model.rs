//! Random interleavings of the queue against a model that is too simple to be wrong. A failure prints its seed.

use super::Queue;
use std::{collections::BTreeMap, time::Duration};
use tokio::time::Instant;

/// For each key: when it is to run next, in the order of asking, and whether it runs.
#[derive(Default)]
struct Model {
    wanted: BTreeMap<u8, Instant>,
    running: Vec<u8>,
}

impl Model {
    fn add(&mut self, key: u8, at: Instant) {
        let wanted = self.wanted.entry(key).or_insert(at);
        *wanted = at.min(*wanted);
    }

    fn may_run(&self, now: Instant) -> impl Iterator<Item = u8> {
        let due = self.wanted.iter().filter(move |(key, at)| **at <= now && !self.running.contains(key));
        due.map(|(key, _)| *key)
    }
}

/// A small generator (splitmix64), so that a seed is all it takes to repeat a failure.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}

fn play(seed: u64) {
    let (mut random, mut queue, mut model) = (Random(seed), Queue::default(), Model::default());
    let mut now = Instant::now();
    for step in 0..400 {
        match random.below(10) {
            0..=4 => {
                let (key, delay) = (random.below(8) as u8, [0, 0, 1, 3, 7][random.below(5) as usize]);
                let at = now + Duration::from_secs(delay);
                queue.add(key, at, now);
                model.add(key, at);
            }
            5..=6 => {
                let popped = queue.pop(now).map(|(key, _)| key);
                let may: Vec<_> = model.may_run(now).collect();
                match popped {
                    Some(key) => {
                        assert!(may.contains(&key), "seed {seed}, step {step}: {key} ran, only {may:?} may");
                        model.wanted.remove(&key);
                        model.running.push(key);
                    }
                    None => assert!(may.is_empty(), "seed {seed}, step {step}: {may:?} may run and nothing did"),
                }
            }
            7..=8 if !model.running.is_empty() => {
                let key = model.running.swap_remove(random.below(model.running.len() as u64) as usize);
                queue.done(&key, now);
            }
            _ => now += Duration::from_millis(500 * random.below(4)),
        }
        let next = model
            .wanted
            .iter()
            .filter(|(key, at)| **at > now && !model.running.contains(key))
            .map(|(_, at)| *at);
        assert!(
            queue.next_at() <= next.min().or(queue.next_at()),
            "seed {seed}, step {step}: wakes too late"
        );
    }
}

#[test]
fn random_interleavings_keep_the_guarantees() {
    for seed in 0..1_000 {
        play(seed);
    }
}

#[test]
fn whatever_is_ready_runs_in_the_order_it_became_ready() {
    for seed in 0..200 {
        let (mut random, mut queue, now) = (Random(seed), Queue::default(), Instant::now());
        let mut expected = Vec::new();
        for _ in 0..100 {
            let key = random.below(30);
            queue.add(key, now, now);
            if !expected.contains(&key) {
                expected.push(key);
            }
        }
        let order: Vec<_> = std::iter::from_fn(|| queue.pop(now).map(|(key, _)| key)).collect();
        assert_eq!(order, expected, "seed {seed}");
    }
}
