//! Taking paths out of an object.

use super::field_set::FieldSet;
use super::path::PathElement;
use super::shape::{ListShape, MapShape, Shape, Type};
use serde_json::{Map, Value};

/// The object without the paths of a set and what is below them. What was emptied is `null`.
// structured-merge-diff, typed/remove.go, removeItemsWithSchema
pub(super) fn remove(ty: Type<'_>, value: &Value, gone: &FieldSet<'_>) -> Value {
    match (ty.shape(Some(value)), value) {
        (Shape::Scalar(_), _) => value.clone(),
        (Shape::List(list), Value::Array(items)) if !list.is_atomic() => remove_items(list, items, gone),
        (Shape::Map(map), Value::Object(fields)) if !map.atomic => remove_fields(map, fields, gone),
        _ => Value::Null,
    }
}

fn remove_items(list: ListShape<'_>, items: &[Value], gone: &FieldSet<'_>) -> Value {
    let mut left = Vec::with_capacity(items.len());
    for item in items {
        let node = list.element(item).ok().and_then(|element| gone.get(&element));
        match node {
            None => left.push(item.clone()),
            Some(node) if node.member => {}
            Some(node) => left.push(remove(list.items, item, &node.below)),
        }
    }
    if left.is_empty() {
        Value::Null
    } else {
        Value::Array(left)
    }
}

fn remove_fields(map: MapShape<'_>, fields: &Map<String, Value>, gone: &FieldSet<'_>) -> Value {
    let mut left = Map::new();
    for (name, value) in fields {
        match gone.get(&PathElement::Field(name)) {
            None => drop(left.insert(name.clone(), value.clone())),
            Some(node) if node.member => {}
            Some(node) => drop(left.insert(name.clone(), remove(map.field(name), value, &node.below))),
        }
    }
    if left.is_empty() {
        Value::Null
    } else {
        Value::Object(left)
    }
}
