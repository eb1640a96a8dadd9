//! A controller as its author declares it: a reconcile, and what triggers it. It does nothing until its operator runs.

mod cached;
mod pace;

use crate::cache::IndexedBy;
use crate::cache::kind::{Kind, KindId, Scope};
use crate::cache::object::Object;
use crate::declare::reconciler::{Work, erase};
use crate::engine::work::Rate;
use crate::{Action, Backoff, Cache, Context, Election, Key, Predicate, Reconciler, Result, Selection, Trigger};
use kube::{Resource, api::ApiResource};
use serde::de::DeserializeOwned;
use std::{
    any::{TypeId, type_name},
    sync::Arc,
    time::Duration,
};

/// Reconciles the objects of one kind.
#[derive(Clone)]
pub struct Controller {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// The type that objects decode to, and its name.
    object: (TypeId, &'static str),
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
    pub(crate) gone: Option<Gone>,
    pub(crate) concurrency: usize,
    pub(crate) backoff: Backoff,
    pub(crate) timeout: Option<Duration>,
    pub(crate) resync: Option<Duration>,
    pub(crate) rate: Option<Rate>,
    pub(crate) triggers: Vec<Trigger>,
    pub(crate) election: Option<Election>,
    predicates: Vec<(KindId, Predicate)>,
    pub(crate) selections: Vec<(KindId, Selection)>,
    pub(crate) indexes: Vec<Indexed>,
    /// What the author declared wrongly; said when the operator starts.
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
type Map = Arc<dyn Fn(&Object, Cache) -> Vec<Key> + Send + Sync>;

/// Enough that one slow object delays no other, and few enough for any API server.
const CONCURRENCY: usize = 64;

impl Controller {
    /// Reconciles every object of the kind that `reconcile` takes: when it changes, and when something does that the
    /// controller owns or watches.
    ///
    /// Objects that are being deleted are not reconciled; see [`Controller::cleanup`] and [`Controller::terminating`].
    pub fn new<K>(reconcile: impl Reconciler<K>) -> Controller
    where
        K: Resource<DynamicType = (), Scope: 'static> + DeserializeOwned + Send + Sync + 'static,
    {
        Controller::of(ApiResource::erase::<K>(&()), reconcile)
    }

    /// Reconciles every object of a kind that is known at run time only; `K` is `DynamicObject` or `PartialObjectMeta`.
    ///
    /// Where its operator is confined to namespaces, say [`Controller::namespaced`] or [`Controller::cluster_wide`] too.
    pub fn of<K>(resource: ApiResource, reconcile: impl Reconciler<K>) -> Controller
    where
        K: Resource<Scope: 'static> + DeserializeOwned + Send + Sync + 'static,
    {
        let kind = Kind::new::<K>(resource);
        let reconcile = Arc::new(reconcile);
        let work = move |object: Arc<K>, ctx: Context| {
            let reconcile = reconcile.clone();
            async move { reconcile.reconcile(object, ctx).await }
        };
        Controller {
            name: kind.name().to_lowercase(),
            object: (TypeId::of::<K>(), type_name::<K>()),
            reconcile: erase(kind.clone(), work),
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
            gone: None,
            concurrency: CONCURRENCY,
            backoff: Backoff::default(),
            timeout: None,
            resync: None,
            rate: None,
            election: None,
            triggers: Vec::new(),
            predicates: Vec::new(),
            selections: Vec::new(),
            indexes: Vec::new(),
            mistakes: Vec::new(),
        }
    }

    /// Says that the objects of a kind that is known at run time only live in namespaces, so that an operator which is confined
    /// to some ([`Operator::namespaces`](crate::Operator::namespaces)) watches it there. Such an operator must be told this or
    /// [`Controller::cluster_wide`].
    pub fn namespaced(self) -> Controller {
        self.scoped(Scope::Namespaced)
    }

    /// Says that the objects of a kind that is known at run time only belong to no namespace: it is watched everywhere.
    pub fn cluster_wide(self) -> Controller {
        self.scoped(Scope::Cluster)
    }

    fn scoped(mut self, scope: Scope) -> Controller {
        if ![Scope::Unknown, scope].contains(&self.kind.scope) {
            self.mistakes
                .push(format!("{} is {:?}, not {scope:?}", self.kind.name(), self.kind.scope));
        }
        self.kind.scope = scope;
        self
    }

    /// Reconciles an object also when a child of kind `C` that it controls changes or is deleted.
    ///
    /// Only the children's metadata is cached, unless [`Controller::reads`] asks for more.
    pub fn owns<C>(mut self) -> Controller
    where
        C: Resource<DynamicType = (), Scope: 'static>,
    {
        let kind = self.selected(Kind::of::<C>().metadata());
        self.owned.push(kind);
        self
    }

    /// Reconciles the objects that `map` names whenever an object of kind `O` changes or is deleted.
    ///
    /// `map` is given the object as it was and as it is, so that both what it referred to and what it refers to now are
    /// reconciled. For `O` use `PartialObjectMeta` where metadata suffices: less is cached.
    pub fn watches<O, I>(mut self, map: impl Fn(Arc<O>, Cache) -> I + Send + Sync + 'static) -> Controller
    where
        O: Resource<DynamicType = (), Scope: 'static> + DeserializeOwned,
        I: IntoIterator<Item = Key>,
    {
        let map = move |object: &Object, cache: Cache| match object.decode::<O>() {
            Ok(object) => map(object, cache).into_iter().collect(),
            Err(_) => Vec::new(),
        };
        let kind = self.selected(Kind::of::<O>());
        self.watched.push(Watched { kind, map: Arc::new(map) });
        self
    }

    /// Reconciles an object also when one of its owners, of any kind that the operator caches, begins to be deleted or is gone.
    pub fn follows_owners(mut self) -> Controller {
        self.follows_owners = true;
        self
    }

    /// Reconciles an object also when an object of any cached kind begins or ceases to name it as an owner.
    pub fn follows_dependents(mut self) -> Controller {
        self.follows_dependents = true;
        self
    }

    /// Tells `gone` the key of an object that is there no more, never while the object is being reconciled.
    ///
    /// It is for what the author keeps in memory: what goes while the operator is not running is never told. Use
    /// [`Controller::cleanup`] for what must not be missed.
    pub fn gone(mut self, gone: impl Fn(&Key) + Send + Sync + 'static) -> Controller {
        self.gone = Some(Arc::new(gone));
        self
    }

    /// Runs `cleanup` when an object is deleted, and lets it go once that succeeds.
    ///
    /// The object carries a finalizer, `flyball.dev/` and the operator's name, from before its first reconcile. Given several
    /// times, the cleanups run in that order, each after the one before has succeeded. If one fails, all are repeated from the
    /// first, with the object's backoff; so each must bear to be repeated.
    ///
    /// An object whose cleanup cannot succeed any more is let go by its annotation `flyball.dev/skip-cleanup: "true"`, or by
    /// [`Controller::cleanup_deadline`]; a warning event then tells of it.
    pub fn cleanup<K, Fut>(mut self, cleanup: impl Fn(Arc<K>, Context) -> Fut + Send + Sync + 'static) -> Controller
    where
        K: DeserializeOwned + Send + Sync + 'static,
        Fut: Future<Output = Result<()>> + Send + 'static,
    {
        self.expect::<K>("cleanup");
        self.cleanup.push(erase(self.kind.clone(), cleanup));
        self
    }

    /// Lets an object go whose cleanup has not succeeded this long after its deletion; never, unless set.
    ///
    /// A cleanup that is under way then is cancelled; one that waits for its next attempt does not get it.
    pub fn cleanup_deadline(mut self, deadline: Duration) -> Controller {
        self.cleanup_deadline = Some(deadline);
        self
    }

    /// Runs `terminating` in place of the reconcile for objects that are being deleted, without holding them back.
    pub fn terminating<K, Fut>(
        mut self,
        terminating: impl Fn(Arc<K>, Context) -> Fut + Send + Sync + 'static,
    ) -> Controller
    where
        K: DeserializeOwned + Send + Sync + 'static,
        Fut: Future<Output = Result> + Send + 'static,
    {
        self.expect::<K>("terminating");
        self.terminating = Some(erase(self.kind.clone(), terminating));
        self
    }

    /// Is triggered by a change of an object of kind `K`, which the controller reconciles, owns or watches, only if
    /// `predicate` passes. Given twice for a kind, both must pass.
    ///
    /// Deletions always pass, unless [`Predicate::and_deletions`] says otherwise.
    pub fn when<K>(mut self, predicate: Predicate) -> Controller
    where
        K: Resource<DynamicType = (), Scope: 'static>,
    {
        self.predicates.push((Kind::of::<K>().id(), predicate));
        self
    }

    /// Reconciles also what `trigger` asks for.
    pub fn triggered_by(mut self, trigger: &Trigger) -> Controller {
        self.triggers.push(trigger.clone());
        self
    }

    /// What changes of a kind must pass.
    pub(crate) fn predicate(&self, kind: &KindId) -> Option<Predicate> {
        let given = self.predicates.iter().filter(|(given, _)| given == kind);
        given.map(|(_, predicate)| predicate.clone()).reduce(Predicate::and)
    }

    /// What the author declared wrongly, here or in what was declared before.
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
        self.mistakes.iter().cloned().chain(unknown).chain(selections).collect()
    }

    /// What is wrong with it in an operator that is confined to namespaces.
    pub(crate) fn unplaced(&self) -> Option<String> {
        (self.kind.scope == Scope::Unknown).then(|| {
            format!(
                "the operator is confined to namespaces, and whether {} lives in them is not known: say `.namespaced()` or \
                 `.cluster_wide()` after `Controller::of`",
                self.kind.name()
            )
        })
    }

    /// Every kind that this controller needs a cache of.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = &Kind> {
        let watched = self.watched.iter().map(|watched| &watched.kind);
        std::iter::once(&self.kind).chain(&self.owned).chain(&self.read).chain(watched)
    }

    fn expect<K: 'static>(&mut self, what: &str) {
        let (expected, name) = self.object;
        if TypeId::of::<K>() != expected {
            self.mistakes
                .push(format!("{what} takes {}, but its controller reconciles {name}", type_name::<K>()));
        }
    }
}

impl std::fmt::Debug for Controller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Controller of {}", self.kind.name())
    }
}
