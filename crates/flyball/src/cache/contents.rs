//! The objects of a mirror, in order, and how they are found: by key, by owner, by what authors index them by.

use crate::Key;
use crate::cache::change::Change;
use crate::cache::index::{Index, IndexedBy};
use crate::cache::object::Object;
use crate::cache::packer::Packer;
use std::{
    borrow::Borrow,
    cmp::Ordering,
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

#[derive(Default)]
pub(super) struct Contents {
    objects: BTreeSet<ByKey>,
    packer: Packer,
    /// What the objects take, about.
    bytes: usize,
    /// Keys of objects by the uids of their owners.
    dependents: HashMap<Box<str>, BTreeSet<Key>>,
    indexes: HashMap<String, Index>,
    notes: HashMap<Key, Notes>,
}

/// What this process last wrote to an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Notes {
    /// The hash of what was applied, and that of the fields that the operator managed afterwards.
    pub(crate) applied: Option<(u64, u64)>,
    /// The hash of the status that was set, and the object's version afterwards.
    pub(crate) status: Option<(u64, u64)>,
}

/// An object that is found by the key in it.
struct ByKey(Arc<Object>);

impl Borrow<Key> for ByKey {
    fn borrow(&self) -> &Key {
        &self.0.key
    }
}

impl Ord for ByKey {
    fn cmp(&self, other: &ByKey) -> Ordering {
        self.0.key.cmp(&other.0.key)
    }
}

impl PartialOrd for ByKey {
    fn partial_cmp(&self, other: &ByKey) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ByKey {
    fn eq(&self, other: &ByKey) -> bool {
        self.0.key == other.0.key
    }
}

impl Eq for ByKey {}

impl Contents {
    pub(super) fn len(&self) -> usize {
        self.objects.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes + self.packer.bytes()
    }

    pub(super) fn get(&self, key: &Key) -> Option<&Arc<Object>> {
        self.objects.get(key).map(|ByKey(object)| object)
    }

    /// The objects of one namespace, or all, in order.
    pub(super) fn iter(&self, namespace: Option<&str>) -> impl Iterator<Item = &Arc<Object>> {
        let first = namespace.map_or(Key::cluster(""), |namespace| Key::namespaced(namespace, ""));
        let from = self.objects.range(first..).map(|ByKey(object)| object);
        from.take_while(move |object| namespace.is_none_or(|namespace| object.key.namespace() == Some(namespace)))
    }

    pub(super) fn dependents_of(&self, uid: &str) -> impl Iterator<Item = &Arc<Object>> {
        self.found(self.dependents.get(uid))
    }

    /// The objects that an index finds by a value; none if there is no such index.
    pub(super) fn by_index(&self, name: &str, value: &str) -> Option<impl Iterator<Item = &Arc<Object>>> {
        Some(self.found(self.indexes.get(name)?.keys(value)))
    }

    /// How many objects are missing in an index because they could not be indexed.
    pub(super) fn unindexed(&self) -> usize {
        self.indexes.values().map(Index::failed).sum()
    }

    fn found<'a>(&'a self, keys: Option<&'a BTreeSet<Key>>) -> impl Iterator<Item = &'a Arc<Object>> {
        keys.into_iter().flatten().filter_map(|key| self.get(key))
    }

    /// Indexes all objects from now on; says whether another index has that name.
    pub(super) fn index(&mut self, name: &str, by: &IndexedBy) -> bool {
        if let Some(known) = self.indexes.get(name) {
            return known.is(by);
        }
        let mut index = Index::new(by.clone());
        self.objects.iter().for_each(|ByKey(object)| index.put(object));
        self.indexes.insert(name.into(), index);
        true
    }

    pub(super) fn notes(&self, key: &Key) -> Notes {
        self.notes.get(key).copied().unwrap_or_default()
    }

    pub(super) fn note(&mut self, key: &Key, take: impl FnOnce(&mut Notes)) {
        if let Some(object) = self.get(key) {
            let key = object.key.clone();
            take(self.notes.entry(key).or_default());
        }
    }

    pub(super) fn put(&mut self, object: Object) -> Change {
        let new = Arc::new(self.packer.pack(object));
        let old = self.objects.replace(ByKey(new.clone())).map(|ByKey(old)| old);
        if let Some(old) = &old {
            self.forget(old);
        }
        self.bytes += new.bytes();
        for owner in &new.owners {
            self.dependents.entry(owner.uid.as_ref().into()).or_default().insert(new.key.clone());
        }
        self.indexes.values_mut().for_each(|index| index.put(&new));
        Change { old, new: Some(new), listed: false }
    }

    /// Removes the object of that name, if it has this uid.
    pub(super) fn remove(&mut self, key: &Key, uid: &str) -> Option<Change> {
        self.get(key).filter(|current| &*current.uid == uid)?;
        let ByKey(old) = self.objects.take(key)?;
        self.forget(&old);
        self.notes.remove(key);
        Some(Change { old: Some(old), new: None, listed: false })
    }

    /// Forgets where an object was found that is replaced or gone.
    fn forget(&mut self, object: &Object) {
        self.bytes -= object.bytes();
        self.indexes.values_mut().for_each(|index| index.remove(object));
        for owner in &object.owners {
            let Some(keys) = self.dependents.get_mut(&*owner.uid) else {
                continue;
            };
            keys.remove(&object.key);
            if keys.is_empty() {
                self.dependents.remove(&*owner.uid);
            }
        }
    }
}
