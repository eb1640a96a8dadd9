//! `x-kubernetes-list-type`: the items of a set, and the keys of a map, occur once.
// apiextensions-apiserver/pkg/apiserver/schema/listtype/validation.go

use crate::go_text;
use crate::place::Place;
use crate::schema::{Form, ListKind, Node};
use crate::violation::Violation;
use serde_json::{Map, Value, json};
use std::collections::HashMap;

/// Every duplicate in a value, at its second appearance.
pub(super) fn check(node: Node<'_>, value: &Value, place: &Place<'_>) -> Vec<Violation> {
    match value {
        Value::Object(fields) => {
            let declares = !matches!(node.form, Form::Map(_));
            let inner = fields.iter().filter_map(|(name, field)| Some((name, node.field(name)?, field)));
            inner
                .flat_map(|(name, inner, field)| {
                    let place = if declares { place.field(name) } else { place.key(name) };
                    check(inner, field, &place)
                })
                .collect()
        }
        Value::Array(items) => {
            let mut found = duplicates(node, items, place);
            if let Some(inner) = node.items() {
                let inside = items.iter().enumerate();
                found.extend(inside.flat_map(|(index, item)| check(inner, item, &place.index(index))));
            }
            found
        }
        _ => Vec::new(),
    }
}

fn duplicates(node: Node<'_>, items: &[Value], place: &Place<'_>) -> Vec<Violation> {
    let Form::List(list) = &node.form else {
        return Vec::new();
    };
    let duplicate = |(index, value): (usize, Value)| Violation::duplicate(place.index(index).subscripted(), value);
    match &list.kind {
        ListKind::Atomic => Vec::new(),
        ListKind::Set => second_appearances(items.iter().cloned()).map(duplicate).collect(),
        ListKind::Map(keys) => {
            let stray = items.iter().position(|item| !item.is_object() && !item.is_null());
            if let Some(index) = stray {
                let detail = "must be an object for an array of list-type map";
                let path = place.index(index).subscripted();
                return vec![Violation::invalid(path, items[index].clone(), detail)];
            }
            second_appearances(items.iter().map(|item| key_of(item, keys))).map(duplicate).collect()
        }
    }
}

/// The key fields that an item has.
fn key_of(item: &Value, keys: &[Box<str>]) -> Value {
    let present = keys.iter().filter_map(|key| Some((key.to_string(), item.get(&**key)?.clone())));
    let key: Map<_, _> = present.collect();
    json!(key)
}

fn second_appearances(values: impl Iterator<Item = Value>) -> impl Iterator<Item = (usize, Value)> {
    let mut times: HashMap<String, u32> = HashMap::new();
    values.enumerate().filter(move |(_, value)| {
        let times = times.entry(go_text::json(value)).or_default();
        *times += 1;
        *times == 2
    })
}
