//! Merging an applied configuration into an object: it wins where it says something, and takes nothing away.

use super::order;
use super::path::PathElement;
use super::shape::{ListShape, MapShape, Shape, Type};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// Merges `config` into `live`; the very `live` if it has all of `config` already.
// structured-merge-diff, typed/merge.go
pub(super) fn merge<'v, 's: 'v>(ty: Type<'s>, live: &'v Value, config: &'v Value) -> Cow<'v, Value> {
    match (ty.shape(Some(config)), live, config) {
        (Shape::Map(map), Value::Object(before), _) if !map.atomic && !before.is_empty() => match config {
            Value::Object(after) => merge_maps(map, live, before, after),
            Value::Null => Cow::Borrowed(live),
            _ => replace(live, config),
        },
        (Shape::List(list), Value::Array(before), _) if !list.is_atomic() && !before.is_empty() => match config {
            Value::Array(after) => merge_lists(list, live, before, after),
            Value::Null => Cow::Borrowed(live),
            _ => replace(live, config),
        },
        _ => replace(live, config),
    }
}

fn replace<'v>(live: &'v Value, config: &'v Value) -> Cow<'v, Value> {
    Cow::Borrowed(if order::equal(live, config) { live } else { config })
}

/// Whether a merged value is the very value that was there.
pub(super) fn is_same(merged: &Value, live: &Value) -> bool {
    std::ptr::eq(merged, live)
}

fn merge_maps<'v, 's: 'v>(
    map: MapShape<'s>,
    live: &'v Value,
    before: &'v Map<String, Value>,
    after: &'v Map<String, Value>,
) -> Cow<'v, Value> {
    let mut same = true;
    let mut merged = Vec::with_capacity(before.len());
    for (name, live) in before {
        let value = match after.get(name) {
            Some(config) => merge(map.field(name), live, config),
            None => Cow::Borrowed(live),
        };
        same &= is_same(&value, live);
        merged.push((name, value));
    }
    for (name, config) in after.iter().filter(|(name, _)| !before.contains_key(*name)) {
        same = false;
        merged.push((name, Cow::Borrowed(config)));
    }
    if same {
        return Cow::Borrowed(live);
    }
    Cow::Owned(merged.into_iter().map(|(name, value)| (name.clone(), value.into_owned())).collect())
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
            [place] => Some(&self.items[*place]),
            _ => None,
        }
    }
}

/// Shared items follow the order of the configuration; others stay where they were among them.
// structured-merge-diff, typed/merge.go, visitListItems
fn merge_lists<'v, 's: 'v>(
    list: ListShape<'s>,
    live: &'v Value,
    before: &'v [Value],
    after: &'v [Value],
) -> Cow<'v, Value> {
    let (ours, theirs) = (Side::new(list, before), Side::new(list, after));
    let mut shared = theirs.elements.iter().filter(|element| ours.has(element));
    let mut next_shared = shared.next();
    let mut merged: Vec<Cow<'v, Value>> = Vec::with_capacity(before.len().max(after.len()));
    let item = |place: usize| match ours.item(&theirs.elements[place]) {
        Some(live) => merge(list.items, live, &after[place]),
        None => Cow::Borrowed(&after[place]),
    };
    let mut l = 0;
    let mut r = 0; // Items of the configuration are taken in their order: all before this one are merged.
    while l < ours.elements.len() || r < theirs.elements.len() {
        if let (Some(our), Some(their)) = (ours.elements.get(l), theirs.elements.get(r)) {
            if our == their {
                merged.push(item(r));
                (l, r) = (l + 1, r + 1);
                next_shared = shared.next();
                continue;
            }
            if theirs.has(our) && next_shared.is_some_and(|next| next != our) {
                // A shared item, but not the one whose turn it is.
                l += 1;
                continue;
            }
        }
        if let Some(our) = ours.elements.get(l) {
            let places = theirs.places(our);
            if places.is_empty() {
                merged.push(Cow::Borrowed(&before[l]));
                l += 1;
                continue;
            }
            if places.iter().any(|place| *place < r) {
                l += 1;
            }
        }
        if let Some(their) = theirs.elements.get(r) {
            merged.push(item(r));
            r += 1;
            if next_shared == Some(their) {
                next_shared = shared.next();
            }
        }
    }
    let same = merged.len() == before.len() && merged.iter().zip(before).all(|(merged, live)| is_same(merged, live));
    if same {
        Cow::Borrowed(live)
    } else {
        Cow::Owned(merged.into_iter().map(Cow::into_owned).collect())
    }
}
