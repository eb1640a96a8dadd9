//! What a manager applied, read back from an object.

use super::entry::{self, Operation};
use super::field_set::FieldSet;
use super::path::PathElement;
use super::shape::{ListShape, MapShape, Shape, Type};
use serde_json::{Map, Value};

/// The fields that a manager owns by apply, with their values; none if it applied nothing.
// apimachinery, util/managedfields/extract.go, ExtractInto
pub(super) fn extract(ty: Type<'_>, object: &Value, manager: &str, subresource: &str) -> Option<Value> {
    let entries = entry::decode(object).ok()?;
    let entry = entries.into_iter().find(|entry| {
        entry.manager == manager && entry.operation == Operation::Apply && entry.subresource == subresource
    })?;
    let mut applied = keep(ty, object, &entry.fields.leaves());
    for name in ["apiVersion", "kind"] {
        if let (Some(fields), Some(value)) = (applied.as_object_mut(), object.get(name)) {
            fields.insert(name.into(), value.clone());
        }
    }
    Some(applied)
}

/// The value with nothing but the paths of a set.
// structured-merge-diff, typed/remove.go, with shouldExtract
fn keep(ty: Type<'_>, value: &Value, kept: &FieldSet<'_>) -> Value {
    match (ty.shape(Some(value)), value) {
        (Shape::List(list), Value::Array(items)) if !list.is_atomic() && !items.is_empty() => {
            keep_items(list, items, kept)
        }
        (Shape::Map(map), Value::Object(fields)) if !map.atomic && !fields.is_empty() => keep_fields(map, fields, kept),
        (Shape::Nothing, _) => Value::Null,
        _ => value.clone(),
    }
}

fn keep_items(list: ListShape<'_>, items: &[Value], kept: &FieldSet<'_>) -> Value {
    let mut left = Vec::new();
    for item in items {
        let Some(node) = list.element(item).ok().and_then(|element| kept.get(&element)) else {
            continue;
        };
        left.push(if node.below.is_empty() {
            item.clone()
        } else {
            keep(list.items, item, &node.below)
        });
    }
    if left.is_empty() {
        Value::Null
    } else {
        Value::Array(left)
    }
}

fn keep_fields(map: MapShape<'_>, fields: &Map<String, Value>, kept: &FieldSet<'_>) -> Value {
    let mut left = Map::new();
    for (name, value) in fields {
        let Some(node) = kept.get(&PathElement::Field(name)) else {
            continue;
        };
        let value = if node.member {
            value.clone()
        } else {
            keep(map.field(name), value, &node.below)
        };
        left.insert(name.clone(), value);
    }
    if left.is_empty() {
        Value::Null
    } else {
        Value::Object(left)
    }
}
