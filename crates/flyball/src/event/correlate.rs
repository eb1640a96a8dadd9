//! Which events are published, which are counted, and which are too many: client-go's correlator (`tools/record/events_cache.go`),
//! except that what is over the limit is counted and not forgotten. Pure: the caller brings the time.

use crate::event::EventPolicy;
use crate::{Event, Key};
use std::{
    collections::{HashMap, HashSet},
    hash::{DefaultHasher, Hash, Hasher},
};
use tokio::time::Instant;

/// More objects than this are not limited one by one; those that were quiet for longest are forgotten.
const OBJECTS: usize = 4_096;
/// How the note of an event begins that stands for many.
const COMBINED: &str = "(combined from similar events): ";

/// Events that were published lately, and what each object may still cost.
pub(super) struct Correlator {
    policy: EventPolicy,
    series: HashMap<Id, Series>,
    similar: HashMap<(Box<str>, Event), Similar>,
    buckets: HashMap<Box<str>, Bucket>,
    /// When to look for what is over.
    sweep: Option<Instant>,
}

/// An object's uid, and the event; its note is empty where one event stands for many.
pub(super) type Id = (Box<str>, Event);

/// An event that is published, or about to be.
#[derive(Debug)]
pub(super) struct Series {
    /// Where it was published.
    pub(super) name: Option<Key>,
    pub(super) count: u32,
    /// The count that was published.
    pub(super) told: u32,
    last: Instant,
}

struct Similar {
    notes: HashSet<u64>,
    last: Instant,
}

#[derive(Clone, Copy)]
struct Bucket {
    tokens: f64,
    at: Instant,
}

/// What to do with an occurrence.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Publish it, with this note.
    Create(Id, String),
    /// Publish the new count of one that was published.
    Repeat(Id),
    /// It is counted; the count is published later.
    Later,
    /// It is over its object's limit.
    Drop,
}

impl Correlator {
    pub(super) fn new(policy: EventPolicy) -> Correlator {
        Correlator {
            policy,
            series: HashMap::new(),
            similar: HashMap::new(),
            buckets: HashMap::new(),
            sweep: None,
        }
    }

    /// Decides about one occurrence.
    pub(super) fn observe(&mut self, uid: &str, event: Event, now: Instant) -> Step {
        let (id, note) = self.combine(uid, event, now);
        let window = self.policy.window;
        let allowed = self.take(uid, now);
        match self.series.get_mut(&id) {
            Some(series) if now.duration_since(series.last) < window => {
                (series.count, series.last) = (series.count + 1, now);
                if allowed { Step::Repeat(id) } else { Step::Later }
            }
            _ if allowed => {
                self.series.insert(id.clone(), Series { name: None, count: 1, told: 0, last: now });
                Step::Create(id, note)
            }
            _ => Step::Drop,
        }
    }

    /// One event in place of many that differ in their note only.
    fn combine(&mut self, uid: &str, event: Event, now: Instant) -> (Id, String) {
        let blank = (Box::from(uid), Event { note: String::new(), ..event.clone() });
        let similar = self.similar.entry(blank.clone());
        let similar = similar.or_insert_with(|| Similar { notes: HashSet::new(), last: now });
        if now.duration_since(similar.last) >= self.policy.window {
            similar.notes.clear();
        }
        similar.last = now;
        similar.notes.insert(hash(&event.note));
        if similar.notes.len() > self.policy.similar {
            let note = format!("{COMBINED}{}", event.note);
            return (blank, note);
        }
        let note = event.note.clone();
        ((uid.into(), event), note)
    }

    /// Takes one of the writes that the object may still cost.
    fn take(&mut self, uid: &str, now: Instant) -> bool {
        let full = f64::from(self.policy.burst);
        let refill = self.policy.refill.as_secs_f64().max(f64::MIN_POSITIVE);
        let bucket = self.buckets.entry(uid.into()).or_insert(Bucket { tokens: full, at: now });
        let refilled = now.duration_since(bucket.at).as_secs_f64() / refill;
        (bucket.tokens, bucket.at) = ((bucket.tokens + refilled).min(full), now);
        let allowed = bucket.tokens >= 1.0;
        if allowed {
            bucket.tokens -= 1.0;
        }
        allowed
    }

    /// The series of an event that was published.
    pub(super) fn series(&mut self, id: &Id) -> Option<&mut Series> {
        self.series.get_mut(id)
    }

    /// Forgets a series, so that the next occurrence is published anew.
    pub(super) fn forget(&mut self, id: &Id) {
        self.series.remove(id);
    }

    /// The events whose count is higher than what was published of it.
    pub(super) fn behind(&self) -> Vec<Id> {
        let behind = |series: &Series| series.name.is_some() && series.count > series.told;
        self.series
            .iter()
            .filter(|(_, series)| behind(series))
            .map(|(id, _)| id.clone())
            .collect()
    }

