//! The value that was there before, followed as the new one is walked.
// apiserver/pkg/cel/common/equality.go, CorrelatedObject; is_still is its CachedDeepEqual

use crate::schema::{Form, ListKind, Node};
use serde_json::Value;
use std::collections::HashMap;

/// What a value was before, with the schema that says how the items of lists are told apart.
#[derive(Clone, Copy)]
pub(super) struct Old<'a> {
    pub(super) node: Node<'a>,
    pub(super) value: &'a Value,
}

impl<'a> Old<'a> {
    pub(super) fn field(self, name: &str) -> Option<Old<'a>> {
        Some(Old { node: self.node.field(name)?, value: self.value.get(name)? })
    }

    /// The old items by their keys; only lists of the type `map` have such.
    pub(super) fn items(self) -> Option<OldItems<'a>> {
        let Form::List(list) = &self.node.schema().form else {
            return None;
        };
        let ListKind::Map(keys) = &list.kind else { return None };
        let mut items = OldItems { node: self.node.items()?, keys, by_key: HashMap::new() };
        for value in self.value.as_array()? {
            if let Some(key) = items.key_of(value) {
                items.by_key.entry(key).or_insert(value);
            }
        }
        Some(items)
    }

    /// Whether a value is still what it was: items with keys in any order, others as they are. What nobody declared
    /// or has no keys cannot be followed, and so is not.
    pub(super) fn is_still(self, new: &Value) -> bool {
        match (self.value, new) {
            (Value::Array(old), Value::Array(new)) if old.len() == new.len() => match self.items() {
                Some(items) => new.iter().all(|item| items.item(item).is_some_and(|old| old.is_still(item))),
                None => old == new,
            },
            (Value::Object(old), Value::Object(new)) if old.len() == new.len() => {
                let mut fields = new.iter();
                fields.all(|(name, field)| self.field(name).is_some_and(|old| old.is_still(field)))
            }
            (old, new) => old == new,
        }
    }
}

/// The items of a list of the type `map`, by their keys.
pub(super) struct OldItems<'a> {
    node: Node<'a>,
    keys: &'a [Box<str>],
    by_key: HashMap<String, &'a Value>,
}

impl<'a> OldItems<'a> {
    /// The old item with the keys of a new one.
    pub(super) fn item(&self, new: &Value) -> Option<Old<'a>> {
        let value = *self.by_key.get(&self.key_of(new)?)?;
        Some(Old { node: self.node, value })
    }

    /// None where a key is missing.
    fn key_of(&self, item: &Value) -> Option<String> {
        let key = |name: &str| item.get(name).cloned().or_else(|| default_of(self.node, name));
        let keys: Vec<Value> = self.keys.iter().map(|name| key(name)).collect::<Option<_>>()?;
        Some(Value::from(keys).to_string())
    }
}

fn default_of(node: Node<'_>, key: &str) -> Option<Value> {
    node.field(key)?.default.clone()
}
