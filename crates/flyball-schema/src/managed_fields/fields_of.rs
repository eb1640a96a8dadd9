//! The fields that a configuration sets: what its applier owns.

use super::field_set::{FieldNode, FieldSet};
use super::path::PathElement;
use super::shape::{ListShape, MapShape, Shape, Type};
use serde_json::Value;

/// The paths of what a value sets.
// structured-merge-diff, typed/tofieldset.go
pub(super) fn fields_of<'v, 's: 'v>(ty: Type<'s>, value: &'v Value) -> FieldSet<'v> {
    walk(ty, value).0
}

/// What is set below a value, and whether the value is a leaf.
fn walk<'v, 's: 'v>(ty: Type<'s>, value: &'v Value) -> (FieldSet<'v>, bool) {
    match ty.shape(Some(value)) {
        Shape::Scalar(_) => (FieldSet::default(), true),
        Shape::List(list) if list.is_atomic() => (FieldSet::default(), true),
        Shape::Map(map) if map.atomic => (FieldSet::default(), true),
        Shape::List(list) => (items_of(list, value), false),
        Shape::Map(map) => (entries_of(map, value), false),
        Shape::Nothing => (FieldSet::default(), false),
    }
}

fn entries_of<'v, 's: 'v>(map: MapShape<'s>, value: &'v Value) -> FieldSet<'v> {
    let mut set = FieldSet::default();
    for (name, value) in value.as_object().into_iter().flatten() {
        let (below, leaf) = walk(map.field(name), value);
        let empty = value.is_null() || value.as_object().is_some_and(|fields| fields.is_empty());
        set.add(PathElement::Field(name), leaf || empty || !map.declares(name), below);
    }
    set
}

/// An item is owned with its fields; items that occur twice are owned as a whole.
fn items_of<'v, 's: 'v>(list: ListShape<'s>, value: &'v Value) -> FieldSet<'v> {
    let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
    let node = |item| {
        let element = list.element(item).ok()?;
        Some(FieldNode { element, member: true, below: walk(list.items, item).0 })
    };
    let mut nodes: Vec<_> = items.iter().filter_map(node).collect();
    nodes.sort_by(|one, other| one.element.cmp(&other.element));
    nodes.dedup_by(|again, first| {
        let same = again.element == first.element;
        if same {
            first.below = FieldSet::default();
        }
        same
    });
    FieldSet { nodes }
}
