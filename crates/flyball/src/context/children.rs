//! `Context::apply_all`: several children as one set, applied in steps, each step after the one before is ready, and pruned.

use crate::cache::kind::Kind;
use crate::context::Context;
use crate::context::own::Ownership;
use crate::context::wait::NotReady;
use crate::{Applied, Error, Key, Readiness, Result};
use futures::future::BoxFuture;
use kube::{
    Resource,
    api::{ApiResource, DynamicObject},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

/// Built-in kinds that have no status: they are ready once they exist. By group and plural.
const WITHOUT_STATUS: [(&str, &str); 12] = [
    ("", "configmaps"),
    ("", "endpoints"),
    ("", "limitranges"),
    ("", "secrets"),
    ("", "serviceaccounts"),
    ("discovery.k8s.io", "endpointslices"),
    ("networking.k8s.io", "ingressclasses"),
    ("networking.k8s.io", "networkpolicies"),
    ("rbac.authorization.k8s.io", "clusterrolebindings"),
    ("rbac.authorization.k8s.io", "clusterroles"),
    ("rbac.authorization.k8s.io", "rolebindings"),
    ("rbac.authorization.k8s.io", "roles"),
];

/// The children of an object as one set, in steps; [`Context::apply_all`] applies it.
///
/// It is a plain value, so the function that makes it of a spec needs no [`Context`]:
///
/// ```
/// use flyball::{Action, Children, Context, Controller, Result};
/// use k8s_openapi::api::{apps::v1::Deployment, batch::v1::Job, core::v1::{ConfigMap, Service}};
/// # use std::sync::Arc;
///
/// fn children(settings: ConfigMap, database: Deployment, migration: Option<Job>, web: Deployment) -> Children {
///     let mut children = Children::new().apply(settings).apply(database).then();
///     if let Some(migration) = migration {
///         children = children.apply(migration).then();
///     }
///     children.apply(web).apply(Service::default())
/// }
///
/// # fn desired(_: &ConfigMap) -> Children { Children::new() }
/// async fn reconcile(shop: Arc<ConfigMap>, ctx: Context) -> Result {
///     ctx.apply_all(desired(&shop)).await?;
///     Ok(Action::await_change())
/// }
///
/// let controller = Controller::new(reconcile)
///     .owns::<ConfigMap>()
///     .owns::<Service>()
///     .owns::<Deployment>()
///     .owns::<Job>()
///     // Whether they are ready is in their status.
///     .reads::<Deployment>()
///     .reads::<Job>();
/// ```
#[must_use = "a set does nothing until `Context::apply_all` applies it"]
pub struct Children {
    steps: Vec<Vec<Child>>,
}

/// Applies one child, and says what it is.
type Child = Box<dyn for<'a> FnOnce(&'a Context) -> BoxFuture<'a, Result<AppliedChild>> + Send>;

struct AppliedChild {
    kind: Kind,
    /// Where it is, unless its kind is not installed.
    key: Option<Key>,
    applied: Applied,
}

impl Children {
    /// An empty set: applied, it deletes every child of the controller's owned kinds.
    pub fn new() -> Children {
        Children { steps: vec![Vec::new()] }
    }

    /// Adds a child to the current step; see [`Context::apply`].
    pub fn apply<C>(self, child: C) -> Children
    where
        C: Resource<DynamicType = (), Scope: 'static> + Serialize + DeserializeOwned + Send + 'static,
    {
        self.add(|_| Kind::of::<C>(), child)
    }

    /// Adds a child of a kind that is known at run time only to the current step; see [`Context::dynamic`].
    pub fn apply_dynamic(self, resource: &ApiResource, child: DynamicObject) -> Children {
        let resource = resource.clone();
        self.add(move |ctx| ctx.declared.dynamic(&resource), child)
    }

    /// Begins the next step: it is applied once every child so far is ready. At the end of a set it means that the set is
    /// complete only when all of its children are ready.
    pub fn then(mut self) -> Children {
        self.steps.push(Vec::new());
        self
    }

