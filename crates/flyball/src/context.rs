//! What a reconcile is given beside its object: cached reads, writes, events and the client.

mod apply;
mod status;
mod unset;

pub use apply::Applied;

use crate::{
    Cache, Event, Key, Result,
    cache::{Mirror, ReadError, decode},
    kind::{Kind, Scope},
    object::Object,
    recorder::Recorder,
};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// A reconcile's view of the cluster, from the object that it reconciles.
#[derive(Clone)]
pub struct Context {
    pub(crate) operator: Arc<Shared>,
    pub(crate) kind: Arc<Kind>,
    pub(crate) object: Arc<Object>,
}

/// What all reconciles of an operator share.
pub(crate) struct Shared {
    pub(crate) name: String,
    pub(crate) client: Client,
    pub(crate) cache: Cache,
    pub(crate) recorder: Recorder,
}

/// What was tried, when the API server refused.
#[derive(Debug, thiserror::Error)]
#[error("{verb} {kind} {key}")]
pub(crate) struct Attempt {
    pub(crate) verb: &'static str,
    pub(crate) kind: String,
    pub(crate) key: Key,
    pub(crate) source: kube::Error,
}

impl Context {
    /// The object of that name, if there is one, from the cache.
    ///
    /// A name alone means the namespace of the object being reconciled; use [`Key::namespaced`] for another. The answer
    /// is never older than what this process has written to that object.
    pub async fn get<C>(&self, key: impl Into<Key>) -> Result<Option<Arc<C>>>
    where
        C: Resource<DynamicType = (), Scope: 'static> + DeserializeOwned,
    {
        let kind = Kind::of::<C>();
        let key = match kind.scope {
            Scope::Cluster => key.into(),
            _ => key.into().in_namespace(self.object.key.namespace()),
        };
        let object = self.mirror(&kind).await?.get(&key);
        Ok(object.map(|object| decode(&kind, &object)).transpose()?)
    }

    /// The objects of a kind beside the object being reconciled: of its namespace, or all if it belongs to none.
    ///
    /// They come from the cache, in order of name, and none is older than what this process has written.
    pub async fn list<C>(&self) -> Result<Vec<Arc<C>>>
    where
        C: Resource<DynamicType = (), Scope: 'static> + DeserializeOwned,
    {
        let kind = Kind::of::<C>();
        let namespace = self.object.key.namespace().filter(|_| kind.scope != Scope::Cluster);
        let objects = self.mirror(&kind).await?.list(namespace);
        Ok(objects.iter().map(|object| decode(&kind, object)).collect::<Result<_, _>>()?)
    }

    /// The children of a kind that the object being reconciled controls, from the cache, in order of name.
    pub async fn owned<C>(&self) -> Result<Vec<Arc<C>>>
    where
        C: Resource<DynamicType = (), Scope: 'static> + DeserializeOwned,
    {
        let kind = Kind::of::<C>();
        let objects = self.mirror(&kind).await?.owned_by(&self.object.uid);
        Ok(objects.iter().map(|object| decode(&kind, object)).collect::<Result<_, _>>()?)
    }

    /// Publishes an event about the object being reconciled. It waits for nothing.
    pub fn event(&self, event: Event) {
        self.operator.recorder.publish(self, event);
    }

    /// The client, for everything else. Cached reads see what is written through it, too.
    pub fn client(&self) -> Client {
        self.operator.client.clone()
    }

    /// Cached reads across all namespaces.
    pub fn cache(&self) -> &Cache {
        &self.operator.cache
    }

    async fn mirror(&self, kind: &Kind) -> Result<&Arc<Mirror>, ReadError> {
        let mirror = self.operator.cache.mirror_for(kind)?;
        mirror.ready().await?;
        Ok(mirror)
    }

    /// The object being reconciled as it is now, with what this process has written meanwhile.
    pub(crate) fn current(&self) -> Arc<Object> {
        let mirror = self.operator.cache.mirror(&self.kind.id());
        let current = mirror.and_then(|mirror| mirror.get(&self.object.key));
        current
            .filter(|current| current.uid == self.object.uid)
            .unwrap_or_else(|| self.object.clone())
    }

    pub(crate) fn attempt(&self, verb: &'static str, kind: &Kind, key: &Key) -> impl FnOnce(kube::Error) -> Attempt {
        let (kind, key) = (kind.name().to_owned(), key.clone());
        move |source| Attempt { verb, kind, key, source }
    }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Context of {} {}", self.kind.name(), self.object.key)
    }
}
