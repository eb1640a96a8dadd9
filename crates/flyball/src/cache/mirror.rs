//! The objects of one kind, as last seen or last written by this process, and the subscribers to their changes.

use crate::cache::change::{Change, Subscriber};
use crate::cache::contents::{Contents, Notes};
use crate::cache::deletions::Deletions;
use crate::cache::health::Health;
use crate::cache::index::IndexedBy;
use crate::cache::kind::{Form, Kind, Scope};
use crate::cache::object::{Object, Owner};
use crate::cache::{ReadError, WatchState};
use crate::{Key, Trigger};
use std::{
    collections::HashSet,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};
use tokio::{sync::watch, time::Instant};

/// One kind's part of the cache.
///
/// A watch tells of changes in the order of their resource versions, so the last version it progress of decides whether the
/// answer to one of our own writes is news (it is put in at once, so that readers see it) or history (it is dropped).
pub(crate) struct Mirror {
    kind: Kind,
    name: Arc<str>,
    /// The operator's field manager: what others manage is not kept.
    manager: Arc<str>,
    /// The namespaces that are watched, each by a watch of its own; or all of them, by one.
    namespaces: Box<[Option<Arc<str>>]>,
    state: Mutex<State>,
    health: watch::Sender<Box<[Health]>>,
    /// How many objects reads have answered with.
    reads: AtomicU64,
    /// Whether some controller cannot do without the kind.
    required: AtomicBool,
    /// Reconciles everything that may want an object of an optional kind, once the kind is installed.
    installed: Trigger,
}

struct State {
    contents: Contents,
    /// By watch.
    progress: Box<[WatchProgress]>,
    subscribers: Vec<Subscriber>,
}

/// How far one watch has come.
#[derive(Default)]
struct WatchProgress {
    /// The last version that the watch or the list has reported.
    seen: u64,
    deletions: Deletions,
    /// While a list goes on: what is in the mirror and not yet in the list.
    unconfirmed: Option<HashSet<Key>>,
}

/// One of a mirror's watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WatchIndex(usize);

/// How much a mirror holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) objects: usize,
    pub(crate) bytes: usize,
    /// Objects that are missing in an index.
    pub(crate) unindexed: usize,
}

impl Mirror {
    /// An empty mirror of a kind, in these namespaces, or in all if none is named or the kind belongs to none.
    pub(crate) fn new(kind: Kind, namespaces: &[Arc<str>], manager: Arc<str>) -> Mirror {
        let namespaces: Box<[_]> = match kind.scope {
            Scope::Namespaced if !namespaces.is_empty() => namespaces.iter().cloned().map(Some).collect(),
            _ => Box::new([None]),
        };
        let progress = namespaces.iter().map(|_| WatchProgress::default()).collect();
        let health = namespaces.iter().map(|_| Health::default()).collect();
        Mirror {
            name: kind.name().into(),
            required: AtomicBool::new(!kind.optional),
            installed: Trigger::new(format!("{} was installed", kind.name())),
            kind,
            manager,
            namespaces,
            reads: AtomicU64::new(0),
            state: Mutex::new(State {
                contents: Contents::default(),
                progress,
                subscribers: Vec::new(),
            }),
            health: watch::Sender::new(health),
        }
    }

    pub(crate) fn kind(&self) -> &Kind {
        &self.kind
    }

    /// The kind's name.
    pub(crate) fn name(&self) -> Arc<str> {
        self.name.clone()
    }

    /// The watches that fill this mirror.
    pub(crate) fn watches(&self) -> impl Iterator<Item = WatchIndex> + use<> {
        (0..self.namespaces.len()).map(WatchIndex)
    }

    /// The namespace that a watch is about.
    pub(crate) fn namespace(&self, watch: WatchIndex) -> Option<&str> {
        self.namespaces[watch.0].as_deref()
    }

    /// The watch that tells of an object, if any does.
    fn watch_of(&self, key: &Key) -> Option<WatchIndex> {
        let about = |namespace: &Option<Arc<str>>| namespace.is_none() || namespace.as_deref() == key.namespace();
        self.namespaces.iter().position(about).map(WatchIndex)
    }

