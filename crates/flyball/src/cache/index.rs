//! Objects by whatever their author wants to find them by.

use crate::Key;
use crate::cache::object::Object;
use std::{
    collections::{BTreeSet, HashMap},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

/// The values that an object is found by.
pub(crate) type IndexedBy = Arc<dyn Fn(&Object) -> Vec<String> + Send + Sync>;

pub(super) struct Index {
    by: IndexedBy,
    keys: HashMap<Box<str>, BTreeSet<Key>>,
}

impl Index {
    pub(super) fn new(by: IndexedBy) -> Index {
        Index { by, keys: HashMap::new() }
    }

    /// Whether this is the index by that function.
    pub(super) fn is(&self, by: &IndexedBy) -> bool {
        Arc::ptr_eq(&self.by, by)
    }

    pub(super) fn keys(&self, value: &str) -> Option<&BTreeSet<Key>> {
        self.keys.get(value)
    }

    pub(super) fn put(&mut self, object: &Object) {
        for value in self.values(object) {
            self.keys.entry(value.into()).or_default().insert(object.key.clone());
        }
    }

    pub(super) fn remove(&mut self, object: &Object) {
        for value in self.values(object) {
            let Some(keys) = self.keys.get_mut(&*value) else {
                continue;
            };
            keys.remove(&object.key);
            if keys.is_empty() {
                self.keys.remove(&*value);
            }
        }
    }

    /// Authors' code, which must not end the watch: an object that it panics on is not found.
    fn values(&self, object: &Object) -> Vec<String> {
        let values = catch_unwind(AssertUnwindSafe(|| (self.by)(object)));
        let values = values.inspect_err(|_| tracing::error!(key = %object.key, "an index panicked"));
        values.unwrap_or_default()
    }
}
