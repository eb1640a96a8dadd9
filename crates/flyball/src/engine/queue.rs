//! The order in which objects are reconciled, with client-go's guarantees. Pure: the caller brings the time.

use crate::Why;
use std::{
    collections::{BTreeMap, HashMap},
    hash::Hash,
};
use tokio::time::Instant;

/// The objects that are queued for a reconcile, and those that are being reconciled.
///
/// An object is handed out to one worker at a time; any number of adds before that are one run; an add meanwhile is
/// another run afterwards; of two times asked for, the earlier one holds; who is ready first is handed out first. Live
/// objects go before those in the background, but of [`SHARE`] in a row at least one is from there.
#[derive(Debug)]
pub(crate) struct Queue<K> {
    entries: HashMap<K, Entry>,
    live: BTreeMap<u64, K>,
    background: BTreeMap<u64, K>,
    /// By time, then by the order of asking.
    waiting: BTreeMap<(Instant, u64), K>,
    turns: u64,
    /// How many live objects were handed out while others waited in the background.
    in_a_row: u32,
}

/// Of this many objects handed out, one comes from the background if any waits there: nothing starves.
pub(crate) const SHARE: u32 = 8;

/// Maps that have grown larger than this are shrunk once they are nearly empty.
const SMALL: usize = 1_024;

/// How urgent a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Priority {
    /// The initial list, and resyncs.
    Background,
    /// What happens now.
    Live,
}

/// One wish to run an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ask {
    pub(crate) at: Instant,
    pub(crate) priority: Priority,
    pub(crate) why: Why,
}

/// An object that was handed out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Job<K> {
    pub(crate) key: K,
    pub(crate) priority: Priority,
    pub(crate) why: Why,
    /// Since when it was to run.
    pub(crate) due: Instant,
}

#[derive(Debug)]
struct Entry {
    slot: Slot,
    ask: Ask,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Slot {
    Waiting(u64),
    Ready(u64),
    /// Handed out at that time; added again meanwhile.
    Running(Instant, Option<Box<Ask>>),
}

/// Where an object is in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum QueuePosition {
    /// It waits for a free worker, since then.
    Ready(Instant),
    /// It waits until then.
    Until(Instant),
    /// It is being reconciled.
    Running {
        /// When that began.
        since: Instant,
        /// Whether it was added again meanwhile.
        again: bool,
    },
}

impl<K> Default for Queue<K> {
    fn default() -> Queue<K> {
        Queue {
            entries: HashMap::new(),
            live: BTreeMap::new(),
            background: BTreeMap::new(),
            waiting: BTreeMap::new(),
            turns: 0,
            in_a_row: 0,
        }
    }
}

impl<K: Clone + Eq + Hash> Queue<K> {
    /// Asks for a run of `key`. Says whether that changed anything.
    pub(crate) fn add(&mut self, key: K, ask: Ask, now: Instant) -> bool {
        match self.entries.get_mut(&key) {
            None => {}
            Some(Entry { slot: Slot::Running(_, again), .. }) => {
                let earlier = again.take();
                let first = earlier.is_none();
                *again = Some(Box::new(earlier.map_or(ask.clone(), |earlier| merged(*earlier, ask))));
                return first;
            }
            Some(Entry { slot: Slot::Ready(turn), ask: known }) => {
                if known.priority >= ask.priority {
                    return false;
                }
                self.background.remove(turn);
            }
            Some(Entry { slot: Slot::Waiting(turn), ask: known }) => {
                if known.at <= ask.at && known.priority >= ask.priority {
                    return false;
                }
                self.waiting.remove(&(known.at, *turn));
            }
        }
        let ask = match self.entries.remove(&key) {
            Some(entry) => merged(entry.ask, ask),
            None => ask,
        };
        self.enqueue(key, ask, now);
        true
    }

    fn enqueue(&mut self, key: K, ask: Ask, now: Instant) {
        let turn = self.turns;
        self.turns += 1;
        let slot = if ask.at <= now {
            self.lane(ask.priority).insert(turn, key.clone());
            Slot::Ready(turn)
        } else {
            self.waiting.insert((ask.at, turn), key.clone());
            Slot::Waiting(turn)
        };
        self.entries.insert(key, Entry { slot, ask });
    }

