//! What an operator remembers of its events: a bounded history to ask, and a stream to follow.

use crate::Key;
use crate::event::{Event, EventPolicy, Regarding, Severity};
use futures::Stream;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};
use tokio::{
    sync::broadcast::{self, error::RecvError},
    time::Instant,
};

/// How many events a follower may be behind before it misses some.
const FOLLOWED: usize = 1_024;

/// The events of an operator, as far as it remembers them. Clones are handles to the same ones.
///
/// Nothing is lost here that was not published: also what was over an object's limit is remembered.
#[derive(Clone, Debug)]
pub struct Events {
    state: Arc<Mutex<History>>,
    news: broadcast::Sender<EventRecord>,
}

/// An event as it is remembered.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct EventRecord {
    /// The API version of the object that it is about.
    pub api_version: String,
    /// The kind of that object.
    pub kind: String,
    /// Its namespace and name.
    pub object: Key,
    /// Its uid.
    pub uid: String,
    /// How bad it is.
    pub severity: Severity,
    /// Why, in one CamelCase word.
    pub reason: String,
    /// What was being done, if that was said.
    pub action: Option<String>,
    /// The sentence.
    pub note: String,
    /// How often it happened.
    pub count: u32,
    /// When it happened first.
    pub first: Time,
    /// When it happened last.
    pub last: Time,
}

/// Which events are meant; all, unless something is asked for.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct EventFilter {
    kind: Option<String>,
    object: Option<Key>,
    event_type: Option<String>,
    severity: Option<Severity>,
    reason: Option<String>,
    since: Option<Time>,
}

impl EventFilter {
    /// Every event.
    pub fn new() -> EventFilter {
        EventFilter::default()
    }

    /// About objects of this kind.
    pub fn kind(mut self, kind: impl Into<String>) -> EventFilter {
        self.kind = Some(kind.into());
        self
    }

    /// About the object of this namespace and name.
    pub fn object(mut self, key: Key) -> EventFilter {
        self.object = Some(key);
        self
    }

    /// Of this Kubernetes type: `Normal` or `Warning`.
    pub fn event_type(mut self, event_type: impl Into<String>) -> EventFilter {
        self.event_type = Some(event_type.into());
        self
    }

    /// At least this bad.
    pub fn severity(mut self, least: Severity) -> EventFilter {
        self.severity = Some(least);
        self
    }

    /// For this reason.
    pub fn reason(mut self, reason: impl Into<String>) -> EventFilter {
        self.reason = Some(reason.into());
        self
    }

    /// That happened at this time or later, the last time at least.
    pub fn since(mut self, time: Time) -> EventFilter {
        self.since = Some(time);
        self
    }

    fn takes(&self, record: &EventRecord) -> bool {
        self.kind.as_ref().is_none_or(|kind| record.kind == *kind)
            && self.object.as_ref().is_none_or(|object| record.object == *object)
            && self.event_type.as_ref().is_none_or(|wanted| record.severity.event_type() == wanted)
            && self.severity.is_none_or(|least| record.severity >= least)
            && self.reason.as_ref().is_none_or(|reason| record.reason == *reason)
            && self.since.as_ref().is_none_or(|since| record.last.0 >= since.0)
    }
}

#[derive(Debug)]
struct History {
    records: VecDeque<Entry>,
    /// The number of the first record.
    first: u64,
    index: HashMap<Id, u64>,
    window: Duration,
    most: usize,
}

type Id = (Box<str>, Event);

#[derive(Debug)]
struct Entry {
    record: EventRecord,
    id: Id,
    last: Instant,
}

impl Events {
    pub(super) fn new(policy: &EventPolicy) -> Events {
        let history = History {
            records: VecDeque::new(),
            first: 0,
            index: HashMap::new(),
            window: policy.window,
            most: policy.history,
        };
        Events {
            state: Arc::new(Mutex::new(history)),
            news: broadcast::channel(FOLLOWED).0,
        }
    }

    /// The events that are remembered and meant, the oldest first.
    pub fn query(&self, filter: &EventFilter) -> Vec<EventRecord> {
        let state = self.lock();
        let records = state.records.iter().map(|entry| &entry.record);
        records.filter(|record| filter.takes(record)).cloned().collect()
    }

    /// The events from now on, each time one happens. Who does not keep up misses the oldest; [`Events::query`] has them.
    pub fn stream(&self) -> impl Stream<Item = EventRecord> + Send + 'static {
        futures::stream::unfold(self.news.subscribe(), |mut news| async move {
            loop {
                match news.recv().await {
                    Ok(record) => return Some((record, news)),
                    Err(RecvError::Lagged(missed)) => tracing::warn!(missed, "a follower of events does not keep up"),
                    Err(RecvError::Closed) => return None,
                }
            }
        })
    }

    /// Remembers an occurrence.
    pub(super) fn record(&self, regarding: &Regarding, event: &Event, time: Time, now: Instant) {
        let record = self.lock().record(regarding, event, time, now);
        // There may be no follower.
        self.news.send(record).unwrap_or_default();
    }

    fn lock(&self) -> MutexGuard<'_, History> {
        self.state.lock().expect("nothing panics under this lock")
    }
}