    fn add<C>(mut self, kind: impl FnOnce(&Context) -> Kind + Send + 'static, child: C) -> Children
    where
        C: Serialize + DeserializeOwned + Send + 'static,
    {
        let apply: Child = Box::new(move |ctx| {
            let kind = kind(ctx);
            Box::pin(async move {
                let (key, applied) = ctx.apply_keyed(&kind, child, Ownership::Controlled).await?;
                Ok(AppliedChild { kind, key, applied })
            })
        });
        self.steps.last_mut().expect("there is a current step").push(apply);
        self
    }
}

impl Default for Children {
    fn default() -> Children {
        Children::new()
    }
}

impl std::fmt::Debug for Children {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let steps: Vec<_> = self.steps.iter().map(Vec::len).collect();
        write!(f, "Children in steps of {steps:?}")
    }
}

impl Context {
    /// Applies a set of children step by step, then deletes what the set no longer contains. Answers with what each apply did.
    ///
    /// A step is applied once every child of the steps before is [ready](Readiness::of). Until then the reconcile ends as by
    /// [`Context::ready`]: that is no failure, and the condition `Ready` says what is missing. The status of a kind that a later
    /// step waits for must be cached: declare [`Controller::reads`](crate::Controller::reads) for it, unless the kind has none.
    ///
    /// Once all steps are applied, children of the kinds that the controller [owns](crate::Controller::owns) are pruned as
    /// by [`Context::prune`], except those in the set and those that this reconcile has applied before: kinds of later steps
    /// before kinds of earlier ones, kinds that are not in the set first. If an apply fails, nothing is deleted.
    ///
    /// See [`Children`] for an example.
    pub async fn apply_all(&self, children: Children) -> Result<Vec<Applied>> {
        let (mut done, mut kinds) = (Vec::new(), Vec::new());
        let last = children.steps.len() - 1;
        for (count, step) in children.steps.into_iter().enumerate() {
            let mut applied = Vec::new();
            for child in step {
                applied.push(child(self).await?);
            }
            if count < last {
                self.all_ready(&applied).await?;
            }
            for child in applied {
                done.push(child.applied);
                kinds.push(child.kind);
            }
        }
        for kind in self.prune_order(&kinds) {
            self.prune_kind(kind.metadata()).await?;
        }
        Ok(done)
    }

    /// The kinds that the controller owns, in the order in which they are pruned. `applied` are those of the set, in its order.
    fn prune_order(&self, applied: &[Kind]) -> Vec<Kind> {
        let position = |owned: &Kind| applied.iter().rposition(|kind| kind.is_same_resource(owned));
        let mut owned: Vec<_> = self.declared.owned().iter().rev().cloned().collect();
        // `None`, a kind that is not in the set, comes first.
        owned.sort_by_key(|kind| position(kind).map(|position| applied.len() - position));
        owned
    }

    /// Ends the reconcile with what the children lack, unless all of them are ready.
    async fn all_ready(&self, children: &[AppliedChild]) -> Result<()> {
        let mut lacks = Vec::new();
        for child in children {
            let Some(key) = &child.key else { continue };
            lacks.extend(self.lack(&child.kind, key).await?.map(|lack| lack.to_string()));
        }
        match lacks.is_empty() {
            true => Ok(()),
            false => Err(Error::waiting(lacks.join("; "))),
        }
    }

    /// What a child lacks that was just applied.
    async fn lack(&self, kind: &Kind, key: &Key) -> Result<Option<NotReady>> {
        let (group, plural) = kind.group_resource();
        if WITHOUT_STATUS.contains(&(&group, &plural)) {
            return Ok(None);
        }
        let mirror = self.listed(kind, key.namespace()).await?;
        let Some(object) = mirror.get(key) else {
            return Err(Error::waiting(format!("waiting for {} {key}: it is gone", kind.name())));
        };
        let mut object: Value = serde_json::from_str(&object.json())?;
        object["apiVersion"] = kind.resource.api_version.clone().into();
        object["kind"] = kind.name().into();
        let readiness = Readiness::of(&object, &self.now());
        Ok(NotReady::of(&object, readiness))
    }
}