    fn lane(&mut self, priority: Priority) -> &mut BTreeMap<u64, K> {
        match priority {
            Priority::Live => &mut self.live,
            Priority::Background => &mut self.background,
        }
    }

    /// Hands out the object that has been ready for longest: of the live ones, or of the others when it is their turn.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<Job<K>> {
        self.promote_due(now);
        let behind = self.live.is_empty() || (self.in_a_row + 1 >= SHARE && !self.background.is_empty());
        let (priority, in_a_row) = match behind {
            true => (Priority::Background, 0),
            false if self.background.is_empty() => (Priority::Live, 0),
            false => (Priority::Live, self.in_a_row + 1),
        };
        let (_, key) = self.lane(priority).pop_first()?;
        self.in_a_row = in_a_row;
        let entry = self.entries.get_mut(&key).expect("whatever is ready has an entry");
        entry.slot = Slot::Running(now, None);
        let Ask { why, at, .. } = entry.ask.clone();
        Some(Job { key, priority, why, due: at })
    }

    /// What waited for a time that has come becomes ready, in the order of those times.
    fn promote_due(&mut self, now: Instant) {
        while let Some(first) = self.waiting.first_entry()
            && first.key().0 <= now
        {
            let key = first.remove();
            let turn = self.turns;
            self.turns += 1;
            let entry = self.entries.get_mut(&key).expect("whatever waits has an entry");
            entry.slot = Slot::Ready(turn);
            let priority = entry.ask.priority;
            self.lane(priority).insert(turn, key);
        }
    }

    /// Takes back an object that was handed out, and queues it if it was added meanwhile. Says whether it did.
    pub(crate) fn done(&mut self, key: &K, now: Instant) -> bool {
        let Some(entry) = self.entries.remove(key) else {
            return false;
        };
        let mut again = false;
        match entry.slot {
            Slot::Running(_, Some(ask)) => {
                again = true;
                self.enqueue(key.clone(), *ask, now);
            }
            Slot::Running(_, None) => {}
            // Only an object that was handed out is given back.
            _ => drop(self.entries.insert(key.clone(), entry)),
        }
        if self.entries.capacity() > SMALL && self.entries.len() < self.entries.capacity() / 8 {
            self.entries.shrink_to(self.entries.len() * 2);
        }
        again
    }

    /// Whether a running object was added meanwhile.
    pub(crate) fn is_added_while_running(&self, key: &K) -> bool {
        matches!(self.entries.get(key), Some(Entry { slot: Slot::Running(_, Some(_)), .. }))
    }

    /// Drops what was added for an object while it ran.
    pub(crate) fn forget_added_while_running(&mut self, key: &K) {
        if let Some(Entry { slot: Slot::Running(_, again), .. }) = self.entries.get_mut(key) {
            *again = None;
        }
    }

    /// When the next waiting object becomes ready.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.waiting.first_key_value().map(|((at, _), _)| *at)
    }

    /// How many objects are ready, waiting for their time, and running.
    pub(crate) fn counts(&self) -> (usize, usize, usize) {
        let (ready, waiting) = (self.live.len() + self.background.len(), self.waiting.len());
        (ready, waiting, self.entries.len() - ready - waiting)
    }

    /// Every object in the queue, with what was asked for it: the running ones, then in about the order they will run.
    pub(crate) fn contents(&self) -> impl Iterator<Item = (&K, QueuePosition, &Ask)> {
        let running = self.entries.iter().filter_map(|(key, entry)| match &entry.slot {
            Slot::Running(since, again) => {
                let position = QueuePosition::Running { since: *since, again: again.is_some() };
                Some((key, position, &entry.ask))
            }
            _ => None,
        });
        let at = |position: fn(Instant) -> QueuePosition| {
            move |key| {
                let ask = &self.entries[key].ask;
                (key, position(ask.at), ask)
            }
        };
        let ready = self.live.values().chain(self.background.values()).map(at(QueuePosition::Ready));
        running.chain(ready).chain(self.waiting.values().map(at(QueuePosition::Until)))
    }
}

