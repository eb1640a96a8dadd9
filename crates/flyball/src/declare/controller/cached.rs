//! What a controller caches: which kinds, which of their objects, what of each, and how they are found.

use crate::Selection;
use crate::cache::kind::{Kind, KindId};
use crate::declare::controller::{Controller, Indexed};
use kube::{Resource, core::Selector};
use serde::de::DeserializeOwned;
use std::sync::Arc;

impl Controller {
    /// Caches whole objects of kind `C` for the reads of a [`Context`](crate::Context), without being triggered by them.
    pub fn reads<C>(mut self) -> Controller
    where
        C: Resource<DynamicType = (), Scope: 'static>,
    {
        let kind = self.selected(Kind::of::<C>());
        self.read.push(kind);
        self
    }

    /// Declares what the reconcile does to objects of kind `C` through the [`Context`](crate::Context)'s client, so that
    /// `rbac` and `manifests` allow it: `.needs::<Pod>(["create", "delete"])`.
    pub fn needs<C>(mut self, verbs: impl IntoIterator<Item: Into<String>>) -> Controller
    where
        C: Resource<DynamicType = (), Scope: 'static>,
    {
        self.needed.push((Kind::of::<C>(), verbs.into_iter().map(Into::into).collect()));
        self
    }

    /// Reconciles only objects with these labels; others are not even cached.
    ///
    /// An object that loses them is to this controller as if it were deleted.
    pub fn labels(self, labels: impl Into<Selector>) -> Controller {
        let selection = self.kind.selection.clone().labels(labels);
        let id = self.kind.id();
        self.selecting(id, selection)
    }

    /// Reconciles only objects with these fields, as in `status.phase!=Succeeded`; others are not even cached.
    pub fn fields(self, fields: &str) -> Controller {
        let selection = self.kind.selection.clone().fields(fields);
        let id = self.kind.id();
        self.selecting(id, selection)
    }

    /// Caches only a part of the objects of kind `K`, or only a part of each. It holds for this controller: what it
    /// reconciles, owns, watches and reads of that kind.
    pub fn select<K>(self, selection: Selection) -> Controller
    where
        K: Resource<DynamicType = (), Scope: 'static>,
    {
        self.selecting(Kind::of::<K>().id(), selection)
    }

    /// Caches objects of kind `K` so that [`Context::by_index`](crate::Context::by_index) and
    /// [`Cache::by_index`](crate::Cache::by_index) find them by the values that `by` gives for each.
    pub fn index<K>(
        mut self,
        name: impl Into<String>,
        by: impl Fn(&K) -> Vec<String> + Send + Sync + 'static,
    ) -> Controller
    where
        K: Resource<DynamicType = (), Scope: 'static> + DeserializeOwned,
    {
        let kind = self.selected(Kind::of::<K>());
        self.read.push(kind.clone());
        let by = Arc::new(move |object: &crate::cache::object::Object| match object.decode::<K>() {
            Ok(object) => by(&object),
            Err(_) => Vec::new(),
        });
        self.indexes.push(Indexed { kind, name: name.into(), by });
        self
    }

    /// A kind as this controller selects it.
    pub(crate) fn selected(&self, kind: Kind) -> Kind {
        let id = kind.id();
        match self.selections.iter().find(|(selected, _)| *selected == id) {
            Some((_, selection)) => Kind { selection: selection.clone(), ..kind },
            None => kind,
        }
    }

    fn selecting(mut self, id: KindId, selection: Selection) -> Controller {
        self.selections.retain(|(selected, _)| *selected != id);
        self.selections.push((id.clone(), selection.clone()));
        let watched = self.watched.iter_mut().map(|watched| &mut watched.kind);
        let indexed = self.indexes.iter_mut().map(|indexed| &mut indexed.kind);
        let own = std::iter::once(&mut self.kind).chain(&mut self.owned).chain(&mut self.read);
        for kind in own.chain(watched).chain(indexed).filter(|kind| kind.id() == id) {
            kind.selection = selection.clone();
        }
        self
    }
}
