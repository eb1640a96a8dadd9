//! What an operator has seen of the cluster: one mirror per kind, shared by all of its controllers.

mod deletions;
mod mirror;
mod watch_state;

pub(crate) use mirror::{Change, Mirror, Subscriber};
pub use watch_state::WatchState;

use crate::{
    Key, Metrics,
    kind::{Form, Kind, KindId},
    object::Object,
    watch,
};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, Weak},
};
use tokio::task::{AbortHandle, JoinHandle};

/// Cached reads, across all namespaces, of the kinds that an operator declares.
///
/// A reconcile reads through its [`Context`](crate::Context), which also waits until a kind has been listed. This handle
/// answers from what is there now; it is what [`Controller::watches`](crate::Controller::watches) hands to a mapper.
#[derive(Clone, Default)]
pub struct Cache {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// Of one kind there may be two: one of metadata, and one of whole objects that somebody asked for later.
    mirrors: HashMap<KindId, Vec<Weak<Followed>>>,
    /// Told of the changes of every kind.
    everywhere: Vec<Subscriber>,
}

/// A mirror, and the watch that keeps it. Both end when the last controller that needs them does.
pub(crate) struct Followed {
    pub(crate) mirror: Arc<Mirror>,
    watch: AbortHandle,
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.watch.abort();
    }
}

/// Why a kind cannot be read from the cache.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error("{0} is not cached: declare it with `.reads::<{0}>()`, or read it with `ctx.client()`")]
    NotCached(String),
    #[error("only the metadata of {0} is cached: declare `.reads::<{0}>()`, or read `PartialObjectMeta<{0}>`")]
    OnlyMetadata(String),
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
    /// The object of that name, if there is one.
    pub fn get<K>(&self, key: impl Into<Key>) -> Option<Arc<K>>
    where
        K: Resource<DynamicType = (), Scope: 'static> + DeserializeOwned,
    {
        let object = self.readable::<K>()?.get(&key.into())?;
        object.decode().ok()
    }

    /// All objects of a kind, except those that do not decode as `K`, in order of namespace and name.
    pub fn list<K>(&self) -> Vec<Arc<K>>
    where
        K: Resource<DynamicType = (), Scope: 'static> + DeserializeOwned,
    {
        let objects = self.readable::<K>().map(|mirror| mirror.list(None)).unwrap_or_default();
        objects.iter().filter_map(|object| object.decode().ok()).collect()
    }

    /// How each watch fares, and how much it has brought, in order of kind.
    pub fn watches(&self) -> Vec<WatchState> {
        let followed: Vec<_> = self.lock().mirrors.values().flatten().filter_map(Weak::upgrade).collect();
        let mut states: Vec<_> = followed.iter().map(|followed| followed.mirror.watch_state()).collect();
        states.sort_by(|one, other| (&one.api_version, &one.kind).cmp(&(&other.api_version, &other.kind)));
        states
    }

    fn readable<K>(&self) -> Option<Arc<Mirror>>
    where
        K: Resource<DynamicType = (), Scope: 'static>,
    {
        let mirror = self.mirror_for(&Kind::of::<K>());
        mirror.inspect_err(|error| tracing::error!(%error, "cached read refused")).ok()
    }

    /// The mirror that can answer reads of `kind` in its form.
    pub(crate) fn mirror_for(&self, kind: &Kind) -> Result<Arc<Mirror>, ReadError> {
        let mirror = self.mirror(&kind.id()).ok_or_else(|| ReadError::NotCached(kind.name().into()))?;
        match mirror.kind().form {
            Form::Metadata if kind.form == Form::Whole => Err(ReadError::OnlyMetadata(kind.name().into())),
            _ => Ok(mirror),
        }
    }

    /// The fullest mirror of a kind.
    pub(crate) fn mirror(&self, id: &KindId) -> Option<Arc<Mirror>> {
        self.mirrors_of(id).into_iter().max_by_key(|mirror| mirror.kind().form)
    }

    pub(crate) fn mirrors_of(&self, id: &KindId) -> Vec<Arc<Mirror>> {
        let state = self.lock();
        let live = state.mirrors.get(id).into_iter().flatten().filter_map(Weak::upgrade);
        live.map(|followed| followed.mirror.clone()).collect()
    }

    /// The fullest mirror of every kind.
    pub(crate) fn mirrors(&self) -> Vec<Arc<Mirror>> {
        let ids: Vec<_> = self.lock().mirrors.keys().cloned().collect();
        ids.iter().filter_map(|id| self.mirror(id)).collect()
    }

    /// The mirror of a kind, in its form or a fuller one, followed from now on if it was not before.
    pub(crate) fn follow(&self, kind: &Kind, client: &Client, metrics: &Metrics) -> Arc<Followed> {
        let mut state = self.lock();
        let everywhere = state.everywhere.clone();
        let known = state.mirrors.entry(kind.id()).or_default();
        known.retain(|followed| followed.strong_count() > 0);
        let fits = |followed: &Arc<Followed>| followed.mirror.kind().form >= kind.form;
        if let Some(followed) = known.iter().filter_map(Weak::upgrade).find(fits) {
            return followed;
        }
        let mirror = Arc::new(Mirror::new(kind.clone()));
        everywhere.into_iter().for_each(|subscriber| mirror.subscribe(subscriber));
        let watch = spawn_watch(mirror.clone(), client.clone(), metrics.clone()).abort_handle();
        let followed = Arc::new(Followed { mirror, watch });
        known.push(Arc::downgrade(&followed));
        followed
    }

    /// Tells `subscriber` of the changes of every kind, also of those that are followed later.
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

fn spawn_watch(mirror: Arc<Mirror>, client: Client, metrics: Metrics) -> JoinHandle<()> {
    tokio::spawn(async move { watch::follow(&client, &mirror, &metrics).await })
}

pub(crate) fn decode<K: DeserializeOwned>(kind: &Kind, object: &Object) -> Result<Arc<K>, ReadError> {
    let failed = |source| ReadError::Decode { kind: kind.name().into(), key: object.key.clone(), source };
    object.decode().map_err(failed)
}

impl std::fmt::Debug for Cache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.mirrors()).finish()
    }
}
