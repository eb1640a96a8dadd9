//! A controller as its author declares it: a reconcile, and what triggers it. It does nothing until its operator runs.

mod cached;
mod kinds;
mod pace;

use crate::cache::IndexedBy;
use crate::cache::kind::{Kind, KindId, Scope};
use crate::cache::object::Object;
use crate::declare::daemon::DaemonSpec;
use crate::declare::reconciler::{self, OnError, Work, erase, erase_on_error};
use crate::declare::timer::TimerSpec;
use crate::engine::timer::Schedule;
use crate::engine::work::Rate;
use crate::{
    Action, Backoff, Cache, Context, Election, Error, Key, Mapped, Predicate, Reconciler, Result, Selection, Trigger,
};
use kube::{Resource, api::ApiResource};
use serde::de::DeserializeOwned;
use std::{marker::PhantomData, sync::Arc, time::Duration};

/// Reconciles the objects of one kind, `K`.
pub struct Controller<K> {
    pub(crate) spec: ControllerSpec,
    object: PhantomData<fn(Arc<K>)>,
}

/// What a controller declares, without the type of its objects.
#[derive(Clone)]
pub(crate) struct ControllerSpec {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) reconcile: Work<Action>,
    pub(crate) terminating: Option<Work<Action>>,
    /// In order.
    pub(crate) cleanup: Vec<Work<()>>,
    pub(crate) cleanup_deadline: Option<Duration>,
    pub(crate) owned: Vec<Kind>,
    pub(crate) watched: Vec<Watched>,
    pub(crate) read: Vec<Kind>,
    /// What the author does through the client, by kind.
    pub(crate) needed: Vec<(Kind, Vec<String>)>,
    pub(crate) follows_owners: bool,
    pub(crate) follows_dependents: bool,
    pub(crate) gone: Vec<Gone>,
    /// Run after every failed reconcile.
    pub(crate) on_error: Vec<OnError>,
    pub(crate) ready_condition: bool,
    pub(crate) concurrency: usize,
    pub(crate) backoff: Backoff,
    pub(crate) timeout: Duration,
    pub(crate) resync: Option<Duration>,
    /// The operator's unless set.
    pub(crate) shutdown_grace: Option<Duration>,
    pub(crate) rate: Option<Rate>,
    pub(crate) triggers: Vec<Trigger>,
    pub(crate) election: Option<Election>,
    pub(crate) predicates: Vec<(KindId, Predicate)>,
    pub(crate) selections: Vec<(KindId, Selection)>,
    pub(crate) indexes: Vec<Indexed>,
    /// Kinds that may not be installed.
    pub(crate) optional: Vec<KindId>,
    pub(crate) timers: Vec<TimerSpec>,
    pub(crate) daemons: Vec<DaemonSpec>,
    /// When each object runs, if this is a timer of a controller.
    pub(crate) schedule: Option<Arc<Schedule>>,
    /// Declaration errors, reported when the operator starts.
    pub(crate) mistakes: Vec<String>,
}

/// A kind, and which objects of the controller's kind each of its objects concerns.
#[derive(Clone)]
pub(crate) struct Watched {
    pub(crate) kind: Kind,
    pub(crate) map: Map,
}

/// A kind, and what its objects are found by.
#[derive(Clone)]
pub(crate) struct Indexed {
    pub(crate) kind: Kind,
    pub(crate) name: String,
    pub(crate) by: IndexedBy,
}

impl Indexed {
    /// Whether another index has this one's name, among the same objects.
    pub(crate) fn is_taken_by(&self, other: &Indexed) -> bool {
        let same = self.name == other.name && self.kind.id() == other.kind.id();
        same && self.kind.selection == other.kind.selection && !Arc::ptr_eq(&self.by, &other.by)
    }
}

type Gone = Arc<dyn Fn(&Key) + Send + Sync>;
type Map = Arc<dyn Fn(&Object, Cache) -> Result<Vec<Key>> + Send + Sync>;

/// Default of [`Controller::concurrency`]: one slow object delays no other, and any API server bears it.
const CONCURRENCY: usize = 64;

/// Default of [`Controller::timeout`].
const RECONCILE_TIMEOUT: Duration = Duration::from_secs(10 * 60);

