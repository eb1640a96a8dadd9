//! What brings an object into its controller's queue: its own changes, and those of what it owns, watches or belongs to.

use crate::cache::kind::{Kind, Scope};
use crate::cache::object::Object;
use crate::cache::{Change, Mirror, Subscriber};
use crate::declare::controller::{ControllerSpec, Watched};
use crate::engine::queue::Priority;
use crate::engine::runner::panicked;
use crate::engine::work::WorkQueue;
use crate::{Cache, Key, Predicate, Result, Why};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

/// Lets every kind that a controller reconciles, owns or watches fill its queue.
pub(crate) fn connect(controller: &ControllerSpec, cache: &Cache, queue: &Arc<WorkQueue>) {
    let cache = &cache.selecting(&controller.selections);
    let mirror = |kind: &Kind| cache.mirror_for(kind).expect("a controller's kinds are followed");
    let when = |kind: &Kind| controller.predicate(&kind.id());
    let own = mirror(&controller.kind);
    own.subscribe(itself(queue, when(&controller.kind)));
    for kind in &controller.owned {
        let owner = controller.kind.clone();
        let add_owner =
            move |object: &Object, add: &mut dyn FnMut(Key)| owner_of(object, &owner).into_iter().for_each(add);
        mirror(kind).subscribe(adding(queue, kind, when(kind), add_owner));
    }
    for watched in &controller.watched {
        let (kind, map) = (&watched.kind, mapping(watched, cache));
        mirror(kind).subscribe(adding_mapped(queue, (kind, &controller.kind), when(kind), map));
    }
    if controller.follows_owners {
        cache.subscribe_everywhere(adding_dependents(queue, &own));
    }
    if controller.follows_dependents {
        cache.subscribe_everywhere(adding_owners(queue, &own));
    }
    for index in &controller.indexes {
        if !mirror(&index.kind).index(&index.name, &index.by) {
            tracing::error!(kind = index.kind.name(), index = index.name, "another index has this name");
        }
    }
    let others = controller.kinds().filter(|kind| kind.id() != controller.kind.id());
    for optional in others.filter(|kind| kind.optional) {
        mirror(optional).installed().connect(queue, &own);
    }
    for trigger in &controller.triggers {
        trigger.connect(queue, &own);
    }
}

/// Adds an object that changed itself.
fn itself(queue: &Arc<WorkQueue>, when: Option<Predicate>) -> Subscriber {
    let tell = move |_: &Mirror, change: &Change, queue: &WorkQueue| {
        if let (true, Some(key)) = (wanted(&when, change), change.key()) {
            queue.add(key.clone(), change.priority(), change.why());
        }
    };
    Subscriber { queue: Arc::downgrade(queue), tell: Arc::new(tell) }
}

fn wanted(when: &Option<Predicate>, change: &Change) -> bool {
    when.as_ref().is_none_or(|predicate| predicate.passes(change))
}

/// Adds to the queue whatever `keys` finds for an object of another kind as it was and as it is.
fn adding(
    queue: &Arc<WorkQueue>,
    kind: &Kind,
    when: Option<Predicate>,
    keys: impl Fn(&Object, &mut dyn FnMut(Key)) + Send + Sync + 'static,
) -> Subscriber {
    let kind: Arc<str> = kind.name().into();
    let tell = move |_: &Mirror, change: &Change, queue: &WorkQueue| {
        if !wanted(&when, change) {
            return;
        }
        for object in [&change.old, &change.new].into_iter().flatten() {
            let add = |key| queue.add(key, change.priority(), change.why().of(&kind, &object.key));
            keys(object, &mut { add });
        }
    };
    Subscriber { queue: Arc::downgrade(queue), tell: Arc::new(tell) }
}

