//! The objects of one kind as a reconcile reads and writes them, whether the kind has a Rust type or is known at run time only.

use crate::cache::kind::{Kind, Scope};
use crate::cache::object::Object;
use crate::cache::{Mirror, ReadError, decode};
use crate::context::Context;
use crate::context::own::Ownership;
use crate::{Applied, Diff, Key, Result, Selection};
use kube::{
    Resource,
    api::{ApiResource, DeleteParams, DynamicObject, PartialObjectMeta, Patch},
    core::Selector,
};
use serde::{Serialize, de::DeserializeOwned};
use std::{fmt, marker::PhantomData, sync::Arc};

/// The objects of one kind, narrowed to a namespace or to labels if asked; see [`Context::objects`] and [`Context::dynamic`].
///
/// The methods of [`Context`] that take a kind are short for those of this type.
pub struct Objects<'a, C> {
    ctx: &'a Context,
    kind: Kind,
    within: Within,
    /// What is asked for beside what the controller selects for its cache.
    selection: Selection,
    object: PhantomData<fn() -> C>,
}

/// In which namespaces objects are looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Within {
    /// In that of the object being reconciled where a list or a bare name is meant, in all otherwise.
    Beside,
    Namespace(String),
    All,
}

impl Context {
    /// The objects of a kind, to narrow what is read of them.
    ///
    /// ```
    /// # use flyball::{Context, Result};
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # use kube::core::Expression;
    /// # async fn count(ctx: &Context) -> Result<usize> {
    /// let system = ctx.objects::<Pod>().namespace("kube-system");
    /// let pods = system.labels(Expression::Equal("k8s-app".into(), "kube-dns".into())).list().await?;
    /// # Ok(pods.len())
    /// # }
    /// ```
    pub fn objects<C>(&self) -> Objects<'_, C>
    where
        C: Resource<DynamicType = (), Scope: 'static>,
    {
        Objects::new(self, Kind::of::<C>())
    }

    /// The objects of a kind that is known at run time only; see [`Controller::dynamic`](crate::Controller::dynamic).
    pub fn dynamic(&self, resource: &ApiResource) -> Objects<'_, DynamicObject> {
        Objects::new(self, self.declared.dynamic(resource))
    }
}

impl<'a, C> Objects<'a, C> {
    fn new(ctx: &'a Context, kind: Kind) -> Objects<'a, C> {
        Objects {
            ctx,
            kind,
            within: Within::Beside,
            selection: Selection::default(),
            object: PhantomData,
        }
    }

    /// The same objects, of which only the metadata is read: all that is cached of a kind that is owned.
    pub fn metadata(self) -> Objects<'a, PartialObjectMeta<C>> {
        Objects {
            ctx: self.ctx,
            kind: self.kind.metadata(),
            within: self.within,
            selection: self.selection,
            object: PhantomData,
        }
    }

    /// Those of one namespace. A name alone then means that namespace.
    pub fn namespace(self, namespace: impl Into<String>) -> Objects<'a, C> {
        Objects { within: Within::Namespace(namespace.into()), ..self }
    }

    /// Those of all namespaces.
    pub fn all_namespaces(self) -> Objects<'a, C> {
        Objects { within: Within::All, ..self }
    }

    /// Those with these labels, for lists.
    pub fn labels(self, labels: impl Into<Selector>) -> Objects<'a, C> {
        let selection = self.selection.clone().labels(labels);
        Objects { selection, ..self }
    }

    /// Whether the API server serves the kind. It may not where the kind is [optional](crate::Controller::optional).
    pub async fn installed(&self) -> Result<bool> {
        let mirror = self.ctx.listed(&self.kind.clone().metadata(), None).await?;
        Ok(!mirror.health().missing)
    }

    /// As [`Context::delete`].
    pub async fn delete(&self, key: impl Into<Key>, params: &DeleteParams) -> Result<bool> {
        let key = self.key(key)?;
        self.ctx.delete_key(&self.kind, &key, params).await
    }

    /// As [`Context::prune`].
    pub async fn prune(&self) -> Result<Vec<Key>> {
        self.ctx.prune_kind(self.kind.clone().metadata()).await
    }

    /// Which object a name means.
    fn key(&self, key: impl Into<Key>) -> Result<Key, ReadError> {
        let key = match &self.within {
            Within::Namespace(namespace) if self.kind.scope != Scope::Cluster => {
                key.into().in_namespace(Some(namespace))
            }
            _ => key.into(),
        };
        self.ctx.beside(&self.kind, key)
    }

    /// Those of `objects` that are asked for.
    fn narrowed(&self, objects: Vec<Arc<Object>>) -> Vec<Arc<Object>> {
        let mut objects = objects;
        if let Within::Namespace(namespace) = &self.within {
            objects.retain(|object| object.key.namespace() == Some(namespace));
        }
        if !self.selection.is_everything() {
            objects.retain(|object| self.selection.selects(object));
        }
        objects
    }

    /// The namespace that a list is of.
    fn listed_namespace(&self) -> Option<&str> {
        let namespace = match &self.within {
            Within::Beside => self.ctx.object.key.namespace(),
            Within::Namespace(namespace) => Some(namespace.as_str()),
            Within::All => None,
        };
        namespace.filter(|_| self.kind.scope != Scope::Cluster)
    }
}

