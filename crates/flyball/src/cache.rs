//! What an operator has seen of the cluster: one mirror per kind, shared by all of its controllers.

pub(crate) mod change;
pub(crate) mod client;
pub(crate) mod contents;
pub(crate) mod deletions;
pub(crate) mod health;
pub(crate) mod index;
pub(crate) mod kind;
pub(crate) mod mirror;
pub(crate) mod object;
pub(crate) mod packer;
pub(crate) mod watch;

pub(crate) use change::{Change, Subscriber};
pub use health::WatchState;
pub(crate) use index::IndexedBy;
pub(crate) use mirror::{Mirror, WatchIndex};

use crate::cache::kind::{Kind, KindId};
use crate::cache::object::Object;
use crate::cache::watch::Lists;
use crate::leader::FencedClient;
use crate::{Error, Key, Metrics, Result, Selection};
use kube::Resource;
use serde::de::DeserializeOwned;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, Weak},
};
use tokio::task::{AbortHandle, JoinHandle};

/// Cached reads, across all namespaces, of the kinds that an operator declares.
///
/// A reconcile reads through its [`Context`](crate::Context), which also waits until a kind has been listed. This handle
/// answers from what is there now; it is what [`Controller::watches`](crate::Controller::watches) hands to a mapper. A read of a
/// kind that is not declared, by an index that is not declared, or of an object that does not decode, is an error.
#[derive(Clone)]
pub struct Cache {
    state: Arc<Mutex<State>>,
    /// The namespaces that are watched; all if there are none.
    namespaces: Arc<[Arc<str>]>,
    lists: Lists,
    /// The operator's field manager.
    manager: Arc<str>,
    /// Which objects the controller selects that this handle is for; all of kinds that are not named.
    selections: Arc<[(KindId, Selection)]>,
}

#[derive(Default)]
struct State {
    /// Of one kind there may be several: of metadata, of whole objects that a later controller needs, of other selections.
    mirrors: HashMap<KindId, Vec<Weak<Followed>>>,
    /// Subscribers to the changes of every kind.
    everywhere: Vec<Subscriber>,
}

/// A mirror, and the watch that keeps it. Both end when the last controller that needs them does.
pub(crate) struct Followed {
    pub(crate) mirror: Arc<Mirror>,
    watches: Vec<AbortHandle>,
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.watches.iter().for_each(AbortHandle::abort);
    }
}

/// Why a kind cannot be read from the cache.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error("{kind} is not cached: declare it with `{declaration}`, or read it with `ctx.client()`")]
    NotCached { kind: String, declaration: String },
    #[error("only the metadata of {kind} is cached: declare `{declaration}`, or read `PartialObjectMeta<{kind}>`")]
    OnlyMetadata { kind: String, declaration: String },
    #[error("{kind} {name} has no namespace: {kind} is namespaced, so name one with `Key::namespaced`")]
    NoNamespace { kind: String, name: String },
    #[error("{kind} {key} has a namespace: {kind} is cluster-scoped, so name it with `Key::cluster`")]
    Namespaced { kind: String, key: Key },
    #[error("{kind} is not cached in namespace {namespace}: this operator is confined to others")]
    Elsewhere { kind: String, namespace: String },
    #[error("{kind} has no index {name:?}: declare it with `.index::<{kind}>(…)`")]
    NoIndex { kind: String, name: String },
    #[error("{kind} has not been listed yet: {failure}")]
    NotListed { kind: String, failure: Arc<str> },
    #[error("decode {kind} {key}")]
    Decode {
        kind: String,
        key: Key,
        source: serde_json::Error,
    },
}

impl Cache {
    /// An empty cache for an operator of this name, of these namespaces, or of all if none is named.
    pub(crate) fn new(manager: &str, namespaces: &[String], lists: Lists) -> Cache {
        Cache {
            state: Arc::default(),
            namespaces: namespaces.iter().map(|namespace| Arc::from(&**namespace)).collect(),
            lists,
            manager: manager.into(),
            selections: Arc::default(),
        }
    }

