//! The objects of one kind, as last seen or last written by this process, and who is told when they change.

use super::{ReadError, WatchState, deletions::Deletions};
use crate::{
    Key, Why,
    kind::{Form, Kind},
    object::{Object, Owner},
    queue::Priority,
    work::WorkQueue,
};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    fmt,
    sync::{Arc, Mutex, MutexGuard, Weak},
};
use tokio::{sync::watch, time::Instant};

/// One kind's part of the cache.
///
/// A watch tells of changes in the order of their resource versions, so the last version it told of decides whether the
/// answer to one of our own writes is news (it is put in at once, so that readers see it) or history (it is dropped).
pub(crate) struct Mirror {
    kind: Kind,
    name: Arc<str>,
    state: Mutex<State>,
    health: watch::Sender<Health>,
}

/// Is told of every change, also of those that were missed while a watch was down.
#[derive(Clone)]
pub(crate) struct Subscriber {
    /// Whoever has no queue any more is forgotten.
    pub(crate) queue: Weak<WorkQueue>,
    pub(crate) tell: Tell,
}

type Tell = Arc<dyn Fn(&Mirror, &Change, &WorkQueue) + Send + Sync>;

impl Subscriber {
    pub(crate) fn is_there(&self) -> bool {
        self.queue.strong_count() > 0
    }

    fn tell(&self, mirror: &Mirror, change: &Change) {
        if let Some(queue) = self.queue.upgrade() {
            (self.tell)(mirror, change, &queue);
        }
    }
}

/// An object before and after: created without `old`, deleted without `new`.
pub(crate) struct Change {
    pub(crate) old: Option<Arc<Object>>,
    pub(crate) new: Option<Arc<Object>>,
    /// Whether a list told of it, not a watch or one of our own writes.
    pub(crate) listed: bool,
}

impl Change {
    pub(crate) fn key(&self) -> Option<&Key> {
        self.new.as_ref().or(self.old.as_ref()).map(|object| &object.key)
    }

    /// Whether the object is gone, or begins to be deleted, or another one has taken its name.
    pub(crate) fn is_deletion(&self) -> bool {
        match (&self.old, &self.new) {
            (_, None) => true,
            (None, Some(new)) => new.terminating,
            (Some(old), Some(new)) => old.uid != new.uid || (new.terminating && !old.terminating),
        }
    }

    pub(crate) fn why(&self) -> Why {
        match &self.old {
            _ if self.is_deletion() => Why::Deleted,
            Some(_) => Why::Changed,
            None if self.listed => Why::Listed,
            None => Why::Created,
        }
    }

    /// An object that a list merely finds is no news; one that it finds changed is.
    pub(crate) fn priority(&self) -> Priority {
        match self.old {
            None if self.listed => Priority::Background,
            _ => Priority::Live,
        }
    }
}

/// Whether a kind is listed and watched.
#[derive(Clone, Debug, Default)]
pub(crate) struct Health {
    pub(crate) listed: bool,
    pub(crate) failure: Option<Arc<str>>,
    pub(crate) failing_since: Option<Instant>,
    pub(crate) lists: u64,
    pub(crate) watches: u64,
}

impl Health {
    pub(crate) fn is_well(&self) -> bool {
        self.listed && self.failure.is_none()
    }
}

/// How much a mirror holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) objects: usize,
    pub(crate) bytes: usize,
}

#[derive(Default)]
struct State {
    objects: BTreeMap<Key, Arc<Object>>,
    /// What the objects take, about.
    bytes: usize,
    /// Keys of objects by the uids of their owners.
    dependents: HashMap<Box<str>, BTreeSet<Key>>,
    /// The last version that the watch or the list told of.
    seen: u64,
    deletions: Deletions,
    notes: HashMap<Key, Notes>,
    subscribers: Vec<Subscriber>,
}

/// What this process last wrote to an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Notes {
    /// The hash of what was applied, and the object's fingerprint afterwards.
    pub(crate) applied: Option<(u64, u64)>,
    /// The hash of the status that was set, and the object's version afterwards.
    pub(crate) status: Option<(u64, u64)>,
}

impl Mirror {
    pub(crate) fn new(kind: Kind) -> Mirror {
        Mirror {
            name: kind.name().into(),
            kind,
            state: Mutex::default(),
            health: watch::Sender::default(),
        }
    }

    pub(crate) fn kind(&self) -> &Kind {
        &self.kind
    }

    /// The kind's name.
    pub(crate) fn name(&self) -> Arc<str> {
        self.name.clone()
    }

