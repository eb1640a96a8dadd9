//! Drops what a custom resource's schema does not know, and says what was dropped.
// apiextensions-apiserver/pkg/apiserver/schema/pruning, and defaulting/prunenulls.go

use crate::place::Place;
use crate::schema::{Form, Node};
use serde_json::Value;

/// Drops unknown fields of an object, and returns their paths, sorted; `apiVersion`, `kind` and `metadata` stay.
pub fn prune(node: Node<'_>, value: &mut Value) -> Vec<String> {
    let mut pruning = Pruning { dropped: Vec::new() };
    pruning.value(Some(node), value, &Place::root(), Inside { resource: true, kept: false });
    let mut dropped = pruning.dropped;
    dropped.sort_unstable();
    dropped
}

/// Drops unknown fields of any value, which is no resource unless its schema says so.
pub(crate) fn prune_value(node: Node<'_>, value: &mut Value) -> Vec<String> {
    let mut pruning = Pruning { dropped: Vec::new() };
    pruning.value(Some(node), value, &Place::root(), ANYWHERE);
    pruning.dropped
}

/// Drops nulls that are neither allowed nor replaced by a default.
pub fn prune_nulls(node: Node<'_>, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, field| {
                let Some(node) = node.field(name) else { return true };
                !field.is_null() || node.nullable || node.default.is_some()
            });
            for (name, field) in fields.iter_mut() {
                if let Some(node) = node.field(name) {
                    prune_nulls(node, field);
                }
            }
        }
        Value::Array(items) => {
            if let Some(node) = node.items() {
                items.iter_mut().for_each(|item| prune_nulls(node, item));
            }
        }
        _ => {}
    }
}

/// Whether a field of a resource, at the root or embedded, is not the schema's business.
pub(crate) fn is_meta(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind" | "metadata")
}

struct Pruning {
    dropped: Vec<String>,
}

/// What holds for a value because of where it is.
#[derive(Clone, Copy)]
struct Inside {
    /// It is a resource: its `apiVersion`, `kind` and `metadata` are not looked at.
    resource: bool,
    /// It is an item of a list that keeps what it does not know.
    kept: bool,
}

const ANYWHERE: Inside = Inside { resource: false, kept: false };

impl Pruning {
    fn value(&mut self, node: Option<Node<'_>>, value: &mut Value, place: &Place<'_>, inside: Inside) {
        let keeps = inside.kept || node.is_some_and(|node| node.preserve_unknown);
        match value {
            Value::Object(fields) => {
                let resource = inside.resource || node.is_some_and(|node| node.embedded_resource);
                fields.retain(|name, field| {
                    (resource && is_meta(name)) || self.field(node, name, field, place) || {
                        if !keeps {
                            self.dropped.push(place.key(name).dotted());
                        }
                        keeps
                    }
                });
            }
            Value::Array(items) => {
                let inner = node.and_then(Node::items);
                if keeps && inner.is_none() {
                    return;
                }
                for (index, item) in items.iter_mut().enumerate() {
                    self.value(inner, item, &place.index(index), Inside { resource: false, kept: keeps });
                }
            }
            _ => {}
        }
    }

    /// Prunes inside a field that the schema knows; false if it does not.
    fn field(&mut self, node: Option<Node<'_>>, name: &str, field: &mut Value, place: &Place<'_>) -> bool {
        let Some((inner, place)) = step(node, name, place) else {
            return false;
        };
        self.value(inner, field, &place, ANYWHERE);
        true
    }
}

/// The schema of a field and its place; the schema of a value that may be anything is none at all.
fn step<'a, 'p>(node: Option<Node<'a>>, name: &'p str, place: &'p Place<'p>) -> Option<(Option<Node<'a>>, Place<'p>)> {
    let node = node?;
    let Some(inner) = node.field(name) else {
        return node.open.then(|| (None, place.key(name)));
    };
    let place = if matches!(node.form, Form::Map(_)) {
        place.key(name)
    } else {
        place.field(name)
    };
    let anything = matches!(inner.form, Form::Any) && !inner.preserve_unknown;
    Some(((!anything).then_some(inner), place))
}
