//! Fans changes out to watches. Finding the watches of a key costs a few look-ups, however many others there are; queuing a
//! change to one never waits.

use crate::{
    Error, Event, Result, Watch,
    history::{Change, Chunk},
    read_snapshot::ReadSnapshot,
    record::Record,
    watch::Past,
};
use bytes::Bytes;
use std::{
    collections::{BTreeMap, HashMap},
    ops::Bound,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};
use tokio::sync::mpsc;

/// The sending ends of all watches.
pub(crate) struct WatchHub {
    /// The most bytes of events that may be queued for a watch.
    max_queued: usize,
    groups: Mutex<Groups>,
    published: AtomicU64,
}

/// Watchers by prefix; a closed store has none and accepts none.
#[derive(Default)]
struct Groups {
    by_prefix: BTreeMap<Bytes, HashMap<u64, Watcher>>,
    next_id: u64,
    is_closed: bool,
}

struct Watcher {
    /// The revision up to which the watch reads the history.
    past_until: u64,
    sender: mpsc::UnboundedSender<Result<Batch>>,
    queued: Arc<AtomicUsize>,
}

/// Some events, shared by all watches of the same prefix, and the place of the next one to hand out.
#[derive(Clone, Default)]
pub(crate) struct Batch {
    pub events: Arc<[Arc<Event>]>,
    pub at: usize,
    cost: usize,
}

/// The events queued for a watch. Dropping it removes the watcher.
pub(crate) struct Queue {
    batches: mpsc::UnboundedReceiver<Result<Batch>>,
    queued: Arc<AtomicUsize>,
    hub: Arc<WatchHub>,
    prefix: Bytes,
    id: u64,
}

impl WatchHub {
    pub fn new(max_queued: usize, revision: u64) -> WatchHub {
        WatchHub {
            max_queued,
            groups: Mutex::default(),
            published: AtomicU64::new(revision),
        }
    }

    /// Adds a watcher. `past` returns the history, the revision at which it ends, and a snapshot of its values; nothing is
    /// published meanwhile.
    pub fn add<P>(self: &Arc<Self>, prefix: Bytes, after: u64, past: P) -> Result<Watch>
    where
        P: FnOnce() -> Result<(Vec<Arc<Chunk>>, u64, ReadSnapshot)>,
    {
        let (sender, batches) = mpsc::unbounded_channel();
        let queued = Arc::new(AtomicUsize::new(0));
        let mut groups = self.groups();
        if groups.is_closed {
            return Err(Error::Closed);
        }
        let (chunks, until, snapshot) = past()?;
        let id = groups.next_id;
        groups.next_id += 1;
        let watcher = Watcher { past_until: until, sender, queued: queued.clone() };
        groups.by_prefix.entry(prefix.clone()).or_default().insert(id, watcher);
        drop(groups);
        let past = Past::new(prefix.clone(), after, until, chunks, snapshot);
        Ok(Watch::new(past, Queue { batches, queued, hub: self.clone(), prefix, id }))
    }

    /// Queues changes that are applied already to the watches of their keys; ends those that have too much queued, and
    /// those whose values cannot be read. The lock is not held while values are read: a watch that is added meanwhile
    /// reads these changes from the history.
    pub fn publish(&self, changes: &[Change], revision: u64, snapshot: impl FnOnce() -> ReadSnapshot) {
        let watched = self.groups().watched(changes);
        let events = collect(&watched, snapshot);
        let mut groups = self.groups();
        for (prefix, events) in events {
            match events {
                Ok(events) => groups.send(&prefix, events, self.max_queued),
                Err(error) => groups.end_prefix(&prefix, || error.clone()),
            }
        }
        // Only after the queues have them, so that an empty queue means that its watch has seen everything until here.
        self.published.store(revision, Ordering::Release);
    }

    /// Ends all watches, and accepts no more.
    pub fn close(&self) {
        self.groups().is_closed = true;
        self.end(|| Error::Closed);
    }

    /// Ends all watches.
    pub fn end(&self, error: impl Fn() -> Error) {
        self.groups().end(error);
    }

    fn groups(&self) -> MutexGuard<'_, Groups> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Groups {
    /// The changes that are watched, and under which prefixes.
    fn watched<'a>(&self, changes: &'a [Change]) -> Vec<(&'a Change, Vec<Bytes>)> {
        let with_prefixes = changes.iter().map(|change| (change, self.prefixes_of(change.record.key())));
        with_prefixes.filter(|(_, prefixes)| !prefixes.is_empty()).collect()
    }

    fn end(&mut self, error: impl Fn() -> Error) {
        let groups = std::mem::take(&mut self.by_prefix);
        for watcher in groups.into_values().flat_map(HashMap::into_values) {
            watcher.end(error());
        }
    }

    fn end_prefix(&mut self, prefix: &Bytes, error: impl Fn() -> Error) {
        let group = self.by_prefix.remove(prefix).unwrap_or_default();
        group.into_values().for_each(|watcher| watcher.end(error()));
    }

    /// The watched prefixes of a key, longest first.
    fn prefixes_of(&self, key: &[u8]) -> Vec<Bytes> {
        let (mut prefixes, mut longest) = (Vec::new(), key.len());
        loop {
            // A prefix of the key that sorts below another watched prefix which is not above the key is also a prefix of
            // that one, so what both share bounds the next candidate.
            let bound = (Bound::Unbounded, Bound::Included(&key[..longest]));
            let Some((prefix, _)) = self.by_prefix.range::<[u8], _>(bound).next_back() else {
                return prefixes;
            };
            let shared = prefix.iter().zip(key).take_while(|(a, b)| a == b).count();
            if shared < prefix.len() {
                longest = shared;
                continue;
            }
            prefixes.push(prefix.clone());
            if prefix.is_empty() {
                return prefixes;
            }
            longest = prefix.len() - 1;
        }
    }

    fn send(&mut self, prefix: &Bytes, events: Vec<Arc<Event>>, max_queued: usize) {
        let Some(group) = self.by_prefix.get_mut(prefix) else {
            return;
        };
        let cost = events.iter().map(|event| cost(event)).sum();
        let batch = Batch { events: events.into(), at: 0, cost };
        for (_, watcher) in group.extract_if(|_, watcher| !watcher.queue(&batch, max_queued)) {
            watcher.end(Error::Lagged { prefix: prefix.clone() });
        }
        if group.is_empty() {
            self.by_prefix.remove(prefix);
        }
    }
}