    /// Tells `subscriber` of every object that is there, and of every change from now on.
    pub(crate) fn subscribe(&self, subscriber: Subscriber) {
        let objects = {
            let mut state = self.lock();
            state.subscribers.retain(Subscriber::is_there);
            state.subscribers.push(subscriber.clone());
            state.objects.values().cloned().collect::<Vec<_>>()
        };
        for object in objects {
            subscriber.tell(self, &Change { old: None, new: Some(object), listed: true });
        }
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Arc<Object>> {
        self.lock().objects.get(key).cloned()
    }

    /// The objects of one namespace, or all.
    pub(crate) fn list(&self, namespace: Option<&str>) -> Vec<Arc<Object>> {
        let state = self.lock();
        let Some(namespace) = namespace else {
            return state.objects.values().cloned().collect();
        };
        let first = Key::namespaced(namespace, "");
        let from = state.objects.range(first..).map(|(_, object)| object);
        from.take_while(|object| object.key.namespace() == Some(namespace)).cloned().collect()
    }

    /// The objects that name the object with this uid as an owner.
    pub(crate) fn dependents_of(&self, uid: &str) -> Vec<Arc<Object>> {
        let state = self.lock();
        let keys = state.dependents.get(uid).into_iter().flatten();
        keys.filter_map(|key| state.objects.get(key).cloned()).collect()
    }

    /// The object that an object in `namespace` names as its owner, if it is of this kind and there.
    pub(crate) fn owner(&self, owner: &Owner<'_>, namespace: Option<&str>) -> Option<Arc<Object>> {
        if !owner.is_a(&self.kind) {
            return None;
        }
        let beside = Key::from(owner.name.as_ref()).in_namespace(namespace);
        let found = self.get(&beside).or_else(|| self.get(&Key::from(owner.name.as_ref())));
        found.filter(|found| *found.uid == *owner.uid)
    }

    pub(crate) fn notes(&self, key: &Key) -> Notes {
        self.lock().notes.get(key).copied().unwrap_or_default()
    }

    /// Takes a note about an object, which is forgotten with the object.
    pub(crate) fn note(&self, key: &Key, take: impl FnOnce(&mut Notes)) {
        let mut state = self.lock();
        if state.objects.contains_key(key) {
            take(state.notes.entry(key.clone()).or_default());
        }
    }

    /// The watch reports an object as added or modified.
    pub(crate) fn changed(&self, object: Object) {
        let object = self.formed(object);
        let mut state = self.lock();
        state.seen = state.seen.max(object.version);
        let change = state.put(object);
        self.tell(state, change);
    }

    /// The watch reports an object as deleted.
    pub(crate) fn deleted(&self, object: &Object) {
        let mut state = self.lock();
        state.seen = state.seen.max(object.version);
        state.deletions.tell(object);
        let change = state.remove(&object.key, &object.uid);
        self.tell(state, change);
    }

    /// A list begins.
    pub(crate) fn list_began(&self) {
        self.lock().deletions.list_began();
    }

    /// A list, or one page of it, contains an object.
    pub(crate) fn listed(&self, object: Object) {
        let object = self.formed(object);
        let mut state = self.lock();
        let change = state.put(object).map(|change| Change { listed: true, ..change });
        self.tell(state, change);
    }

    /// A list ended at `version` and contained the objects with these uids and no others: what it lacks was deleted, unless it
    /// is younger.
    pub(crate) fn list_ended(&self, uids: &HashSet<Box<str>>, version: u64) {
        let mut state = self.lock();
        state.seen = state.seen.max(version);
        let missing = state
            .objects
            .values()
            .filter(|object| !uids.contains(&object.uid) && object.version <= version);
        let missing: Vec<_> = missing.map(|object| (object.key.clone(), object.uid.clone())).collect();
        let changes: Vec<_> = missing.iter().filter_map(|(key, uid)| state.remove(key, uid)).collect();
        state.deletions.list_ended(uids);
        self.tell(state, changes);
        self.health.send_modify(|health| {
            *health = Health {
                listed: true,
                failure: None,
                failing_since: None,
                lists: health.lists + 1,
                ..*health
            };
        });
    }

    /// The watch moved on without news for us.
    pub(crate) fn bookmarked(&self, version: u64) {
        let mut state = self.lock();
        state.seen = state.seen.max(version);
    }

    /// This process wrote an object and this is the API server's answer.
    pub(crate) fn written(&self, object: Object) {
        let object = self.formed(object);
        let mut state = self.lock();
        let change = if object.version > state.seen {
            state.put(object)
        } else {
            None
        };
        self.tell(state, change);
    }

    /// This process deleted an object, and it is gone.
    pub(crate) fn removed(&self, key: &Key, uid: &str) {
        let mut state = self.lock();
        let change = state.remove(key, uid);
        let version = change.iter().flat_map(|change| &change.old).map(|old| old.version).next();
        state.deletions.made(key, uid, version.unwrap_or_default());
        self.tell(state, change);
    }

    /// Listing or watching failed; it is tried again.
    pub(crate) fn failed(&self, failure: &str) {
        self.health.send_modify(|health| {
            health.failure = Some(failure.into());
            health.failing_since.get_or_insert_with(Instant::now);
        });
    }

    /// Watching works, for the first time or again.
    pub(crate) fn watching(&self) {
        self.health.send_if_modified(|health| {
            health.watches += 1;
            health.failing_since = None;
            health.failure.take().is_some()
        });
    }

    /// How the watch fares, and how much it has brought.
    pub(crate) fn watch_state(&self) -> WatchState {
        let health = self.health.borrow().clone();
        let usage = self.usage();
        WatchState {
            kind: self.kind.name().to_owned(),
            api_version: self.kind.resource.api_version.clone(),
            synced: health.listed,
            failing_since: health.failing_since,
            last_error: health.failure,
            lists: health.lists,
            watches: health.watches,
            objects: usage.objects,
            bytes: usage.bytes,
        }
    }

    /// Whether the kind is listed and watched now.
    pub(crate) fn health(&self) -> Health {
        self.health.borrow().clone()
    }

    /// How much is held.
    pub(crate) fn usage(&self) -> Usage {
        let state = self.lock();
        Usage { objects: state.objects.len(), bytes: state.bytes }
    }

    /// Waits until the kind has been listed once, unless that fails.
    pub(crate) async fn ready(&self) -> Result<(), ReadError> {
        let mut health = self.health.subscribe();
        let health = health
            .wait_for(|health| health.listed || health.failure.is_some())
            .await
            .expect("the sender is ours");
        match &health.failure {
            Some(failure) if !health.listed => {
                Err(ReadError::NotListed { kind: self.kind.name().into(), failure: failure.clone() })
            }
            _ => Ok(()),
        }
    }

    /// As much of an object as is kept.
    fn formed(&self, object: Object) -> Object {
        match self.kind.form {
            Form::Whole => object,
            Form::Metadata => object.into_metadata(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no code of others runs under this lock")
    }

    fn tell(&self, state: MutexGuard<'_, State>, changes: impl IntoIterator<Item = Change>) {
        let mut changes = changes.into_iter().peekable();
        if changes.peek().is_none() {
            return;
        }
        let subscribers = state.subscribers.clone();
        drop(state);
        for change in changes {
            subscribers.iter().for_each(|subscriber| subscriber.tell(self, &change));
        }
    }
}

impl State {
    fn put(&mut self, object: Object) -> Option<Change> {
        let current = self.objects.get(&object.key);
        let known = current.is_some_and(|current| object.version != 0 && current.version >= object.version);
        if known || self.deletions.cover(&object) {
            return None;
        }
        let new = Arc::new(object);
        self.bytes += new.bytes();
        let old = self.objects.insert(new.key.clone(), new.clone());
        if let Some(old) = &old {
            self.disown(old);
        }
        for owner in &new.owners {
            self.dependents.entry(owner.uid.as_ref().into()).or_default().insert(new.key.clone());
        }
        Some(Change { old, new: Some(new), listed: false })
    }

    fn remove(&mut self, key: &Key, uid: &str) -> Option<Change> {
        self.objects.get(key).filter(|current| &*current.uid == uid)?;
        let old = self.objects.remove(key)?;
        self.disown(&old);
        self.notes.remove(key);
        Some(Change { old: Some(old), new: None, listed: false })
    }

    /// Forgets what is known of an object that is replaced or gone.
    fn disown(&mut self, object: &Object) {
        self.bytes -= object.bytes();
        for owner in &object.owners {
            let Some(keys) = self.dependents.get_mut(&*owner.uid) else {
                continue;
            };
            keys.remove(&object.key);
            if keys.is_empty() {
                self.dependents.remove(&*owner.uid);
            }
        }
    }
}

impl fmt::Debug for Mirror {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} objects of {}", self.lock().objects.len(), self.kind.name())
    }
}

#[cfg(test)]
#[path = "mirror_model.rs"]
mod model;