    /// Whether only some namespaces are watched.
    pub(crate) fn is_confined(&self) -> bool {
        !self.namespaces.is_empty()
    }

    /// The same cache as one controller reads it.
    pub(crate) fn selecting(&self, selections: &[(KindId, Selection)]) -> Cache {
        Cache { selections: selections.into(), ..self.clone() }
    }

    /// The object of that name, if there is one. Of a namespaced kind the key needs a namespace: [`Key::namespaced`].
    pub fn get<K>(&self, key: impl Into<Key>) -> Result<Option<Arc<K>>>
    where
        K: Resource<DynamicType = (), Scope: 'static> + DeserializeOwned,
    {
        let kind = Kind::of::<K>();
        let key = key.into().for_kind(&kind).map_err(Error::permanent)?;
        let found = self.mirror_for(&kind)?.get(&key);
        Ok(found.map(|object| decode(&kind, &object)).transpose()?)
    }

    /// The objects of a kind that an [index](crate::Controller::index) finds by a value, in order of namespace and name.
    pub fn by_index<K>(&self, index: &str, value: &str) -> Result<Vec<Arc<K>>>
    where
        K: Resource<DynamicType = (), Scope: 'static> + DeserializeOwned,
    {
        let kind = Kind::of::<K>();
        decode_all(&kind, &self.indexed(&kind, index, value)?)
    }

    pub(crate) fn indexed(&self, kind: &Kind, index: &str, value: &str) -> Result<Vec<Arc<Object>>, ReadError> {
        let found = self.mirror_for(kind)?.by_index(index, value);
        found.ok_or_else(|| ReadError::NoIndex { kind: kind.name().into(), name: index.into() })
    }

    /// All objects of a kind, in order of namespace and name.
    pub fn list<K>(&self) -> Result<Vec<Arc<K>>>
    where
        K: Resource<DynamicType = (), Scope: 'static> + DeserializeOwned,
    {
        let kind = Kind::of::<K>();
        decode_all(&kind, &self.mirror_for(&kind)?.list(None))
    }

    /// How each watch fares, and how much it has brought, in order of kind.
    pub fn watches(&self) -> Vec<WatchState> {
        let followed: Vec<_> = self.lock().mirrors.values().flatten().filter_map(Weak::upgrade).collect();
        let mut states: Vec<_> = followed.iter().map(|followed| followed.mirror.watch_state()).collect();
        states.sort_by(|one, other| {
            let order = |state: &WatchState| (state.api_version.clone(), state.kind.clone(), state.selector.clone());
            order(one).cmp(&order(other))
        });
        states
    }

    /// The mirror that can answer reads of `kind` in its form, as this handle selects it.
    pub(crate) fn mirror_for(&self, kind: &Kind) -> Result<Arc<Mirror>, ReadError> {
        let id = kind.id();
        let selected = self
            .selections
            .iter()
            .find(|(selected, _)| *selected == id)
            .map(|(_, selection)| selection);
        let selection = selected.unwrap_or(&kind.selection);
        let mirrors = self.mirrors_of(&id).into_iter().filter(|mirror| mirror.kind().selection == *selection);
        let mirror = mirrors.max_by_key(|mirror| mirror.kind().form);
        let (name, declaration) = (|| kind.name().to_owned(), || kind.declaration("reads", ""));
        match mirror {
            None => Err(ReadError::NotCached { kind: name(), declaration: declaration() }),
            Some(mirror) if mirror.kind().form < kind.form => {
                Err(ReadError::OnlyMetadata { kind: name(), declaration: declaration() })
            }
            Some(mirror) => Ok(mirror),
        }
    }

    /// The fullest mirror of a kind.
    pub(crate) fn mirror(&self, id: &KindId) -> Option<Arc<Mirror>> {
        let full = |mirror: &Arc<Mirror>| (mirror.kind().selection.is_everything(), mirror.kind().form);
        self.mirrors_of(id).into_iter().max_by_key(full)
    }

    pub(crate) fn mirrors_of(&self, id: &KindId) -> Vec<Arc<Mirror>> {
        let state = self.lock();
        let live = state.mirrors.get(id).into_iter().flatten().filter_map(Weak::upgrade);
        live.map(|followed| followed.mirror.clone()).collect()
    }

