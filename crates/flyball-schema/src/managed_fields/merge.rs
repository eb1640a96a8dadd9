//! Merging an applied configuration into an object: it wins where it says something, and takes nothing away.

use super::path::PathElement;
use super::shape::{ListShape, MapShape, Shape, Type};
use serde_json::{Map, Value};

/// Merges `config` into `live`.
// structured-merge-diff, typed/merge.go
pub(super) fn merge(ty: Type<'_>, live: Option<&Value>, config: Option<&Value>) -> Option<Value> {
    let atom = ty.atom();
    let shape = match config {
        None => atom.deduce(live).shape(),
        Some(_) => atom.deduce(config).shape(),
    };
    match shape {
        Shape::Map(map) => {
            let (before, after) = (live.and_then(Value::as_object), config.and_then(Value::as_object));
            if map.atomic || (before.is_none_or(Map::is_empty) && after.is_none_or(Map::is_empty)) {
                return config.or(live).cloned();
            }
            Some(Value::Object(merge_maps(map, before, after)))
        }
        Shape::List(list) => {
            let (before, after) = (items(live), items(config));
            if list.is_atomic() || (before.is_empty() && after.is_empty()) {
                return config.or(live).cloned();
            }
            Some(Value::Array(merge_lists(list, before, after)))
        }
        Shape::Scalar(_) => config.or(live).cloned(),
        Shape::Nothing => None,
    }
}

fn items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn merge_maps(
    map: MapShape<'_>,
    live: Option<&Map<String, Value>>,
    config: Option<&Map<String, Value>>,
) -> Map<String, Value> {
    let mut merged = Map::new();
    for (name, before) in live.into_iter().flatten() {
        let after = config.and_then(|config| config.get(name));
        if let Some(value) = merge(map.field(name), Some(before), after) {
            merged.insert(name.clone(), value);
        }
    }
    for (name, after) in config.into_iter().flatten() {
        if !merged.contains_key(name)
            && let Some(value) = merge(map.field(name), None, Some(after))
        {
            merged.insert(name.clone(), value);
        }
    }
    merged
}

/// One side of a list: its items, the element of each, and their places sorted by element.
struct Side<'v> {
    items: &'v [Value],
    elements: Vec<PathElement<'v>>,
    sorted: Vec<usize>,
}

impl<'v> Side<'v> {
    fn new<'s: 'v>(list: ListShape<'s>, items: &'v [Value]) -> Side<'v> {
        // An object that fits its type has an element for each item.
        let elements: Vec<_> = items.iter().filter_map(|item| list.element(item).ok()).collect();
        let mut sorted: Vec<usize> = (0..elements.len()).collect();
        sorted.sort_by(|a, b| elements[*a].cmp(&elements[*b]));
        Side { items, elements, sorted }
    }

    /// The places of an element; more than one if it is repeated.
    fn places(&self, element: &PathElement<'_>) -> &[usize] {
        let start = self.sorted.partition_point(|place| self.elements[*place] < *element);
        let rest = &self.sorted[start..];
        let length = rest.iter().take_while(|place| self.elements[**place] == *element).count();
        &rest[..length]
    }

    fn has(&self, element: &PathElement<'_>) -> bool {
        !self.places(element).is_empty()
    }

    /// The only item under an element; repeated items are not merged.
    fn item(&self, element: &PathElement<'_>) -> Option<&'v Value> {
        match self.places(element) {
            [] => None,
            [place] => Some(&self.items[*place]),
            _ => Some(&Value::Null),
        }
    }
}

/// Shared items follow the order of the configuration; others stay where they were among them.
// structured-merge-diff, typed/merge.go, visitListItems
fn merge_lists(list: ListShape<'_>, live: &[Value], config: &[Value]) -> Vec<Value> {
    let (live, config) = (Side::new(list, live), Side::new(list, config));
    let mut shared = config.elements.iter().filter(|element| live.has(element));
    let mut next_shared = shared.next();
    let mut merged = Vec::with_capacity(live.items.len().max(config.items.len()));
    let mut done = 0; // Items of the configuration are taken in their order: all before this one are merged.
    let mut l = 0;
    let item = |element| merge(list.items, live.item(element), config.item(element));
    while l < live.elements.len() || done < config.elements.len() {
        if let (Some(ours), Some(theirs)) = (live.elements.get(l), config.elements.get(done)) {
            if ours == theirs {
                merged.extend(item(theirs));
                (l, done) = (l + 1, done + 1);
                next_shared = shared.next();
                continue;
            }
            if config.has(ours) && next_shared.is_some_and(|next| next != ours) {
                // A shared item, but not the one whose turn it is.
                l += 1;
                continue;
            }
        }
        if let Some(ours) = live.elements.get(l) {
            let places = config.places(ours);
            if places.is_empty() {
                merged.extend(merge(list.items, live.items.get(l), None));
                l += 1;
                continue;
            }
            if places.iter().any(|place| *place < done) {
                l += 1;
            }
        }
        if let Some(theirs) = config.elements.get(done) {
            merged.extend(item(theirs));
            done += 1;
            if next_shared == Some(theirs) {
                next_shared = shared.next();
            }
        }
    }
    merged
}