/// Two adds as one: the earlier time, the higher priority, and the reason that decided.
fn merged(known: Ask, new: Ask) -> Ask {
    let forward = new.at < known.at || new.priority > known.priority;
    Ask {
        at: known.at.min(new.at),
        priority: known.priority.max(new.priority),
        why: if forward { new.why } else { known.why },
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

    fn live(at: Instant) -> Ask {
        Ask { at, priority: Priority::Live, why: Why::Changed }
    }

    fn listed(at: Instant) -> Ask {
        Ask { at, priority: Priority::Background, why: Why::Listed }
    }

    fn popped<K: Clone + Eq + Hash>(queue: &mut Queue<K>, now: Instant) -> Option<K> {
        queue.pop(now).map(|job| job.key)
    }

    #[test]
    fn many_adds_before_a_run_are_one_run() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        for _ in 0..3 {
            queue.add("ada", live(now), now);
        }
        assert_eq!(popped(&mut queue, now), Some("ada"));
        queue.done(&"ada", now);
        assert_eq!(popped(&mut queue, now), None);
    }

    #[test]
    fn an_add_while_running_waits_and_runs_again() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        queue.add("ada", live(now), now);
        assert_eq!(popped(&mut queue, now), Some("ada"));
        queue.add("ada", live(now), now);
        assert_eq!(popped(&mut queue, now), None, "never two workers on one object");
        queue.done(&"ada", now);
        assert_eq!(popped(&mut queue, now), Some("ada"));
    }

    #[test]
    fn the_earlier_of_two_times_holds_with_its_reason() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        queue.add("ada", Ask { why: Why::Retried(1), ..live(now + SECOND) }, now);
        queue.add("ada", Ask { why: Why::Requeued, ..live(now + 2 * SECOND) }, now);
        assert_eq!(queue.next_at(), Some(now + SECOND));
        queue.add("ada", live(now), now);
        assert_eq!(queue.pop(now).unwrap().why, Why::Changed);
        queue.done(&"ada", now);
        assert_eq!(popped(&mut queue, now + 3 * SECOND), None, "the later times are forgotten");
    }

    #[test]
    fn who_is_ready_first_runs_first() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        queue.add("late", live(now + SECOND), now);
        queue.add("first", live(now), now);
        queue.add("second", live(now), now);
        queue.add("first", live(now), now);
        let order: Vec<_> = std::iter::from_fn(|| popped(&mut queue, now + SECOND)).collect();
        assert_eq!(order, ["first", "second", "late"]);
    }

    #[test]
    fn what_happens_now_goes_before_the_initial_list() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        for key in ["old", "older", "changed"] {
            queue.add(key, listed(now), now);
        }
        queue.add("new", live(now), now);
        queue.add("changed", live(now), now);
        let order: Vec<_> = std::iter::from_fn(|| queue.pop(now).map(|job| (job.key, job.why))).collect();
        let expected = [
            ("new", Why::Changed),
            ("changed", Why::Changed),
            ("old", Why::Listed),
            ("older", Why::Listed),
        ];
        assert_eq!(order, expected);
    }

    #[test]
    fn a_storm_of_events_does_not_starve_the_initial_list() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        for key in 0..100 {
            queue.add(key, listed(now), now);
        }
        let mut from_background = 0;
        for key in 1_000..1_800 {
            queue.add(key, live(now), now);
            from_background += u32::from(popped(&mut queue, now).unwrap() < 1_000);
        }
        assert_eq!(from_background, 800 / SHARE);
    }

    #[test]
    fn a_queue_that_was_long_gives_its_memory_back() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        for key in 0..50_000 {
            queue.add(key, listed(now), now);
        }
        while let Some(key) = popped(&mut queue, now) {
            queue.done(&key, now);
        }
        assert!(queue.entries.capacity() <= SMALL, "{}", queue.entries.capacity());
        assert_eq!(queue.counts(), (0, 0, 0));
    }
}