impl History {
    fn record(&mut self, regarding: &Regarding, event: &Event, time: Time, now: Instant) -> EventRecord {
        let id = (regarding.uid.clone(), event.clone());
        let known = self.index.get(&id).map(|number| (number - self.first) as usize);
        if let Some(entry) = known.and_then(|index| self.records.get_mut(index))
            && now.duration_since(entry.last) < self.window
        {
            entry.last = now;
            (entry.record.count, entry.record.last) = (entry.record.count + 1, time);
            return entry.record.clone();
        }
        let record = EventRecord {
            api_version: regarding.api_version.clone(),
            kind: regarding.kind.clone(),
            object: regarding.key.clone(),
            uid: regarding.uid.to_string(),
            severity: event.severity,
            reason: event.reason.clone(),
            action: event.action.clone(),
            note: event.note.clone(),
            count: 1,
            first: time.clone(),
            last: time,
        };
        self.index.insert(id.clone(), self.first + self.records.len() as u64);
        self.records.push_back(Entry { record: record.clone(), id, last: now });
        while self.records.len() > self.most {
            self.forget_oldest();
        }
        record
    }

    fn forget_oldest(&mut self) {
        if let Some(entry) = self.records.pop_front() {
            if self.index.get(&entry.id) == Some(&self.first) {
                self.index.remove(&entry.id);
            }
            self.first += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::StreamExt;

    fn regarding(name: &str) -> Regarding {
        Regarding {
            api_version: "v1".into(),
            kind: "ConfigMap".into(),
            key: Key::namespaced("default", name),
            uid: name.into(),
        }
    }

    fn time(second: i64) -> Time {
        Time(jiff::Timestamp::from_second(second).unwrap())
    }

    fn events(history: usize) -> Events {
        Events::new(&EventPolicy { history, ..EventPolicy::default() })
    }

    #[test]
    fn the_history_is_asked_by_object_type_severity_reason_and_time() {
        let (events, now) = (events(10), Instant::now());
        let severities = [Severity::Info, Severity::Warning, Severity::Error, Severity::Critical];
        for (second, severity) in (0..).zip(severities) {
            let name = if second < 2 { "ada" } else { "bob" };
            let event = Event::new(severity, format!("Reason{second}"), "…");
            events.record(&regarding(name), &event, time(second), now);
        }
        let reasons = |filter: EventFilter| -> Vec<String> {
            events.query(&filter).into_iter().map(|record| record.reason).collect()
        };
        let all = EventFilter::new;
        assert_eq!(reasons(all()).len(), 4);
        assert_eq!(reasons(all().object(Key::namespaced("default", "ada"))), ["Reason0", "Reason1"]);
        assert_eq!(reasons(all().event_type("Normal")), ["Reason0"]);
        assert_eq!(reasons(all().severity(Severity::Error)), ["Reason2", "Reason3"]);
        assert_eq!(reasons(all().reason("Reason1")), ["Reason1"]);
        assert_eq!(reasons(all().since(time(3))), ["Reason3"]);
        assert_eq!(reasons(all().kind("Secret")).len(), 0);
    }

    #[test]
    fn repeats_within_the_window_are_counted_and_the_oldest_are_forgotten() {
        let (events, now) = (events(2), Instant::now());
        let seconds = Duration::from_secs;
        let record = |reason: &str, at: u64| {
            events.record(&regarding("ada"), &Event::normal(reason, "…"), time(at as i64), now + seconds(at));
        };
        record("A", 0);
        record("A", 30);
        record("B", 31);
        let told = || -> Vec<(String, u32)> {
            events
                .query(&EventFilter::new())
                .into_iter()
                .map(|record| (record.reason, record.count))
                .collect()
        };
        assert_eq!(told(), [("A".into(), 2), ("B".into(), 1)]);
        record("A", 200);
        assert_eq!(told(), [("B".into(), 1), ("A".into(), 1)], "a new one, since the window is over");
        record("A", 201);
        record("C", 202);
        record("B", 203);
        assert_eq!(told(), [("C".into(), 1), ("B".into(), 1)]);
    }

    #[tokio::test]
    async fn the_stream_tells_each_occurrence_from_then_on() {
        let (events, now) = (events(2), Instant::now());
        let record = |reason: &str| events.record(&regarding("ada"), &Event::normal(reason, "…"), time(0), now);
        record("Before");
        let mut stream = Box::pin(events.stream());
        record("A");
        record("A");
        let told = [stream.next().await.unwrap(), stream.next().await.unwrap()];
        assert_eq!(told.map(|record| (record.reason, record.count)), [("A".into(), 1), ("A".into(), 2)]);
    }
}