    /// The mirrors of a kind, in whichever version of its group: all of them show the same objects.
    pub(crate) fn mirrors_of_any_version(&self, id: &KindId) -> Vec<Arc<Mirror>> {
        let state = self.lock();
        let same = state
            .mirrors
            .iter()
            .filter(|(known, _)| known.plural == id.plural && known.group() == id.group());
        let live = same.flat_map(|(_, mirrors)| mirrors).filter_map(Weak::upgrade);
        live.map(|followed| followed.mirror.clone()).collect()
    }

    /// Every mirror, also those of the same kind.
    pub(crate) fn mirrors(&self) -> Vec<Arc<Mirror>> {
        let state = self.lock();
        let live = state.mirrors.values().flatten().filter_map(Weak::upgrade);
        live.map(|followed| followed.mirror.clone()).collect()
    }

    /// Every mirror, in order of kind and selection.
    pub(crate) fn mirrors_in_order(&self) -> Vec<Arc<Mirror>> {
        let mut mirrors = self.mirrors();
        mirrors.sort_by_cached_key(|mirror| (mirror.kind().id(), mirror.kind().selection.to_string()));
        mirrors
    }

    /// The mirror of a kind, in its form or a fuller one, followed from now on if it was not before.
    pub(crate) fn follow(&self, kind: &Kind, client: &Arc<FencedClient>, metrics: &Metrics) -> Arc<Followed> {
        let mut state = self.lock();
        let everywhere = state.everywhere.clone();
        let known = state.mirrors.entry(kind.id()).or_default();
        known.retain(|followed| followed.strong_count() > 0);
        let fits = |followed: &Arc<Followed>| {
            let known = followed.mirror.kind();
            known.form >= kind.form && known.selection == kind.selection
        };
        if let Some(followed) = known.iter().filter_map(Weak::upgrade).find(fits) {
            if !kind.optional {
                followed.mirror.require();
            }
            return followed;
        }
        let mirror = Arc::new(Mirror::new(kind.clone(), &self.namespaces, self.manager.clone()));
        everywhere.into_iter().for_each(|subscriber| mirror.subscribe(subscriber));
        let follow = |watch| spawn_watch(mirror.clone(), watch, self.lists, client.clone(), metrics.clone());
        let watches = mirror.watches().map(|watch| follow(watch).abort_handle()).collect();
        let followed = Arc::new(Followed { mirror, watches });
        known.push(Arc::downgrade(&followed));
        followed
    }

    /// Notifies `subscriber` of the changes of every kind, also of those that are followed later.
    pub(crate) fn subscribe_everywhere(&self, subscriber: Subscriber) {
        let followed: Vec<_> = {
            let mut state = self.lock();
            state.everywhere.retain(Subscriber::is_there);
            state.everywhere.push(subscriber.clone());
            state.mirrors.values().flatten().filter_map(Weak::upgrade).collect()
        };
        followed.iter().for_each(|followed| followed.mirror.subscribe(subscriber.clone()));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics under this lock")
    }
}

fn spawn_watch(
    mirror: Arc<Mirror>,
    watch: WatchIndex,
    lists: Lists,
    client: Arc<FencedClient>,
    metrics: Metrics,
) -> JoinHandle<()> {
    tokio::spawn(async move { watch::follow(&client, &mirror, watch, lists, &metrics).await })
}

pub(crate) fn decode<K: DeserializeOwned>(kind: &Kind, object: &Object) -> Result<Arc<K>, ReadError> {
    let failed = |source| ReadError::Decode { kind: kind.name().into(), key: object.key.clone(), source };
    object.decode().map_err(failed)
}

fn decode_all<K: DeserializeOwned>(kind: &Kind, objects: &[Arc<Object>]) -> Result<Vec<Arc<K>>> {
    Ok(objects.iter().map(|object| decode(kind, object)).collect::<Result<_, _>>()?)
}

impl std::fmt::Debug for Cache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.mirrors()).finish()
    }
}