/// The events of watched changes, by prefix.
fn collect(
    watched: &[(&Change, Vec<Bytes>)],
    snapshot: impl FnOnce() -> ReadSnapshot,
) -> HashMap<Bytes, Result<Vec<Arc<Event>>>> {
    let mut by_prefix: HashMap<Bytes, Result<Vec<Arc<Event>>>> = HashMap::new();
    let is_in_memory = watched.iter().all(|(change, _)| change.values().all(Record::has_value));
    let snapshot = if is_in_memory {
        ReadSnapshot::default()
    } else {
        snapshot()
    };
    for (change, prefixes) in watched {
        let event = snapshot
            .events([*change])
            .map(|events| events.into_iter().map(Arc::new).collect::<Vec<_>>());
        for prefix in prefixes {
            let events = by_prefix.entry(prefix.clone()).or_insert_with(|| Ok(Vec::new()));
            match (&mut *events, &event) {
                (Ok(events), Ok(event)) => events.extend_from_slice(event),
                (Ok(_), Err(error)) => *events = Err(error.clone()),
                (Err(_), _) => {}
            }
        }
    }
    by_prefix
}

/// The bytes that a queued event may keep from being freed.
fn cost(event: &Event) -> usize {
    // The value before usually is the last one of an earlier event, but not where that one is handed out already.
    let previous = event.previous.as_ref().map_or(0, |entry| entry.value.len());
    size_of::<Event>() + event.key.len() + event.last.len().max(previous)
}

impl Watcher {
    /// Queues a batch unless the watch reads it from the history; returns `false` where too much is queued already.
    fn queue(&self, batch: &Batch, max_queued: usize) -> bool {
        if batch.events.last().is_some_and(|event| event.revision <= self.past_until) {
            return true;
        }
        if self.queued.load(Ordering::Relaxed) > max_queued {
            return false;
        }
        self.queued.fetch_add(batch.cost, Ordering::Relaxed);
        // Sending fails only where the watch is being dropped.
        self.sender.send(Ok(batch.clone())).ok();
        true
    }

    fn end(self, error: Error) {
        self.sender.send(Err(error)).ok();
    }
}

impl Queue {
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Batch>>> {
        let batch = std::task::ready!(self.batches.poll_recv(cx));
        if let Some(Ok(batch)) = &batch {
            self.queued.fetch_sub(batch.cost, Ordering::Relaxed);
        }
        Poll::Ready(batch)
    }

    pub fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// Returns the revision up to which everything has been queued.
    pub fn published(&self) -> u64 {
        self.hub.published.load(Ordering::Acquire)
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        let mut groups = self.hub.groups();
        let Some(group) = groups.by_prefix.get_mut(&self.prefix) else {
            return;
        };
        group.remove(&self.id);
        if group.is_empty() {
            groups.by_prefix.remove(&self.prefix);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Value, record::RecordId};

    fn change(revision: u64, length: usize) -> Change {
        let id = RecordId { revision, created: revision, position: 0 };
        let record = Record::put(b"/a", &Value::plain("v".repeat(length)), id);
        Change { record, previous: None }
    }

    #[tokio::test]
    async fn changes_that_a_watch_reads_from_the_history_are_not_queued() {
        let hub = Arc::new(WatchHub::new(1_000, 0));
        let past = || Ok((Vec::new(), 2, ReadSnapshot::default()));
        let mut watch = hub.add("/a".into(), 2, past).unwrap();
        for revision in 2..4 {
            hub.publish(&[change(revision, 2_000)], revision, ReadSnapshot::default);
        }
        assert_eq!(watch.next().await.unwrap().unwrap().revision, 3);
    }

    #[tokio::test]
    async fn a_value_that_cannot_be_read_ends_only_the_watches_of_its_key() {
        let hub = Arc::new(WatchHub::new(1_000, 0));
        let add = |prefix: &'static str| hub.add(prefix.into(), 0, || Ok((Vec::new(), 0, ReadSnapshot::default())));
        let (mut watch, mut other) = (add("/a").unwrap(), add("/b").unwrap());
        let unreadable = Change {
            previous: Some(change(1, 10).record.header_only()),
            ..change(2, 10)
        };
        hub.publish(&[unreadable], 2, ReadSnapshot::default);
        assert!(matches!(watch.next().await, Some(Err(Error::Closed))));
        let id = RecordId { revision: 3, created: 3, position: 0 };
        let record = Record::put(b"/b", &Value::plain("v"), id);
        hub.publish(&[Change { record, previous: None }], 3, ReadSnapshot::default);
        assert_eq!(other.next().await.unwrap().unwrap().revision, 3);
    }
}
