//! What a controller caches: which kinds, which of their objects, what of each, and how they are found.

use crate::Selection;
use crate::cache::kind::Kind;
use crate::declare::controller::Controller;
use kube::{Resource, core::Selector};
use serde::de::DeserializeOwned;

impl<K> Controller<K> {
    /// Caches whole objects of kind `C` for the reads of a [`Context`](crate::Context), without being triggered by them.
    pub fn reads<C>(mut self) -> Controller<K>
    where
        C: Resource<DynamicType = (), Scope: 'static>,
    {
        self.spec.reads(Kind::of::<C>());
        self
    }

    /// Declares what the reconcile does to objects of kind `C` through the [`Context`](crate::Context)'s client, so that
    /// `rbac` and `manifests` allow it: `.needs::<Pod>(["create", "delete"])`.
    pub fn needs<C>(mut self, verbs: impl IntoIterator<Item: Into<String>>) -> Controller<K>
    where
        C: Resource<DynamicType = (), Scope: 'static>,
    {
        self.spec.needs(Kind::of::<C>(), verbs);
        self
    }

    /// Reconciles only objects with these labels; others are not even cached.
    ///
    /// An object that loses them is to this controller as if it were deleted.
    pub fn labels(mut self, labels: impl Into<Selector>) -> Controller<K> {
        let selection = self.spec.kind.selection.clone().labels(labels);
        self.spec.select(self.spec.kind.id(), selection);
        self
    }

    /// Reconciles only objects with these fields, as in `status.phase!=Succeeded`; others are not even cached.
    pub fn fields(mut self, fields: &str) -> Controller<K> {
        let selection = self.spec.kind.selection.clone().fields(fields);
        self.spec.select(self.spec.kind.id(), selection);
        self
    }

    /// Caches only a part of the objects of kind `C`, or only a part of each. It holds for this controller: what it
    /// reconciles, owns, watches and reads of that kind.
    pub fn select<C>(mut self, selection: Selection) -> Controller<K>
    where
        C: Resource<DynamicType = (), Scope: 'static>,
    {
        self.spec.select(Kind::of::<C>().id(), selection);
        self
    }

    /// Declares that kind `C`, which the controller owns, watches or reads, may not be installed.
    ///
    /// While it is not, that is no reason to be unready, reads find nothing, and an apply answers
    /// [`Applied::NotInstalled`](crate::Applied::NotInstalled). Within ten seconds after it is installed, every object of this
    /// controller is reconciled, and the kind is cached and watched from then on; also when it goes and returns.
    ///
    /// ```
    /// # use flyball::{Action, Context, Controller, Result};
    /// # use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
    /// # use std::sync::Arc;
    /// # type Certificate = Deployment;
    /// # async fn reconcile(_: Arc<ConfigMap>, _: Context) -> Result { Ok(Action::await_change()) }
    /// let controller = Controller::new(reconcile).owns::<Certificate>().optional::<Certificate>();
    /// ```
    pub fn optional<C>(mut self) -> Controller<K>
    where
        C: Resource<DynamicType = (), Scope: 'static>,
    {
        self.spec.optional(Kind::of::<C>().id());
        self
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
        self.spec.index(Kind::of::<C>(), name.into(), by);
        self
    }
}