impl<C: DeserializeOwned> Objects<'_, C> {
    /// As [`Context::get`].
    pub async fn get(&self, key: impl Into<Key>) -> Result<Option<Arc<C>>> {
        let key = self.key(key)?;
        let mirror = self.ctx.listed(&self.kind, key.namespace()).await?;
        let found = mirror.get(&key).or_else(|| match self.kind.scope {
            Scope::Unknown => mirror.get(&Key::cluster(key.name())),
            _ => None,
        });
        Ok(found.map(|object| decode(&self.kind, &object)).transpose()?)
    }

    /// Those of the namespace of the object being reconciled, unless [`Objects::namespace`] or [`Objects::all_namespaces`] says
    /// otherwise, from the cache, in order of namespace and name.
    pub async fn list(&self) -> Result<Vec<Arc<C>>> {
        let namespace = self.listed_namespace();
        let mirror = self.ctx.listed(&self.kind, namespace).await?;
        let objects = match (self.kind.scope, namespace) {
            // Of a kind that may turn out to be cluster-scoped, objects without a namespace are beside every object.
            (Scope::Unknown, Some(namespace)) => {
                let mut objects = mirror.list(None);
                objects.retain(|object| object.key.namespace().is_none_or(|its| its == namespace));
                objects
            }
            (_, namespace) => mirror.list(namespace),
        };
        self.decoded(self.narrowed(objects))
    }

    /// As [`Context::by_index`].
    pub async fn by_index(&self, index: &str, value: &str) -> Result<Vec<Arc<C>>> {
        self.ctx.listed(&self.kind, None).await?;
        self.decoded(self.narrowed(self.ctx.cache.indexed(&self.kind, index, value)?))
    }

    /// As [`Context::owned`].
    pub async fn owned(&self) -> Result<Vec<Arc<C>>> {
        let uid = &self.ctx.object.uid;
        let mut objects = self.ctx.listed(&self.kind, None).await?.dependents_of(uid);
        objects.retain(|object| object.is_controlled_by(uid));
        self.decoded(self.narrowed(objects))
    }

    /// As [`Context::patch`].
    pub async fn patch(&self, key: impl Into<Key>, patch: &Patch<impl Serialize>) -> Result<Arc<C>> {
        let key = self.key(key)?;
        self.ctx.patch_key(&self.kind, &key, patch).await
    }

    fn decoded(&self, objects: Vec<Arc<Object>>) -> Result<Vec<Arc<C>>> {
        Ok(objects.iter().map(|object| decode(&self.kind, object)).collect::<Result<_, _>>()?)
    }
}

impl<C: Serialize + DeserializeOwned> Objects<'_, C> {
    /// As [`Context::apply`].
    pub async fn apply(&self, child: C) -> Result<Applied> {
        self.ctx.apply_owned(&self.kind, child, Ownership::Controlled).await
    }

    /// As [`Context::apply_shared`].
    pub async fn apply_shared(&self, child: C) -> Result<Applied> {
        self.ctx.apply_owned(&self.kind, child, Ownership::Shared).await
    }

    /// As [`Context::diff`].
    pub async fn diff(&self, child: C) -> Result<Diff> {
        self.ctx.diff_child(&self.kind, child).await
    }

    /// As [`Context::create`].
    pub async fn create(&self, object: C) -> Result<Arc<C>> {
        self.ctx.create_object(&self.kind, object).await
    }
}

impl Context {
    /// Whether the API server may serve a kind: one that is optional, and known not to be served, is not installed.
    pub(super) async fn is_installed(&self, kind: &Kind) -> bool {
        if !self.declared.is_optional(kind) {
            return true;
        }
        match self.listed(&kind.clone().metadata(), None).await {
            Ok(mirror) => !mirror.health().missing,
            Err(_) => true,
        }
    }

    /// The mirror of a kind, once it has been listed, if it knows that namespace.
    pub(super) async fn listed(&self, kind: &Kind, namespace: Option<&str>) -> Result<Arc<Mirror>, ReadError> {
        let mirror = self.cache.mirror_for(kind)?;
        if let Some(namespace) = namespace.filter(|namespace| !mirror.covers(Some(namespace))) {
            return Err(ReadError::Elsewhere { kind: kind.name().into(), namespace: namespace.into() });
        }
        mirror.ready().await?;
        Ok(mirror)
    }

    /// Where a name alone is: in the namespace of the object being reconciled, unless the kind has none.
    pub(super) fn beside(&self, kind: &Kind, key: Key) -> Result<Key, ReadError> {
        match kind.scope {
            Scope::Cluster => key.for_kind(kind),
            _ => key.in_namespace(self.object.key.namespace()).for_kind(kind),
        }
    }
}

impl<C> fmt::Debug for Objects<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Objects of {} {:?}", self.kind.name(), self.within)
    }
}