    /// Forgets what is over, at most once per window. Call it after the counts were published.
    pub(super) fn sweep(&mut self, now: Instant) {
        let window = self.policy.window;
        if self.sweep.is_some_and(|sweep| now < sweep) {
            return;
        }
        self.sweep = Some(now + window);
        let over = |last: Instant| now.duration_since(last) >= window;
        self.series.retain(|_, series| !over(series.last) || series.count > series.told);
        self.similar.retain(|_, similar| !over(similar.last));
        let full = self.policy.refill * self.policy.burst;
        self.buckets.retain(|_, bucket| now.duration_since(bucket.at) < full);
        if self.buckets.len() > OBJECTS {
            let mut times: Vec<_> = self.buckets.values().map(|bucket| bucket.at).collect();
            times.sort_unstable();
            let oldest = times[times.len() - OBJECTS];
            self.buckets.retain(|_, bucket| bucket.at >= oldest);
        }
    }
}

fn hash(note: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    note.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const SECOND: Duration = Duration::from_secs(1);

    fn event(note: &str) -> Event {
        Event::warning("Broken", note)
    }

    /// What is done, in a word.
    fn word(step: &Step) -> &'static str {
        match step {
            Step::Create(..) => "create",
            Step::Repeat(_) => "repeat",
            Step::Later => "later",
            Step::Drop => "drop",
        }
    }

    #[test]
    fn the_same_event_within_the_window_is_one() {
        let (mut correlator, now) = (Correlator::new(EventPolicy::default()), Instant::now());
        let mut at = |seconds: u32, note| word(&correlator.observe("u", event(note), now + SECOND * seconds));
        assert_eq!(
            [at(0, "a"), at(1, "a"), at(1, "b"), at(60, "a"), at(120, "a")],
            ["create", "repeat", "create", "repeat", "create"]
        );
    }

    #[test]
    fn many_that_differ_in_their_note_become_one() {
        let (mut correlator, now) = (Correlator::new(EventPolicy::default()), Instant::now());
        for number in 0..10 {
            assert_eq!(word(&correlator.observe("u", event(&number.to_string()), now)), "create");
        }
        let Step::Create(id, note) = correlator.observe("u", event("10"), now) else {
            panic!("a new event")
        };
        assert_eq!((note.as_str(), id.1.note.as_str()), ("(combined from similar events): 10", ""));
        assert_eq!(correlator.observe("u", event("11"), now), Step::Repeat(id));
        assert_eq!(word(&correlator.observe("other", event("11"), now)), "create");
        let later = now + SECOND * 61;
        assert_eq!(word(&correlator.observe("u", event("12"), later)), "create");
    }

    #[test]
    fn an_object_costs_a_burst_and_then_one_write_per_refill_while_counts_go_on() {
        let (mut correlator, now) = (Correlator::new(EventPolicy::default()), Instant::now());
        let mut id = None;
        for number in 0..25 {
            match correlator.observe("u", event("a"), now) {
                Step::Create(new, _) => id = Some(new),
                Step::Repeat(_) => {}
                step => panic!("{number}: {step:?}"),
            }
        }
        assert_eq!(correlator.observe("u", event("a"), now), Step::Later);
        assert_eq!(correlator.observe("u", event("b"), now), Step::Drop);
        let id = id.unwrap();
        let series = correlator.series(&id).unwrap();
        (series.name, series.told) = (Some(Key::namespaced("default", "u.1")), 25);
        assert_eq!(series.count, 26);
        assert_eq!(correlator.behind(), std::slice::from_ref(&id));
        correlator.series(&id).unwrap().told = 26;
        assert_eq!(correlator.behind(), []);
        assert_eq!(word(&correlator.observe("u", event("b"), now + SECOND * 300)), "create");
        assert_eq!(word(&correlator.observe("u", event("c"), now + SECOND * 300)), "drop");
    }

    #[test]
    fn what_is_over_is_forgotten_but_not_what_was_not_told() {
        let (mut correlator, now) = (Correlator::new(EventPolicy::default()), Instant::now());
        let Step::Create(told, _) = correlator.observe("u", event("a"), now) else {
            panic!("a new event")
        };
        let Step::Create(untold, _) = correlator.observe("v", event("a"), now) else {
            panic!("a new event")
        };
        correlator.series(&told).unwrap().told = 1;
        correlator.sweep(now + SECOND * 60);
        assert!(correlator.series(&told).is_none() && correlator.series(&untold).is_some());
        assert!(correlator.similar.is_empty() && correlator.buckets.len() == 2);
        correlator.sweep(now + SECOND * 60 + EventPolicy::default().refill * 25);
        assert!(correlator.buckets.is_empty());
    }
}