/// Adds the dependents of an object that is gone, or begins to be deleted.
fn adding_dependents(queue: &Arc<WorkQueue>, dependents: &Arc<Mirror>) -> Subscriber {
    let dependents = Arc::downgrade(dependents);
    let tell = move |of: &Mirror, change: &Change, queue: &WorkQueue| {
        let Some(owner) = &change.old else { return };
        let leaves = change
            .new
            .as_ref()
            .is_none_or(|new| new.uid != owner.uid || (new.terminating && !owner.terminating));
        let (true, Some(mirror)) = (leaves, dependents.upgrade()) else {
            return;
        };
        let why = Why::Deleted.of(&of.name(), &owner.key);
        for object in mirror.dependents_of(&owner.uid) {
            queue.add(object.key.clone(), Priority::Live, why.clone());
        }
    };
    Subscriber { queue: Arc::downgrade(queue), tell: Arc::new(tell) }
}

/// Adds what an object names as an owner and did not before, or did before and does not now.
fn adding_owners(queue: &Arc<WorkQueue>, owners: &Arc<Mirror>) -> Subscriber {
    let owners = Arc::downgrade(owners);
    let tell = move |of: &Mirror, change: &Change, queue: &WorkQueue| {
        let (old, new) = (change.old.as_deref(), change.new.as_deref());
        let references = |object: Option<&Object>| object.is_some_and(|object| !object.owners.is_empty());
        let (true, Some(mirror)) = (references(old) || references(new), owners.upgrade()) else {
            return;
        };
        if old.zip(new).is_some_and(|(old, new)| old.uid == new.uid && old.owners == new.owners) {
            return;
        }
        for object in [old, new].into_iter().flatten() {
            let named = object.owners.iter().filter_map(|owner| mirror.owner(owner, object.key.namespace()));
            let why = change.why().of(&of.name(), &object.key);
            named.for_each(|owner| queue.add(owner.key.clone(), change.priority(), why.clone()));
        }
    };
    Subscriber { queue: Arc::downgrade(queue), tell: Arc::new(tell) }
}

/// Adds to the queue what an author's mapper names for an object of another kind as it was and as it is.
fn adding_mapped(
    queue: &Arc<WorkQueue>,
    (watched, own): (&Kind, &Kind),
    when: Option<Predicate>,
    map: impl Fn(&Object) -> Result<Vec<Key>> + Send + Sync + 'static,
) -> Subscriber {
    let (kind, own): (Arc<str>, _) = (watched.name().into(), own.clone());
    let tell = move |_: &Mirror, change: &Change, queue: &WorkQueue| {
        if !wanted(&when, change) {
            return;
        }
        for object in [&change.old, &change.new].into_iter().flatten() {
            let keys = map(object).unwrap_or_else(|error| {
                queue.mapper_failed(&kind, &object.key, &error);
                Vec::new()
            });
            for key in keys {
                match key.for_kind(&own) {
                    Ok(key) => queue.add(key, change.priority(), change.why().of(&kind, &object.key)),
                    Err(error) => queue.mapper_failed(&kind, &object.key, &error.into()),
                }
            }
        }
    };
    Subscriber { queue: Arc::downgrade(queue), tell: Arc::new(tell) }
}

/// Authors' code, which must not end the watch that all controllers share.
fn mapping(watched: &Watched, cache: &Cache) -> impl Fn(&Object) -> Result<Vec<Key>> + Send + Sync + 'static {
    let (map, cache) = (watched.map.clone(), cache.clone());
    move |object| {
        let keys = catch_unwind(AssertUnwindSafe(|| map(object, cache.clone())));
        keys.unwrap_or_else(|panic| Err(panicked("mapper", &*panic)))
    }
}

/// The object of kind `owner` that controls `child`. The version of its API does not matter.
fn owner_of(child: &Object, owner: &Kind) -> Option<Key> {
    let reference = child.controller().filter(|reference| reference.is_a(owner))?;
    let namespace = child.key.namespace().filter(|_| owner.scope != Scope::Cluster);
    Some(Key::from(reference.name.as_ref()).in_namespace(namespace))
}
