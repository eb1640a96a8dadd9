//! What an operator has seen of the cluster: one mirror per kind, shared by all of its controllers.

mod mirror;

pub(crate) use mirror::{Change, Mirror, Subscriber};

use crate::{
    Key,
    kind::{Form, Kind, KindId},
    object::Object,
};
use kube::Resource;
use serde::de::DeserializeOwned;
use std::{collections::HashMap, sync::Arc};

/// Cached reads, across all namespaces, of the kinds that an operator declares.
///
/// A reconcile reads through its [`Context`](crate::Context), which also waits until a kind has been listed. This handle
/// answers from what is there now; it is what [`Controller::watches`](crate::Controller::watches) hands to a mapper.
#[derive(Clone, Debug, Default)]
pub struct Cache {
    mirrors: Arc<HashMap<KindId, Arc<Mirror>>>,
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
    /// A cache of these kinds. A kind that is given twice is mirrored once, whole if either asks for it whole.
    pub(crate) fn new(kinds: impl IntoIterator<Item = Kind>) -> Cache {
        let mut wanted: HashMap<KindId, Kind> = HashMap::new();
        for kind in kinds {
            let known = wanted.entry(kind.id()).or_insert_with(|| kind.clone());
            known.form = known.form.max(kind.form);
        }
        let mirrors = wanted.into_iter().map(|(id, kind)| (id, Arc::new(Mirror::new(kind))));
        Cache { mirrors: Arc::new(mirrors.collect()) }
    }

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

    fn readable<K>(&self) -> Option<&Arc<Mirror>>
    where
        K: Resource<DynamicType = (), Scope: 'static>,
    {
        let kind = Kind::of::<K>();
        self.mirror_for(&kind)
            .inspect_err(|error| tracing::error!(%error, "cached read refused"))
            .ok()
    }

    /// The mirror that can answer reads of `kind` in its form.
    pub(crate) fn mirror_for(&self, kind: &Kind) -> Result<&Arc<Mirror>, ReadError> {
        let mirror = self.mirror(&kind.id()).ok_or_else(|| ReadError::NotCached(kind.name().into()))?;
        match mirror.kind().form {
            Form::Metadata if kind.form == Form::Whole => Err(ReadError::OnlyMetadata(kind.name().into())),
            _ => Ok(mirror),
        }
    }

    pub(crate) fn mirror(&self, id: &KindId) -> Option<&Arc<Mirror>> {
        self.mirrors.get(id)
    }

    pub(crate) fn mirrors(&self) -> impl Iterator<Item = Arc<Mirror>> {
        self.mirrors.values().cloned()
    }
}

pub(crate) fn decode<K: DeserializeOwned>(kind: &Kind, object: &Object) -> Result<Arc<K>, ReadError> {
    let failed = |source| ReadError::Decode { kind: kind.name().into(), key: object.key.clone(), source };
    object.decode().map_err(failed)
}
