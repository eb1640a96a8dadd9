//! What a reconcile is given beside its object: cached reads, writes, events, the time and the client.

pub(crate) mod applied_set;
pub(crate) mod apply;
pub(crate) mod children;
pub(crate) mod condition;
pub(crate) mod conditions;
pub(crate) mod declared;
pub(crate) mod diff;
pub(crate) mod drift;
pub(crate) mod finalizer;
pub(crate) mod objects;
pub(crate) mod own;
pub(crate) mod ready;
pub(crate) mod ready_condition;
pub(crate) mod status;
pub(crate) mod unset;
pub(crate) mod wait;
pub(crate) mod write;

pub use apply::Applied;
pub use children::Children;
pub use condition::ConditionStatus;
pub use conditions::Conditions;
pub use diff::{Diff, Difference};
pub use objects::Objects;

pub(crate) use applied_set::AppliedSet;

use crate::cache::Mirror;
use crate::cache::kind::Kind;
use crate::cache::object::{Object, Owner};
use crate::context::declared::Declared;
use crate::engine::runtime::Runtime;
use crate::engine::stopping::Stopping;
use crate::event::Regarding;
use crate::{Cache, Controller, DynamicController, Event, Events, Key, Metrics, Readiness, Result, Why};
use k8s_openapi::{
    api::core::v1::ObjectReference,
    apimachinery::pkg::apis::meta::v1::{OwnerReference, Time},
};
use kube::{
    Client, Resource,
    api::{ApiResource, DynamicObject, PartialObjectMeta},
};
use serde::de::DeserializeOwned;
use std::{collections::HashSet, sync::Arc};

/// A reconcile's view of the cluster, from the object that it reconciles.
#[derive(Clone)]
pub struct Context {
    pub(crate) operator: Arc<Runtime>,
    /// What is cached, as this controller selects it.
    pub(crate) cache: Cache,
    /// The objects of the kind that is reconciled.
    pub(crate) mirror: Arc<Mirror>,
    pub(crate) object: Arc<Object>,
    /// Which reconcile this is, and why it runs.
    pub(crate) id: u64,
    pub(crate) why: Why,
    /// What this reconcile has applied so far.
    pub(crate) applied: Arc<AppliedSet>,
    /// What the controller declares to do with each kind.
    pub(crate) declared: Arc<Declared>,
    /// Whether the controller keeps the condition `Ready`.
    pub(crate) ready_condition: bool,
    /// Whether this is the failure hook of an object that is not retried before it changes.
    pub(crate) gave_up: bool,
    /// The signal to end.
    pub(crate) stopping: Stopping,
}

/// An owner or a dependent of an object, of whatever kind.
#[derive(Clone, Debug)]
pub struct RelatedObject {
    /// What it is and where it is served.
    pub resource: ApiResource,
    /// Its metadata.
    pub object: Arc<PartialObjectMeta<DynamicObject>>,
}

impl RelatedObject {
    fn new(mirror: &Mirror, object: &Object) -> RelatedObject {
        RelatedObject {
            resource: mirror.kind().resource.clone(),
            object: object.metadata(),
        }
    }
}

