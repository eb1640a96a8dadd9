//! The order in which objects are reconciled, with client-go's guarantees. Pure: the caller brings the time.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    hash::Hash,
};
use tokio::time::Instant;

/// What waits to be reconciled, and what is being reconciled.
///
/// An object is handed out to one worker at a time; any number of adds before that are one run; an add meanwhile is
/// another run afterwards; of two times asked for, the earlier one holds; who is ready first is handed out first.
#[derive(Debug)]
pub(crate) struct Queue<K> {
    states: HashMap<K, State>,
    /// Each since when it is ready.
    ready: VecDeque<(K, Instant)>,
    /// By time, then by the order of asking.
    waiting: BTreeMap<Turn, K>,
    turns: u64,
}

type Turn = (Instant, u64);

#[derive(Debug)]
enum State {
    Waiting(Turn),
    Ready,
    /// Handed out; `again` once it was added meanwhile.
    Running {
        again: Option<Instant>,
    },
}

impl<K> Default for Queue<K> {
    fn default() -> Queue<K> {
        Queue {
            states: HashMap::new(),
            ready: VecDeque::new(),
            waiting: BTreeMap::new(),
            turns: 0,
        }
    }
}

impl<K: Clone + Eq + Hash> Queue<K> {
    /// Asks for a run of `key` at `at`, or at once if that is not after `now`.
    pub(crate) fn add(&mut self, key: K, at: Instant, now: Instant) {
        match self.states.get_mut(&key) {
            Some(State::Ready) => return,
            Some(State::Running { again }) => {
                *again = Some(again.map_or(at, |earlier| earlier.min(at)));
                return;
            }
            Some(State::Waiting(turn)) if turn.0 <= at => return,
            Some(State::Waiting(turn)) => {
                self.waiting.remove(turn);
            }
            None => {}
        }
        if at <= now {
            self.states.insert(key.clone(), State::Ready);
            self.ready.push_back((key, now));
        } else {
            let turn = (at, self.turns);
            self.turns += 1;
            self.states.insert(key.clone(), State::Waiting(turn));
            self.waiting.insert(turn, key);
        }
    }

    /// Hands out the object that has been ready for longest, and since when.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<(K, Instant)> {
        while let Some(first) = self.waiting.first_entry()
            && first.key().0 <= now
        {
            let ((at, _), key) = first.remove_entry();
            self.states.insert(key.clone(), State::Ready);
            self.ready.push_back((key, at));
        }
        let (key, since) = self.ready.pop_front()?;
        self.states.insert(key.clone(), State::Running { again: None });
        Some((key, since))
    }

    /// Takes back an object that was handed out, and queues it if it was added meanwhile.
    pub(crate) fn done(&mut self, key: &K, now: Instant) {
        if let Some(State::Running { again: Some(at) }) = self.states.remove(key) {
            self.add(key.clone(), at, now);
        }
    }

    /// How many objects are ready.
    pub(crate) fn depth(&self) -> usize {
        self.ready.len()
    }

    /// When the next waiting object becomes ready.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.waiting.first_key_value().map(|(turn, _)| turn.0)
    }
}

#[cfg(test)]
#[path = "queue_model.rs"]
mod model;

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const SECOND: Duration = Duration::from_secs(1);

    fn pop<K: Clone + Eq + Hash>(queue: &mut Queue<K>, now: Instant) -> Option<K> {
        queue.pop(now).map(|(key, _)| key)
    }

    #[test]
    fn many_adds_before_a_run_are_one_run() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        for _ in 0..3 {
            queue.add("ada", now, now);
        }
        assert_eq!(pop(&mut queue, now), Some("ada"));
        queue.done(&"ada", now);
        assert_eq!(pop(&mut queue, now), None);
    }

    #[test]
    fn an_add_while_running_waits_and_runs_again() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        queue.add("ada", now, now);
        assert_eq!(pop(&mut queue, now), Some("ada"));
        queue.add("ada", now, now);
        assert_eq!(pop(&mut queue, now), None, "never two workers on one object");
        queue.done(&"ada", now);
        assert_eq!(pop(&mut queue, now), Some("ada"));
    }

    #[test]
    fn the_earlier_of_two_times_holds() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        queue.add("ada", now + SECOND, now);
        queue.add("ada", now + 2 * SECOND, now);
        assert_eq!(queue.next_at(), Some(now + SECOND));
        queue.add("ada", now, now);
        assert_eq!(pop(&mut queue, now), Some("ada"));
        queue.done(&"ada", now);
        assert_eq!(pop(&mut queue, now + 3 * SECOND), None, "the later times are forgotten");
    }

    #[test]
    fn who_is_ready_first_runs_first() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        queue.add("late", now + SECOND, now);
        queue.add("first", now, now);
        queue.add("second", now, now);
        queue.add("first", now, now);
        let order: Vec<_> = std::iter::from_fn(|| pop(&mut queue, now + SECOND)).collect();
        assert_eq!(order, ["first", "second", "late"]);
    }
}
