//! What a controller caches: which kinds, which of their objects, what of each, and how they are found.

use crate::Selection;
use crate::cache::decode;
use crate::cache::kind::{Kind, KindId};
use crate::cache::object::Object;
use crate::declare::controller::{Controller, ControllerSpec, Indexed};
use kube::{Resource, core::Selector};
use serde::de::DeserializeOwned;
use std::sync::Arc;

impl<K> Controller<K> {
    /// Caches whole objects of kind `C` for the reads of a [`Context`](crate::Context), without being triggered by them.
    pub fn reads<C>(mut self) -> Controller<K>
    where
        C: Resource<DynamicType = (), Scope: 'static>,
    {
        let kind = self.spec.selected(Kind::of::<C>());
        self.spec.read.push(kind);
        self
    }

    /// Declares what the reconcile does to objects of kind `C` through the [`Context`](crate::Context)'s client, so that
    /// `rbac` and `manifests` allow it: `.needs::<Pod>(["create", "delete"])`.
    pub fn needs<C>(mut self, verbs: impl IntoIterator<Item: Into<String>>) -> Controller<K>
    where
        C: Resource<DynamicType = (), Scope: 'static>,
    {
        self.spec.needed.push((Kind::of::<C>(), verbs.into_iter().map(Into::into).collect()));
        self
    }

    /// Reconciles only objects with these labels; others are not even cached.
    ///
    /// An object that loses them is to this controller as if it were deleted.
    pub fn labels(self, labels: impl Into<Selector>) -> Controller<K> {
        let selection = self.spec.kind.selection.clone().labels(labels);
        let id = self.spec.kind.id();
        self.selecting(id, selection)
    }

    /// Reconciles only objects with these fields, as in `status.phase!=Succeeded`; others are not even cached.
    pub fn fields(self, fields: &str) -> Controller<K> {
        let selection = self.spec.kind.selection.clone().fields(fields);
        let id = self.spec.kind.id();
        self.selecting(id, selection)
    }

    /// Caches only a part of the objects of kind `C`, or only a part of each. It holds for this controller: what it
    /// reconciles, owns, watches and reads of that kind.
    pub fn select<C>(self, selection: Selection) -> Controller<K>
    where
        C: Resource<DynamicType = (), Scope: 'static>,
    {
        self.selecting(Kind::of::<C>().id(), selection)
    }

    /// Caches objects of kind `C` so that [`Context::by_index`](crate::Context::by_index) and
    /// [`Cache::by_index`](crate::Cache::by_index) find them by the values that `by` gives for each.
    pub fn index<C>(
        mut self,
        name: impl Into<String>,
        by: impl Fn(&C) -> Vec<String> + Send + Sync + 'static,
    ) -> Controller<K>
    where
        C: Resource<DynamicType = (), Scope: 'static> + DeserializeOwned,
    {
        let kind = self.spec.selected(Kind::of::<C>());
        self.spec.read.push(kind.clone());
        let (indexed, index) = (kind.clone(), name.into());
        let name = index.clone();
        let by = Arc::new(move |object: &Object| match decode::<C>(&indexed, object) {
            Ok(object) => by(&object),
            Err(error) => {
                tracing::error!(index, %error, "an object does not decode and is not in the index");
                Vec::new()
            }
        });
        self.spec.indexes.push(Indexed { kind, name, by });
        self
    }

    fn selecting(mut self, id: KindId, selection: Selection) -> Controller<K> {
        self.spec.selections.retain(|(selected, _)| *selected != id);
        self.spec.selections.push((id.clone(), selection.clone()));
        let watched = self.spec.watched.iter_mut().map(|watched| &mut watched.kind);
        let indexed = self.spec.indexes.iter_mut().map(|indexed| &mut indexed.kind);
        let own = std::iter::once(&mut self.spec.kind)
            .chain(&mut self.spec.owned)
            .chain(&mut self.spec.read);
        for kind in own.chain(watched).chain(indexed).filter(|kind| kind.id() == id) {
            kind.selection = selection.clone();
        }
        self
    }
}

impl ControllerSpec {
    /// A kind as this controller selects it.
    pub(crate) fn selected(&self, kind: Kind) -> Kind {
        let id = kind.id();
        match self.selections.iter().find(|(selected, _)| *selected == id) {
            Some((_, selection)) => Kind { selection: selection.clone(), ..kind },
            None => kind,
        }
    }
}
