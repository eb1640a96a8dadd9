//! What a controller does with a kind that is known at run time only: `Controller::dynamic`.

use crate::cache::kind::{Kind, Scope};
use crate::declare::controller::{Controller, ControllerSpec};
use crate::{Cache, Mapped, Predicate, Selection};
use kube::{
    Resource,
    api::{ApiResource, DynamicObject},
};
use serde::de::DeserializeOwned;
use std::sync::Arc;

impl<K> Controller<K> {
    /// Declares what the controller does with a kind that is known at run time only, in the words that [`Controller`] has for
    /// other kinds. A reconcile reads and writes its objects with [`Context::dynamic`](crate::Context::dynamic).
    ///
    /// ```
    /// # use flyball::{Action, Context, Controller};
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
    /// let monitors = ApiResource::from_gvk(&GroupVersionKind::gvk("monitoring.coreos.com", "v1", "ServiceMonitor"));
    /// let owned = monitors.clone();
    /// let reconcile = move |_: std::sync::Arc<ConfigMap>, ctx: Context| {
    ///     let monitors = monitors.clone();
    ///     async move {
    ///         let spec = serde_json::json!({ "spec": { "endpoints": [{ "port": "metrics" }] } });
    ///         ctx.dynamic(&monitors).apply(DynamicObject::new("metrics", &monitors).data(spec)).await?;
    ///         Ok(Action::await_change())
    ///     }
    /// };
    /// let controller = Controller::new(reconcile).dynamic(&owned, |kind| kind.owns());
    /// ```
    pub fn dynamic(self, resource: &ApiResource, declare: impl FnOnce(DynamicKind) -> DynamicKind) -> Controller<K> {
        let kind = Kind::new::<DynamicObject>(resource.clone());
        let DynamicKind { spec, .. } = declare(DynamicKind { kind, spec: self.spec });
        Controller::from_spec(spec)
    }
}

/// A kind that is known at run time only, as a controller declares it; see [`Controller::dynamic`].
#[derive(Debug)]
pub struct DynamicKind {
    kind: Kind,
    spec: ControllerSpec,
}

impl DynamicKind {
    /// As [`Controller::owns`].
    pub fn owns(mut self) -> DynamicKind {
        self.spec.owns(self.kind.clone());
        self
    }

    /// As [`Controller::watches`]; `O` is `DynamicObject` or `PartialObjectMeta`.
    pub fn watches<O, I>(mut self, map: impl Fn(Arc<O>, Cache) -> I + Send + Sync + 'static) -> DynamicKind
    where
        O: Resource<DynamicType = ApiResource, Scope: 'static> + DeserializeOwned,
        I: Mapped,
    {
        let form = Kind::new::<O>(self.kind.resource.clone()).form;
        self.spec.watches(Kind { form, ..self.kind.clone() }, map);
        self
    }

    /// As [`Controller::reads`].
    pub fn reads(mut self) -> DynamicKind {
        self.spec.reads(self.kind.clone());
        self
    }

    /// As [`Controller::needs`].
    pub fn needs(mut self, verbs: impl IntoIterator<Item: Into<String>>) -> DynamicKind {
        self.spec.needs(self.kind.clone(), verbs);
        self
    }

    /// As [`Controller::when`].
    pub fn when(mut self, predicate: Predicate) -> DynamicKind {
        self.spec.predicates.push((self.kind.id(), predicate));
        self
    }

    /// As [`Controller::select`].
    pub fn select(mut self, selection: Selection) -> DynamicKind {
        self.spec.select(self.kind.id(), selection);
        self
    }

    /// As [`Controller::index`].
    pub fn index(
        mut self,
        name: impl Into<String>,
        by: impl Fn(&DynamicObject) -> Vec<String> + Send + Sync + 'static,
    ) -> DynamicKind {
        self.spec.index(self.kind.clone(), name.into(), by);
        self
    }

    /// As [`Controller::optional`].
    pub fn optional(mut self) -> DynamicKind {
        self.spec.optional(self.kind.id());
        self
    }

    /// Declares that the kind is namespaced. An operator that is confined to namespaces
    /// ([`Operator::namespaces`](crate::Operator::namespaces)) has to know.
    pub fn namespaced(self) -> DynamicKind {
        self.scoped(Scope::Namespaced)
    }

    /// Declares that the kind is cluster-scoped.
    pub fn cluster_wide(self) -> DynamicKind {
        self.scoped(Scope::Cluster)
    }

    fn scoped(mut self, scope: Scope) -> DynamicKind {
        self.kind.scope = scope;
        let id = self.kind.id();
        self.spec.kinds_mut(&id).for_each(|kind| kind.scope = scope);
        self
    }
}
