//! Random interleavings of the queue against a model that is too simple to be wrong. A failure prints its seed.

use super::{Ask, Priority, Queue, SHARE};
use crate::Why;
use std::{collections::BTreeMap, time::Duration};
use tokio::time::Instant;

/// For each key: when and how urgently it is to run next, whether it runs, and who has been passed over how often.
#[derive(Default)]
struct Model {
    wanted: BTreeMap<u8, (Instant, Priority)>,
    running: Vec<u8>,
    /// Live objects handed out in a row while something ready waited in the background.
    passed: u32,
}

impl Model {
    fn add(&mut self, key: u8, at: Instant, priority: Priority) {
        let wanted = self.wanted.entry(key).or_insert((at, priority));
        *wanted = (at.min(wanted.0), priority.max(wanted.1));
    }

    fn may_run(&self, now: Instant) -> Vec<(u8, Priority)> {
        let due = self.wanted.iter().filter(|(key, (at, _))| *at <= now && !self.running.contains(key));
        due.map(|(key, (_, priority))| (*key, *priority)).collect()
    }

    /// Takes what the queue handed out, if it was allowed to.
    fn run(&mut self, key: u8, now: Instant) -> Result<(), String> {
        let may = self.may_run(now);
        let Some((_, priority)) = may.iter().find(|(allowed, _)| *allowed == key) else {
            return Err(format!("{key} ran, only {may:?} may"));
        };
        let waits = |wanted| may.iter().any(|(_, priority)| *priority == wanted);
        match priority {
            Priority::Live => {
                self.passed = if waits(Priority::Background) {
                    self.passed + 1
                } else {
                    0
                }
            }
            Priority::Background if waits(Priority::Live) && self.passed + 1 < SHARE => {
                return Err(format!("{key} ran out of turn: {may:?}"));
            }
            Priority::Background => self.passed = 0,
        }
        if self.passed >= SHARE {
            return Err(format!("the background starves: {may:?}"));
        }
        self.wanted.remove(&key);
        self.running.push(key);
        Ok(())
    }
}

fn priority(random: &mut fastrand::Rng) -> Priority {
    [Priority::Live, Priority::Background][random.usize(..2)]
}

fn ask(at: Instant, priority: Priority) -> Ask {
    Ask { at, priority, why: Why::Changed }
}

fn play(seed: u64) {
    let (mut random, mut queue, mut model) = (fastrand::Rng::with_seed(seed), Queue::default(), Model::default());
    let mut now = Instant::now();
    for step in 0..400 {
        match random.u64(..10) {
            0..=4 => {
                let (key, delay) = (random.u8(..24), [0, 0, 1, 3, 7][random.usize(..5)]);
                let (at, priority) = (now + Duration::from_secs(delay), priority(&mut random));
                queue.add(key, ask(at, priority), now);
                model.add(key, at, priority);
            }
            5..=6 => match queue.pop(now) {
                Some(job) => {
                    let ran = model.run(job.key, now);
                    assert_eq!(ran, Ok(()), "seed {seed}, step {step}");
                }
                None => assert_eq!(model.may_run(now), [], "seed {seed}, step {step}: nothing ran"),
            },
            7..=8 if !model.running.is_empty() => {
                let key = model.running.swap_remove(random.usize(..model.running.len()));
                queue.done(&key, now);
            }
            _ => now += Duration::from_millis(500 * random.u64(..4)),
        }
        check(&queue, &model, now, &format!("seed {seed}, step {step}"));
    }
}

/// The queue knows as many objects as the model does, and wakes in time for the next.
fn check(queue: &Queue<u8>, model: &Model, now: Instant, place: &str) {
    let idle = |(key, _): &(&u8, &(Instant, Priority))| !model.running.contains(key);
    let next = model.wanted.iter().filter(idle).map(|(_, (at, _))| *at).filter(|at| *at > now).min();
    assert!(queue.next_at() <= next.or(queue.next_at()), "{place}: wakes too late");
    let (ready, waiting, running) = queue.counts();
    let wanted = model.wanted.iter().filter(idle).count();
    assert_eq!((ready + waiting, running), (wanted, model.running.len()), "{place}");
    assert_eq!(queue.contents().count(), ready + waiting + running, "{place}");
}

#[test]
fn random_interleavings_keep_the_guarantees() {
    for seed in 0..400 {
        play(seed);
    }
}

#[test]
fn whatever_is_ready_runs_in_the_order_it_became_ready() {
    for seed in 0..200 {
        let (mut random, mut queue, now) = (fastrand::Rng::with_seed(seed), Queue::default(), Instant::now());
        let (mut live, mut background) = (Vec::new(), Vec::new());
        for _ in 0..100 {
            let (key, priority) = (random.u64(..30), priority(&mut random));
            queue.add(key, ask(now, priority), now);
            match priority {
                Priority::Live if !live.contains(&key) => {
                    background.retain(|known| *known != key);
                    live.push(key);
                }
                Priority::Background if !live.contains(&key) && !background.contains(&key) => background.push(key),
                _ => {}
            }
        }
        let order: Vec<_> = std::iter::from_fn(|| queue.pop(now)).collect();
        let of = |wanted| order.iter().filter(move |job| job.priority == wanted).map(|job| job.key);
        assert_eq!(of(Priority::Live).collect::<Vec<_>>(), live, "seed {seed}");
        assert_eq!(of(Priority::Background).collect::<Vec<_>>(), background, "seed {seed}");
    }
}