impl<K> Controller<K>
where
    K: Resource<Scope: 'static> + DeserializeOwned + Send + Sync + 'static,
{
    /// Reconciles every object of kind `K`: when it changes, and when an object changes that the controller owns or watches.
    ///
    /// Objects that are being deleted are not reconciled; see [`Controller::cleanup`] and [`Controller::terminating`].
    pub fn new(reconciler: impl Reconciler<K>) -> Controller<K>
    where
        K: Resource<DynamicType = ()>,
    {
        Controller::of(ApiResource::erase::<K>(&()), reconciler)
    }

    /// Reconciles every object of a kind that is known at run time only; `K` is `DynamicObject` or `PartialObjectMeta`.
    ///
    /// An operator that is confined to namespaces also needs [`Controller::namespaced`] or [`Controller::cluster_wide`].
    pub fn of<R: Reconciler<K>>(resource: ApiResource, reconciler: R) -> Controller<K> {
        let kind = Kind::new::<K>(resource);
        let reconciler = Arc::new(reconciler);
        let mut spec = ControllerSpec::new(kind.clone(), reconciler::reconcile(&kind, &reconciler));
        spec.terminating = Some(reconciler::terminating(&kind, &reconciler));
        spec.on_error.push(reconciler::on_error(&kind, &reconciler));
        if R::FINALIZER {
            spec.cleanup.push(reconciler::cleanup(&kind, &reconciler));
        }
        spec.gone.push(Arc::new(move |key| reconciler.gone(key)));
        Controller::from_spec(spec)
    }

    /// Runs `cleanup` when an object is deleted, and removes the finalizer once that succeeds.
    ///
    /// The object carries a finalizer, `flyball.dev/` and the operator's name, from before its first reconcile. Given several
    /// times, the cleanups run in that order, each after the one before has succeeded. If one fails, all are repeated from the
    /// first, with the object's backoff; so each must be idempotent.
    ///
    /// An object whose cleanup cannot succeed any more is released by its annotation `flyball.dev/skip-cleanup: "true"`, or by
    /// [`Controller::cleanup_deadline`]; a warning event then records it.
    pub fn cleanup<Fut>(mut self, cleanup: impl Fn(Arc<K>, Context) -> Fut + Send + Sync + 'static) -> Controller<K>
    where
        Fut: Future<Output = Result<()>> + Send + 'static,
    {
        self.spec.cleanup.push(erase(self.spec.kind.clone(), cleanup));
        self
    }

    /// Runs `terminating` in place of the reconcile for objects that are being deleted, without holding them back.
    pub fn terminating<Fut>(
        mut self,
        terminating: impl Fn(Arc<K>, Context) -> Fut + Send + Sync + 'static,
    ) -> Controller<K>
    where
        Fut: Future<Output = Result> + Send + 'static,
    {
        self.spec.terminating = Some(erase(self.spec.kind.clone(), terminating));
        self
    }

    /// Runs `on_error` after every reconcile or cleanup that failed, for example to set a condition.
    ///
    /// It does not change when the object is reconciled again. [`Context::gave_up`] tells whether there is no next attempt.
    pub fn on_error<Fut>(
        mut self,
        on_error: impl Fn(Arc<K>, Arc<Error>, Context) -> Fut + Send + Sync + 'static,
    ) -> Controller<K>
    where
        Fut: Future<Output = Result<()>> + Send + 'static,
    {
        self.spec.on_error.push(erase_on_error(self.spec.kind.clone(), on_error));
        self
    }
}

impl<K> Controller<K> {
    pub(crate) fn from_spec(spec: ControllerSpec) -> Controller<K> {
        Controller { spec, object: PhantomData }
    }

    /// Declares that a kind known at run time only is namespaced, so that an operator which is confined to namespaces
    /// ([`Operator::namespaces`](crate::Operator::namespaces)) watches it there.
    pub fn namespaced(self) -> Controller<K> {
        self.scoped(Scope::Namespaced)
    }

    /// Declares that a kind known at run time only is cluster-scoped: it is watched everywhere.
    pub fn cluster_wide(self) -> Controller<K> {
        self.scoped(Scope::Cluster)
    }

    fn scoped(mut self, scope: Scope) -> Controller<K> {
        let spec = &mut self.spec;
        if ![Scope::Unknown, scope].contains(&spec.kind.scope) {
            spec.mistakes
                .push(format!("{} is {:?}, not {scope:?}", spec.kind.name(), spec.kind.scope));
        }
        spec.kind.scope = scope;
        self
    }

    /// Reconciles an object also when a child of kind `C` that it controls changes or is deleted.
    ///
    /// Only the children's metadata is cached, unless [`Controller::reads`] asks for more.
    pub fn owns<C>(mut self) -> Controller<K>
    where
        C: Resource<DynamicType = (), Scope: 'static>,
    {
        self.spec.owns(Kind::of::<C>());
        self
    }

    /// Reconciles the objects that `map` names whenever an object of kind `O` changes or is deleted.
    ///
    /// `map` is given the object as it was and as it is, so that both what it referred to and what it refers to now are
    /// reconciled. For `O` use `PartialObjectMeta` where metadata suffices: less is cached.
    ///
    /// `map` answers with keys, or with a [`Result`] of them; see [`Mapped`]. Of a namespaced kind each key needs its
    /// namespace: a bare name is an error.
    ///
    /// ```
    /// # use flyball::{Action, Cache, Context, Controller, Key, Result};
    /// # use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
    /// # use std::sync::Arc;
    /// # async fn reconcile(_: Arc<Deployment>, _: Context) -> Result { Ok(Action::await_change()) }
    /// fn users(map: Arc<ConfigMap>, cache: Cache) -> Result<Vec<Key>> {
    ///     let name = map.metadata.name.as_deref().unwrap_or_default();
    ///     let users = cache.by_index::<Deployment>("config-map", name)?;
    ///     Ok(users.iter().map(|user| Key::of(&**user)).collect())
    /// }
    /// let controller = Controller::new(reconcile)
    ///     .index("config-map", |user: &Deployment| user.metadata.labels.iter().flat_map(|labels| labels.get("config").cloned()).collect())
    ///     .watches(users);
    /// ```
    pub fn watches<O, I>(mut self, map: impl Fn(Arc<O>, Cache) -> I + Send + Sync + 'static) -> Controller<K>
    where
        O: Resource<DynamicType = (), Scope: 'static> + DeserializeOwned,
        I: Mapped,
    {
        self.spec.watches(Kind::of::<O>(), map);
        self
    }

    /// Reconciles an object also when one of its owners, of any kind that the operator caches, begins to be deleted or is gone.
    #[doc(hidden)]
    pub fn follows_owners(mut self) -> Controller<K> {
        self.spec.follows_owners = true;
        self
    }

    /// Reconciles an object also when an object of any cached kind begins or ceases to name it as an owner.
    #[doc(hidden)]
    pub fn follows_dependents(mut self) -> Controller<K> {
        self.spec.follows_dependents = true;
        self
    }

    /// Calls `gone` with the key of an object that does not exist any more, never while the object is being reconciled.
    ///
    /// It is for state that the author keeps in memory: deletions while the operator is not running are not reported. Use
    /// [`Controller::cleanup`] for what must not be missed.
    pub fn gone(mut self, gone: impl Fn(&Key) + Send + Sync + 'static) -> Controller<K> {
        self.spec.gone.push(Arc::new(gone));
        self
    }

    /// Releases an object whose cleanup has not succeeded this long after its deletion; never, unless set.
    ///
    /// A cleanup that is running then is cancelled; one that waits for its next attempt is not tried again.
    pub fn cleanup_deadline(mut self, deadline: Duration) -> Controller<K> {
        self.spec.cleanup_deadline = Some(deadline);
        self
    }

    /// Reconciles after a change of an object of kind `C`, which the controller reconciles, owns or watches, only if
    /// `predicate` passes. Given twice for a kind, both must pass.
    ///
    /// Deletions always pass, unless [`Predicate::and_deletions`] says otherwise.
    pub fn when<C>(mut self, predicate: Predicate) -> Controller<K>
    where
        C: Resource<DynamicType = (), Scope: 'static>,
    {
        self.spec.predicates.push((Kind::of::<C>().id(), predicate));
        self
    }

    /// Keeps the condition `Ready` in the status of its objects: `True` with reason `Reconciled` after a reconcile that
    /// succeeded, `False` with reason `ReconcileFailed` or `RetriesExhausted` and the error's text after one that failed.
    ///
    /// The kind's status needs a list `conditions`. A status that an author sets without `Ready` keeps it.
    pub fn ready_condition(mut self) -> Controller<K> {
        self.spec.ready_condition = true;
        self
    }

    /// Reconciles also the objects that `trigger` names.
    pub fn triggered_by(mut self, trigger: &Trigger) -> Controller<K> {
        self.spec.triggers.push(trigger.clone());
        self
    }
}

impl ControllerSpec {
    fn new(kind: Kind, reconcile: Work<Action>) -> ControllerSpec {
        ControllerSpec {
            name: kind.name().to_lowercase(),
            reconcile,
            kind,
            terminating: None,
            cleanup: Vec::new(),
            cleanup_deadline: None,
            owned: Vec::new(),
            watched: Vec::new(),
            read: Vec::new(),
            needed: Vec::new(),
            follows_owners: false,
            follows_dependents: false,
            gone: Vec::new(),
            on_error: Vec::new(),
            ready_condition: false,
            concurrency: CONCURRENCY,
            backoff: Backoff::default(),
            timeout: RECONCILE_TIMEOUT,
            resync: None,
            shutdown_grace: None,
            rate: None,
            election: None,
            triggers: Vec::new(),
            predicates: Vec::new(),
            selections: Vec::new(),
            indexes: Vec::new(),
            optional: Vec::new(),
            timers: Vec::new(),
            daemons: Vec::new(),
            schedule: None,
            mistakes: Vec::new(),
        }
    }

    /// A timer or a daemon of this controller: the same kinds, rights and pace, and nothing that belongs to the reconcile.
    pub(crate) fn beside(&self, name: &str) -> ControllerSpec {
        ControllerSpec {
            name: format!("{}/{name}", self.name),
            terminating: None,
            cleanup: Vec::new(),
            cleanup_deadline: None,
            gone: Vec::new(),
            on_error: Vec::new(),
            ready_condition: false,
            resync: None,
            triggers: Vec::new(),
            timers: Vec::new(),
            daemons: Vec::new(),
            ..self.clone()
        }
    }

    /// The predicate that changes of a kind must pass.
    pub(crate) fn predicate(&self, kind: &KindId) -> Option<Predicate> {
        let given = self.predicates.iter().filter(|(given, _)| given == kind);
        given.map(|(_, predicate)| predicate.clone()).reduce(Predicate::and)
    }

    /// Declaration errors.
    pub(crate) fn mistakes(&self) -> Vec<String> {
        let triggers = || {
            std::iter::once(&self.kind)
                .chain(&self.owned)
                .chain(self.watched.iter().map(|it| &it.kind))
        };
        let unknown = self.predicates.iter().filter(|(kind, _)| triggers().all(|known| known.id() != *kind));
        let unknown = unknown.map(|(kind, _)| {
            format!("a predicate on {}, which the {} controller is not triggered by", kind.plural, self.name)
        });
        let selections = self.selections.iter().flat_map(|(_, selection)| selection.mistakes.clone());
        let timers = self.timers.iter().filter_map(|spec| spec.timer.mistake());
        let names = self.timers.iter().map(|spec| &spec.timer.name);
        let names: Vec<_> = names.chain(self.daemons.iter().map(|daemon| &daemon.name)).collect();
        let twice = names.iter().enumerate().filter(|(count, name)| names[..*count].contains(name));
        let twice = twice.map(|(_, name)| {
            format!(
                "two timers or daemons of the {} controller are called {name:?}: name one differently",
                self.name
            )
        });
        let mistakes = self.mistakes.iter().cloned().chain(unknown).chain(selections);
        mistakes.chain(timers).chain(twice).collect()
    }

    /// Why it cannot run in an operator that is confined to namespaces.
    pub(crate) fn scope_error(&self) -> Option<String> {
        let unknown = self.kinds().find(|kind| kind.scope == Scope::Unknown)?;
        let place = match unknown.id() == self.kind.id() {
            true => "after `Controller::of`",
            false => "in `.dynamic(…)`",
        };
        Some(format!(
            "the operator is confined to namespaces, and the scope of {} is not known: say `.namespaced()` or \
             `.cluster_wide()` {place}",
            unknown.name()
        ))
    }

    /// Every kind that this controller needs a cache of.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = &Kind> {
        let watched = self.watched.iter().map(|watched| &watched.kind);
        std::iter::once(&self.kind).chain(&self.owned).chain(&self.read).chain(watched)
    }
}

impl<K> Clone for Controller<K> {
    fn clone(&self) -> Controller<K> {
        Controller { spec: self.spec.clone(), object: PhantomData }
    }
}

impl<K> std::fmt::Debug for Controller<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.spec.fmt(f)
    }
}

impl std::fmt::Debug for ControllerSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Controller of {}", self.kind.name())
    }
}
