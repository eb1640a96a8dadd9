//! Objects by whatever their author wants to find them by.

use crate::Key;
use crate::cache::ReadError;
use crate::cache::object::Object;
use std::{
    collections::{BTreeSet, HashMap, HashSet},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

/// The values that an object is found by, unless it does not decode.
pub(crate) type IndexedBy = Arc<dyn Fn(&Object) -> Result<Vec<String>, ReadError> + Send + Sync>;

pub(super) struct Index {
    by: IndexedBy,
    keys: HashMap<Box<str>, BTreeSet<Key>>,
    /// Objects that did not decode, or that the author's function panicked on.
    failed: HashSet<Key>,
}

impl Index {
    pub(super) fn new(by: IndexedBy) -> Index {
        Index { by, keys: HashMap::new(), failed: HashSet::new() }
    }

    /// Whether this is the index by that function.
    pub(super) fn is(&self, by: &IndexedBy) -> bool {
        Arc::ptr_eq(&self.by, by)
    }

    pub(super) fn keys(&self, value: &str) -> Option<&BTreeSet<Key>> {
        self.keys.get(value)
    }

    /// How many objects are missing in it because they could not be indexed.
    pub(super) fn failed(&self) -> usize {
        self.failed.len()
    }

    pub(super) fn put(&mut self, object: &Object) {
        let values = self.values(object).unwrap_or_else(|error| {
            tracing::error!(key = %object.key, error, "the object is not in the index");
            self.failed.insert(object.key.clone());
            Vec::new()
        });
        for value in values {
            self.keys.entry(value.into()).or_default().insert(object.key.clone());
        }
    }

    pub(super) fn remove(&mut self, object: &Object) {
        if self.failed.remove(&object.key) {
            return;
        }
        for value in self.values(object).unwrap_or_default() {
            let Some(keys) = self.keys.get_mut(&*value) else {
                continue;
            };
            keys.remove(&object.key);
            if keys.is_empty() {
                self.keys.remove(&*value);
            }
        }
    }

    /// Authors' code, which must not end the watch.
    fn values(&self, object: &Object) -> Result<Vec<String>, String> {
        let values = catch_unwind(AssertUnwindSafe(|| (self.by)(object)));
        let values = values.map_err(|_| "the author's function panicked".to_owned())?;
        values.map_err(|error| crate::Error::from(error).to_string())
    }
}
