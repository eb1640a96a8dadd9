//! Who watches what. Finding the watchers of a key costs a few look-ups, however many others there are; handing a change
//! to one never waits.

use crate::{
    Error, Event, Result, Watch,
    history::{Change, Chunk},
    view::View,
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
pub(crate) struct Watchers {
    limit: usize,
    groups: Mutex<Groups>,
    published: AtomicU64,
}

/// Watchers by prefix; a closed store has none and takes none.
#[derive(Default)]
struct Groups {
    by_prefix: BTreeMap<Bytes, HashMap<u64, Watcher>>,
    next_id: u64,
    is_closed: bool,
}

struct Watcher {
    queue: mpsc::UnboundedSender<Result<Batch>>,
    queued: Arc<AtomicUsize>,
    /// It reads from the history what happened up to here, also where that is yet to be published.
    until: u64,
}

/// Some events, shared by all who watch the same prefix, and how far a watcher has come in them.
#[derive(Clone, Default)]
pub(crate) struct Batch {
    pub events: Arc<[Arc<Event>]>,
    pub at: usize,
    cost: usize,
}

/// What a watcher has not taken yet. Dropping it takes the watcher off the list.
pub(crate) struct Queue {
    batches: mpsc::UnboundedReceiver<Result<Batch>>,
    queued: Arc<AtomicUsize>,
    watchers: Arc<Watchers>,
    prefix: Bytes,
    id: u64,
}

impl Watchers {
    pub fn new(limit: usize, revision: u64) -> Watchers {
        Watchers {
            limit,
            groups: Mutex::default(),
            published: AtomicU64::new(revision),
        }
    }

    /// Adds a watcher. `past` reads the history, the revision at which it ends, and where its values are, while nothing is
    /// published.
    pub fn add<P>(self: &Arc<Self>, prefix: Bytes, after: u64, past: P) -> Result<Watch>
    where
        P: FnOnce() -> Result<(Vec<Arc<Chunk>>, u64, View)>,
    {
        let (queue, batches) = mpsc::unbounded_channel();
        let queued = Arc::new(AtomicUsize::new(0));
        let mut groups = self.groups();
        if groups.is_closed {
            return Err(Error::Closed);
        }
        let (chunks, until, view) = past()?;
        let id = groups.next_id;
        groups.next_id += 1;
        let watcher = Watcher { queue, queued: queued.clone(), until };
        groups.by_prefix.entry(prefix.clone()).or_default().insert(id, watcher);
        drop(groups);
        let past = Past {
            prefix: prefix.clone(),
            after,
            chunks: chunks.into(),
            until,
            at: 0,
            view,
            ready: Default::default(),
        };
        Ok(Watch::new(past, Queue { batches, queued, watchers: self.clone(), prefix, id }))
    }

    /// Queues changes to those who watch them; who has left too much untaken is ended, and so is everybody where what was
    /// there before cannot be read.
    pub fn publish(&self, changes: &[Change], revision: u64, view: impl FnOnce() -> View) {
        let mut groups = self.groups();
        if !groups.by_prefix.is_empty() {
            match groups.sort(changes, &view()) {
                Ok(sorted) => sorted.into_iter().for_each(|(prefix, events)| groups.send(&prefix, events, self.limit)),
                Err(error) => groups.end(|| error.repeated()),
            }
        }
        // Only after the queues have them, so that an empty queue means that its watcher has seen everything until here.
        self.published.store(revision, Ordering::Release);
    }

    /// Ends all watches, and takes no more.
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
    /// Sorts changes by the prefixes under which they are watched.
    fn sort(&self, changes: &[Change], view: &View) -> Result<HashMap<Bytes, Vec<Arc<Event>>>> {
        let mut sorted: HashMap<Bytes, Vec<Arc<Event>>> = HashMap::new();
        for change in changes {
            let mut prefixes = Vec::new();
            self.prefixes_of(change.record.key(), |prefix| prefixes.push(prefix));
            if prefixes.is_empty() {
                continue;
            }
            let event = Arc::new(view.event(change)?);
            for prefix in prefixes {
                match sorted.get_mut(prefix) {
                    Some(events) => events.push(event.clone()),
                    None => drop(sorted.insert(prefix.clone(), vec![event.clone()])),
                }
            }
        }
        Ok(sorted)
    }

    fn end(&mut self, error: impl Fn() -> Error) {
        let groups = std::mem::take(&mut self.by_prefix);
        for watcher in groups.into_values().flat_map(HashMap::into_values) {
            watcher.end(error());
        }
    }

    /// Visits each watched prefix of a key, longest first.
    fn prefixes_of<'a>(&'a self, key: &[u8], mut visit: impl FnMut(&'a Bytes)) {
        let mut longest = key.len();
        loop {
            // A prefix of the key that sorts below another watched prefix which is not above the key is also a prefix of
            // that one, so what both share bounds the next candidate.
            let bound = (Bound::Unbounded, Bound::Included(&key[..longest]));
            let Some((prefix, _)) = self.by_prefix.range::<[u8], _>(bound).next_back() else {
                return;
            };
            let shared = prefix.iter().zip(key).take_while(|(a, b)| a == b).count();
            if shared < prefix.len() {
                longest = shared;
                continue;
            }
            visit(prefix);
            if prefix.is_empty() {
                return;
            }
            longest = prefix.len() - 1;
        }
    }

    fn send(&mut self, prefix: &Bytes, events: Vec<Arc<Event>>, limit: usize) {
        let Some(group) = self.by_prefix.get_mut(prefix) else {
            return;
        };
        let cost = events.iter().map(|event| cost(event)).sum();
        let batch = Batch { events: events.into(), at: 0, cost };
        for (_, watcher) in group.extract_if(|_, watcher| !watcher.take(&batch, limit)) {
            watcher.end(Error::Lagged { prefix: prefix.clone() });
        }
        if group.is_empty() {
            self.by_prefix.remove(prefix);
        }
    }
}

/// What an untaken event may keep from being freed.
fn cost(event: &Event) -> usize {
    // The value before is the last one of an earlier event, as a rule, but not where that one is taken.
    let previous = event.previous.as_ref().map_or(0, |entry| entry.value.len());
    size_of::<Event>() + event.key.len() + event.last.len().max(previous)
}

impl Watcher {
    /// Queues a batch, unless too much is queued already.
    fn take(&self, batch: &Batch, limit: usize) -> bool {
        if batch.events.last().is_none_or(|event| event.revision <= self.until) {
            return true;
        }
        if self.queued.load(Ordering::Relaxed) > limit {
            return false;
        }
        self.queued.fetch_add(batch.cost, Ordering::Relaxed);
        // A watch that is being dropped takes itself off the list.
        self.queue.send(Ok(batch.clone())).ok();
        true
    }

    fn end(self, error: Error) {
        self.queue.send(Err(error)).ok();
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
        self.watchers.published.load(Ordering::Acquire)
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        let mut groups = self.watchers.groups();
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
    use crate::{
        Value,
        record::{Place, Record},
    };

    fn change(revision: u64, length: usize) -> Change {
        let place = Place { revision, created: revision, position: 0 };
        let record = Record::put(b"/a", &Value::plain("v".repeat(length)), place);
        Change { record, previous: None }
    }

    /// A commit is acknowledged before it is published, and whoever made it may watch from there at once.
    #[tokio::test]
    async fn what_a_watcher_has_seen_already_does_not_count_as_untaken() {
        let watchers = Arc::new(Watchers::new(1_000, 0));
        let mut watch = watchers.add("/".into(), 1, || Ok((Vec::new(), 1, View::default()))).unwrap();
        for (revision, length) in [(1, 5_000), (2, 10), (3, 10)] {
            watchers.publish(&[change(revision, length)], revision, View::default);
        }
        let revisions = [watch.next().await, watch.next().await].map(|event| event.unwrap().unwrap().revision);
        assert_eq!(revisions, [2, 3]);
    }
}