    /// Whether objects of that namespace are watched.
    pub(crate) fn covers(&self, namespace: Option<&str>) -> bool {
        match namespace {
            Some(namespace) => self.watch_of(&Key::namespaced(namespace, "")).is_some(),
            None => true,
        }
    }

    /// Tells `subscriber` of every object that is there, and of every change from now on.
    pub(crate) fn subscribe(&self, subscriber: Subscriber) {
        let objects = {
            let mut state = self.lock();
            state.subscribers.retain(Subscriber::is_there);
            state.subscribers.push(subscriber.clone());
            state.contents.iter(None).cloned().collect::<Vec<_>>()
        };
        for object in objects {
            subscriber.tell(self, &Change { old: None, new: Some(object), listed: true });
        }
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Arc<Object>> {
        self.counted(self.lock().contents.get(key).cloned())
    }

    /// Counts the objects that a read answers with.
    fn counted<I>(&self, objects: I) -> I
    where
        for<'a> &'a I: IntoIterator<Item = &'a Arc<Object>>,
    {
        let count = (&objects).into_iter().count() as u64;
        self.reads.fetch_add(count, Ordering::Relaxed);
        objects
    }

    /// The objects of one namespace, or all.
    pub(crate) fn list(&self, namespace: Option<&str>) -> Vec<Arc<Object>> {
        self.counted(self.lock().contents.iter(namespace).cloned().collect())
    }

    /// The objects that name the object with this uid as an owner.
    pub(crate) fn dependents_of(&self, uid: &str) -> Vec<Arc<Object>> {
        self.counted(self.lock().contents.dependents_of(uid).cloned().collect())
    }

    /// The objects that an index finds by a value, if there is such an index.
    pub(crate) fn by_index(&self, name: &str, value: &str) -> Option<Vec<Arc<Object>>> {
        Some(self.counted(self.lock().contents.by_index(name, value)?.cloned().collect()))
    }

    /// Keeps an index; says no if there is another one of that name.
    pub(crate) fn index(&self, name: &str, by: &IndexedBy) -> bool {
        self.lock().contents.index(name, by)
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
        self.lock().contents.notes(key)
    }

    /// Takes a note about an object, which is forgotten with the object.
    pub(crate) fn note(&self, key: &Key, take: impl FnOnce(&mut Notes)) {
        self.lock().contents.note(key, take);
    }

    /// The watch reports an object as added or modified.
    pub(crate) fn changed(&self, watch: WatchIndex, object: Object) {
        let object = self.kept(object);
        let mut state = self.lock();
        state.progress[watch.0].seen = state.progress[watch.0].seen.max(object.version);
        let change = state.put(watch, object);
        self.tell(state, change);
    }

    /// The watch reports an object as deleted.
    pub(crate) fn deleted(&self, watch: WatchIndex, object: &Object) {
        let mut state = self.lock();
        let progress = &mut state.progress[watch.0];
        progress.seen = progress.seen.max(object.version);
        progress.deletions.tell(object, self.kind.selection.selects_all());
        let change = state.remove(object);
        self.tell(state, change);
    }

    /// A list begins.
    pub(crate) fn list_began(&self, watch: WatchIndex) {
        let mut state = self.lock();
        let there = state.contents.iter(self.namespace(watch)).map(|object| object.key.clone()).collect();
        let progress = &mut state.progress[watch.0];
        progress.deletions.list_began();
        progress.unconfirmed = Some(there);
    }

    /// A list contains an object.
    pub(crate) fn listed(&self, watch: WatchIndex, object: Object) {
        let object = self.kept(object);
        let mut state = self.lock();
        state.progress[watch.0].deletions.listed(&object);
        let unconfirmed = state.progress[watch.0].unconfirmed.as_ref();
        let known = unconfirmed.is_some_and(|keys| keys.contains(&object.key));
        let listed = known.then(|| (object.key.clone(), object.uid.clone()));
        let change = state.put(watch, object).map(|change| Change { listed: true, ..change });
        // A newer object under the same name does not confirm the old one.
        if let Some((key, uid)) = listed
            && state.contents.get(&key).is_some_and(|there| there.uid == uid)
            && let Some(unconfirmed) = &mut state.progress[watch.0].unconfirmed
        {
            unconfirmed.remove(&key);
        }
        self.tell(state, change);
    }

    /// A list ended at `version`: what it lacks was deleted, unless it is younger.
    pub(crate) fn list_ended(&self, watch: WatchIndex, version: u64) {
        let mut state = self.lock();
        let progress = &mut state.progress[watch.0];
        progress.seen = progress.seen.max(version);
        progress.deletions.list_ended();
        let missing = progress.unconfirmed.take().unwrap_or_default();
        let gone = |key: &Key| {
            let object = state.contents.get(key).filter(|object| object.version <= version)?;
            let uid = object.uid.clone();
            state.contents.remove(key, &uid)
        };
        let changes: Vec<_> = missing.iter().filter_map(gone).collect();
        self.tell(state, changes);
        let was_missing = self.health.borrow()[watch.0].missing;
        self.update(watch, |health| {
            *health = Health {
                listed: true,
                lists: health.lists + 1,
                watches: health.watches,
                ..Health::default()
            };
        });
        if was_missing {
            tracing::info!(kind = self.kind.name(), "an optional kind was installed");
            self.installed.reconcile_all();
        }
    }

    /// The API server does not serve the kind: what was there is gone with it.
    pub(crate) fn not_installed(&self, watch: WatchIndex) {
        let mut state = self.lock();
        let there: Vec<_> = state.contents.iter(self.namespace(watch)).cloned().collect();
        let changes: Vec<_> = there
            .iter()
            .filter_map(|object| state.contents.remove(&object.key, &object.uid))
            .collect();
        state.progress[watch.0].unconfirmed = None;
        self.tell(state, changes);
        self.update(watch, |health| {
            *health = Health {
                listed: true,
                missing: true,
                lists: health.lists,
                watches: health.watches,
                ..Health::default()
            };
        });
    }

    /// Whether every controller that needs the kind can do without it.
    pub(crate) fn is_optional(&self) -> bool {
        !self.required.load(Ordering::Relaxed)
    }

    /// Some controller cannot do without the kind.
    pub(crate) fn require(&self) {
        self.required.store(true, Ordering::Relaxed);
    }

    /// What reconciles objects once an optional kind is installed.
    pub(crate) fn installed(&self) -> &Trigger {
        &self.installed
    }

    /// The watch moved on without news for us.
    pub(crate) fn bookmarked(&self, watch: WatchIndex, version: u64) {
        let mut state = self.lock();
        state.progress[watch.0].seen = state.progress[watch.0].seen.max(version);
    }

    /// This process wrote an object and this is the API server's answer.
    pub(crate) fn written(&self, object: Object) {
        let Some(watch) = self.watch_of(&object.key) else {
            return;
        };
        let selected = self.kind.selection.selects(&object);
        let object = self.formed(object);
        let mut state = self.lock();
        let change = match object.version > state.progress[watch.0].seen {
            false => None,
            true if selected => state.put(watch, object),
            // It no longer matches the selector: treat it as deleted, as the watch will.
            true => {
                let change = state.remove(&object);
                let old = change.as_ref().and_then(|change| change.old.as_ref());
                let held = old.is_some_and(|old| old.uid == object.uid);
                let deletions = &mut state.progress[watch.0].deletions;
                deletions.left(&object.key, &object.uid, object.version, held);
                change
            }
        };
        if let (Some(change), Some(unconfirmed)) = (&change, &mut state.progress[watch.0].unconfirmed) {
            unconfirmed.extend(change.key().cloned());
        }
        self.tell(state, change);
    }

    /// This process deleted an object, and it is gone.
    pub(crate) fn removed(&self, key: &Key, uid: &str) {
        let Some(watch) = self.watch_of(key) else { return };
        let mut state = self.lock();
        let change = state.contents.remove(key, uid);
        let version = change.iter().flat_map(|change| &change.old).map(|old| old.version).next();
        state.progress[watch.0].deletions.gone(key, uid, version);
        self.tell(state, change);
    }

    /// Listing or watching failed; it is tried again.
    pub(crate) fn failed(&self, watch: WatchIndex, failure: &str) {
        self.update(watch, |health| {
            health.failure = Some(failure.into());
            health.failing_since.get_or_insert_with(Instant::now);
        });
    }

    /// Watching works, for the first time or again.
    pub(crate) fn watching(&self, watch: WatchIndex) {
        self.update(watch, |health| {
            *health = Health {
                listed: health.listed,
                missing: health.missing,
                lists: health.lists,
                watches: health.watches + 1,
                ..Health::default()
            };
        });
    }

    fn update(&self, watch: WatchIndex, update: impl FnOnce(&mut Health)) {
        self.health.send_modify(|all| update(&mut all[watch.0]));
    }

    /// Whether the kind is listed and watched now.
    pub(crate) fn health(&self) -> Health {
        Health::of_all(&self.health.borrow())
    }

    /// How much is held.
    pub(crate) fn usage(&self) -> Usage {
        let state = self.lock();
        Usage {
            objects: state.contents.len(),
            bytes: state.contents.bytes(),
            unindexed: state.contents.unindexed(),
        }
    }

    /// How the watch fares, and how much it has brought.
    pub(crate) fn watch_state(&self) -> WatchState {
        let (health, usage) = (self.health(), self.usage());
        WatchState {
            kind: self.kind.name().to_owned(),
            api_version: self.kind.resource.api_version.clone(),
            selector: self.kind.selection.to_string(),
            namespaces: self.namespaces.iter().flatten().map(|namespace| namespace.to_string()).collect(),
            metadata: self.kind.form == Form::Metadata,
            installed: !health.missing,
            synced: health.listed,
            failing_since: health.failing_since,
            last_error: health.failure,
            lists: health.lists,
            watches: health.watches,
            reads: self.reads.load(Ordering::Relaxed),
            objects: usage.objects,
            bytes: usage.bytes,
            unindexed: usage.unindexed,
        }
    }

    /// Whether a watch covers this key: not where the operator is confined to other namespaces.
    pub(crate) fn watches_key(&self, key: &Key) -> bool {
        self.watch_of(key).is_some()
    }

    /// Whether an object that is not here is known not to be there.
    pub(crate) fn has_listed(&self, key: &Key) -> bool {
        self.watch_of(key).is_some_and(|watch| self.health.borrow()[watch.0].listed)
    }

    /// Waits until the kind has been listed once, unless that fails.
    pub(crate) async fn ready(&self) -> Result<(), ReadError> {
        let mut health = self.health.subscribe();
        let settled = |all: &[Health]| Health::of_all(all).listed || Health::unlisted(all).is_some();
        let all = health.wait_for(|all| settled(all)).await.expect("the sender is ours");
        match Health::unlisted(&all) {
            Some(failure) => Err(ReadError::NotListed { kind: self.kind.name().into(), failure }),
            None => Ok(()),
        }
    }

    /// As much of an object that this process wrote as a watch would have sent, and of that what is kept.
    fn formed(&self, object: Object) -> Object {
        let object = match self.kind.form {
            Form::Whole => object,
            Form::Metadata => object.into_metadata(),
        };
        self.kept(object)
    }

    /// As much of an object as is kept.
    fn kept(&self, object: Object) -> Object {
        self.kind.selection.transformed(object.managed_by(&self.manager))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("authors' code under this lock is caught when it panics")
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
    /// Takes an object, unless a newer version is there or it was deleted.
    fn put(&mut self, watch: WatchIndex, object: Object) -> Option<Change> {
        let current = self.contents.get(&object.key);
        let known = current.is_some_and(|current| object.version != 0 && current.version >= object.version);
        if known || self.progress[watch.0].deletions.cover(&object) {
            return None;
        }
        Some(self.contents.put(object))
    }

    /// Removes an object that is gone or not selected any more, unless it was seen in a later version, to which it returned.
    ///
    /// An older object of the same name and another uid is gone, too: a name belongs to one object at a time.
    fn remove(&mut self, object: &Object) -> Option<Change> {
        let current = self.contents.get(&object.key)?;
        let is_gone = match object.version {
            0 => current.uid == object.uid,
            version => current.version <= version,
        };
        let uid = current.uid.clone();
        is_gone.then(|| self.contents.remove(&object.key, &uid)).flatten()
    }
}

impl fmt::Debug for Mirror {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} objects of {}", self.lock().contents.len(), self.kind.name())
    }
}

#[cfg(test)]
#[path = "mirror_model.rs"]
mod model;