/// What was tried, when the API server refused.
#[derive(Debug, thiserror::Error)]
#[error("{verb} {kind} {key}")]
pub(crate) struct Attempt {
    verb: &'static str,
    kind: String,
    key: Key,
    source: kube::Error,
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
        self.objects::<C>().get(key).await
    }

    /// The objects of a kind beside the object being reconciled: of its namespace, or all if it belongs to none.
    ///
    /// They come from the cache, in order of name, and none is older than what this process has written. Each call decodes
    /// every object that it answers with; [`Context::objects`] narrows a list by namespace and labels.
    pub async fn list<C>(&self) -> Result<Vec<Arc<C>>>
    where
        C: Resource<DynamicType = (), Scope: 'static> + DeserializeOwned,
    {
        self.objects::<C>().list().await
    }

    /// The objects of a kind, in all namespaces, that an [index](Controller::index) finds by a value, from the cache.
    pub async fn by_index<C>(&self, index: &str, value: &str) -> Result<Vec<Arc<C>>>
    where
        C: Resource<DynamicType = (), Scope: 'static> + DeserializeOwned,
    {
        self.objects::<C>().by_index(index, value).await
    }

    /// The children of a kind that the object being reconciled controls, from the cache, in order of name.
    pub async fn owned<C>(&self) -> Result<Vec<Arc<C>>>
    where
        C: Resource<DynamicType = (), Scope: 'static> + DeserializeOwned,
    {
        self.objects::<C>().owned().await
    }

    /// Every object, of whatever kind the operator caches, that names the object being reconciled as an owner.
    ///
    /// It waits until all those kinds have been listed.
    pub async fn dependents(&self) -> Result<Vec<RelatedObject>> {
        let (mut dependents, mut seen) = (Vec::new(), HashSet::new());
        for mirror in self.operator.cache.mirrors() {
            mirror.ready().await?;
            // Of one kind there may be several, which select the same object.
            let mut objects = mirror.dependents_of(&self.object.uid);
            objects.retain(|object| seen.insert(object.uid.clone()));
            dependents.extend(objects.iter().map(|object| RelatedObject::new(&mirror, object)));
        }
        Ok(dependents)
    }

    /// The owners that the object being reconciled names, each with the object that is meant if it is cached.
    pub fn owners(&self) -> Vec<(OwnerReference, Option<RelatedObject>)> {
        let (mirrors, namespace) = (self.operator.cache.mirrors(), self.object.key.namespace());
        let references = self.current().metadata().metadata.owner_references.clone().unwrap_or_default();
        let find = |reference: &OwnerReference| {
            let owner = Owner::from(reference);
            mirrors
                .iter()
                .find_map(|mirror| Some(RelatedObject::new(mirror, &*mirror.owner(&owner, namespace)?)))
        };
        references.into_iter().map(|reference| (reference.clone(), find(&reference))).collect()
    }

    /// Why this reconcile runs: what happened, and to which object. It is for people; what to do follows from the object.
    pub fn why(&self) -> &Why {
        &self.why
    }

    /// Tells this reconcile from all others; it is in each of its log lines.
    pub fn reconcile_id(&self) -> String {
        format!("{:016x}", self.id)
    }

    /// Publishes an event about the object being reconciled. It waits for nothing; [`EventPolicy`](crate::EventPolicy) says what
    /// becomes of many.
    pub fn event(&self, event: Event) {
        self.operator.recorder.publish(self, Regarding::object_of(self), event);
    }

    /// Publishes an event about another object. It is in that object's namespace, or in `default` if it has none, where the
    /// operator must be allowed to create events.
    ///
    /// ```
    /// # use flyball::{Context, Event, Result};
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # fn blame(ctx: &Context, pod: &Pod) -> Result<()> {
    /// use kube::Resource;
    /// ctx.event_about(&pod.object_ref(&()), Event::warning("Evicted", "its node is drained"))
    /// # }
    /// ```
    pub fn event_about(&self, object: &ObjectReference, event: Event) -> Result<()> {
        let regarding = Regarding::try_from(object).map_err(crate::Error::permanent)?;
        self.operator.recorder.publish(self, regarding, event);
        Ok(())
    }

    /// What the operator remembers of its events.
    pub fn events(&self) -> &Events {
        self.operator.recorder.events()
    }

    /// Whether the object is not retried before it changes: what a failure hook
    /// ([`Controller::on_error`](crate::Controller::on_error)) may say in a condition. False in a reconcile.
    pub fn gave_up(&self) -> bool {
        self.gave_up
    }

    /// Waits until this work is to end: the operator stops, or the object of a [daemon](Controller::daemon) is deleted.
    ///
    /// What is under way is then given the controller's shutdown grace to end by itself. In a daemon that holds only for work
    /// that awaits this.
    pub async fn stopping(&self) {
        self.stopping.wait().await;
    }

    /// How far an object is, by the rules of its kind: see [`Readiness::of`].
    pub fn readiness(&self, object: &impl serde::Serialize) -> Readiness {
        Readiness::of(object, &self.now())
    }

    /// The time, to the second, as Kubernetes keeps it. It follows tokio's clock while that is paused, so a test may advance it.
    pub fn now(&self) -> Time {
        crate::clock::time(self.operator.clock)
    }

    /// The client, for everything else. Cached reads see what is written through it, too.
    pub fn client(&self) -> Client {
        self.operator.client.clone()
    }

    /// The operator's metrics, to which a reconcile may add its own.
    pub fn metrics(&self) -> &Metrics {
        &self.operator.metrics
    }

    /// Cached reads across all namespaces.
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// Starts one more controller in the same operator: for a kind that was not known when the operator started.
    pub fn control<K>(&self, controller: Controller<K>) -> Result<DynamicController> {
        DynamicController::start(&self.operator, controller.spec)
    }

    pub(crate) fn kind(&self) -> &Kind {
        self.mirror.kind()
    }

    /// The object being reconciled as it is now, with what this process has written meanwhile.
    pub(crate) fn current(&self) -> Arc<Object> {
        let current = self.mirror.get(&self.object.key);
        current
            .filter(|current| current.uid == self.object.uid)
            .unwrap_or_else(|| self.object.clone())
    }
}

/// Says what was tried, in front of why it failed.
pub(crate) fn attempt(verb: &'static str, kind: &Kind, key: &Key) -> impl FnOnce(kube::Error) -> Attempt {
    let (kind, key) = (kind.name().to_owned(), key.clone());
    move |source| Attempt { verb, kind, key, source }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Context of {} {}", self.kind().name(), self.object.key)
    }
}
