//! The value that was there before, followed as the new one is walked.
// apiserver/pkg/cel/common/equality.go, CorrelatedObject

use crate::schema::{Form, ListKind, Node};
use serde_json::Value;

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

    /// The old item with the keys of a new one; only lists of the type `map` have such.
    pub(super) fn item(self, new: &Value) -> Option<Old<'a>> {
        let Form::List(list) = &self.node.form else { return None };
        let ListKind::Map(keys) = &list.kind else { return None };
        let node = self.node.items()?;
        let key_of = |item: &Value| -> Vec<Option<Value>> {
            keys.iter()
                .map(|key| item.get(&**key).cloned().or_else(|| default_of(node, key)))
                .collect()
        };
        let wanted = key_of(new);
        let value = self.value.as_array()?.iter().find(|item| key_of(item) == wanted)?;
        Some(Old { node, value })
    }
}

fn default_of(node: Node<'_>, key: &str) -> Option<Value> {
    node.field(key)?.default.clone()
}
