//! What changed between two objects, as sets of paths.

use super::field_set::FieldSet;
use super::order;
use super::path::PathElement;
use super::shape::{ListShape, MapShape, Shape, Type};
use serde_json::{Map, Value};

/// What changed from one object to another.
#[derive(Clone, Debug, Default)]
pub(super) struct Comparison<'v> {
    /// What the other object no longer has.
    pub(super) removed: FieldSet<'v>,
    /// What both have, with different values.
    pub(super) modified: FieldSet<'v>,
    /// What only the other object has.
    pub(super) added: FieldSet<'v>,
}

impl<'v> Comparison<'v> {
    /// Forgets paths with everything below them.
    pub(super) fn without(mut self, ignored: &FieldSet<'_>) -> Comparison<'v> {
        self.removed.subtract_trees(ignored);
        self.modified.subtract_trees(ignored);
        self.added.subtract_trees(ignored);
        self
    }

    /// What the other object has changed or added.
    pub(super) fn changed(&self) -> FieldSet<'v> {
        let mut changed = self.modified.clone();
        changed.unite(self.added.clone());
        changed
    }
}

/// Compares two objects of one type.
// structured-merge-diff, typed/compare.go
pub(super) fn compare<'v, 's: 'v>(ty: Type<'s>, old: &'v Value, new: &'v Value) -> Comparison<'v> {
    let mut walk = Walk::default();
    walk.compare(ty, Some(old), Some(new));
    walk.comparison
}

#[derive(Default)]
struct Walk<'v> {
    path: Vec<PathElement<'v>>,
    comparison: Comparison<'v>,
}

type Side<'v> = Option<&'v Value>;

impl<'v> Walk<'v> {
    fn compare<'s: 'v>(&mut self, ty: Type<'s>, old: Side<'v>, new: Side<'v>) {
        let atom = ty.atom();
        let (before, after) = (atom.deduce(old), atom.deduce(new));
        let leaf = match (old, new) {
            (_, None) => self.compare_as(before.shape(), old, new),
            (None, _) => self.compare_as(after.shape(), old, new),
            _ => {
                if !before.same(&after) {
                    self.compare_as(before.shape(), old, new);
                }
                self.compare_as(after.shape(), old, new)
            }
        };
        if !leaf && old.is_none() {
            self.comparison.added.insert(&self.path);
        } else if !leaf && new.is_none() {
            self.comparison.removed.insert(&self.path);
        }
    }

    /// Compares two values as one shape; says whether they were compared as a whole.
    fn compare_as<'s: 'v>(&mut self, shape: Shape<'s>, old: Side<'v>, new: Side<'v>) -> bool {
        match shape {
            Shape::Map(map) => {
                let (before, after) = (old.and_then(Value::as_object), new.and_then(Value::as_object));
                if map.atomic || (is_empty_map(before) && is_empty_map(after)) {
                    return self.compare_whole(old, new);
                }
                self.compare_maps(map, before, after);
                false
            }
            Shape::List(list) => {
                let (before, after) = (items(old), items(new));
                if list.is_atomic() || (before.is_empty() && after.is_empty()) {
                    return self.compare_whole(old, new);
                }
                self.compare_lists(list, before, after);
                false
            }
            Shape::Scalar(_) => self.compare_whole(old, new),
            Shape::Nothing => false,
        }
    }

    fn compare_whole(&mut self, old: Side<'v>, new: Side<'v>) -> bool {
        match (old, new) {
            (None, _) => self.comparison.added.insert(&self.path),
            (_, None) => self.comparison.removed.insert(&self.path),
            (Some(old), Some(new)) if !order::equal(old, new) => self.comparison.modified.insert(&self.path),
            _ => {}
        }
        true
    }

    fn compare_maps<'s: 'v>(
        &mut self,
        map: MapShape<'s>,
        old: Option<&'v Map<String, Value>>,
        new: Option<&'v Map<String, Value>>,
    ) {
        for (name, before) in old.into_iter().flatten() {
            let after = new.and_then(|new| new.get(name));
            // Equal values need no type to be known equal.
            if !after.is_some_and(|after| order::equal(before, after)) {
                self.below(PathElement::Field(name), map.field(name), Some(before), after);
            }
        }
        for (name, after) in new.into_iter().flatten() {
            if old.is_none_or(|old| !old.contains_key(name)) {
                self.below(PathElement::Field(name), map.field(name), None, Some(after));
            }
        }
    }

    fn below<'s: 'v>(&mut self, element: PathElement<'v>, ty: Type<'s>, old: Side<'v>, new: Side<'v>) {
        self.path.push(element);
        self.compare(ty, old, new);
        self.path.pop();
    }

    fn compare_lists<'s: 'v>(&mut self, list: ListShape<'s>, old: &'v [Value], new: &'v [Value]) {
        let before = by_element(list, old);
        let after = by_element(list, new);
        for (element, old) in &before {
            let new = find(&after, element);
            self.compare_items(list, element, old, new);
        }
        for (element, new) in &after {
            if find(&before, element).is_empty() {
                self.compare_items(list, element, &[], new);
            }
        }
    }

    /// Items that occur more than once are compared as a whole.
    fn compare_items<'s: 'v>(
        &mut self,
        list: ListShape<'s>,
        element: &PathElement<'v>,
        old: &[&'v Value],
        new: &[&'v Value],
    ) {
        match (old, new) {
            ([] | [_], [] | [_]) => {
                self.below(element.clone(), list.items, old.first().copied(), new.first().copied());
            }
            ([_, _, ..], [_, _, ..]) => {
                let same = old.len() == new.len() && old.iter().zip(new).all(|(old, new)| order::equal(old, new));
                if !same {
                    let path = self.path_to(element);
                    self.comparison.modified.insert(&path);
                }
            }
            ([_, _, ..], _) => {
                if let Some(new) = new.first() {
                    self.below(element.clone(), list.items, None, Some(new));
                }
                let path = self.path_to(element);
                self.comparison.removed.insert(&path);
            }
            (_, _) => {
                if let Some(old) = old.first() {
                    self.below(element.clone(), list.items, Some(old), None);
                }
                let path = self.path_to(element);
                self.comparison.added.insert(&path);
            }
        }
    }

    fn path_to(&self, element: &PathElement<'v>) -> Vec<PathElement<'v>> {
        self.path.iter().cloned().chain([element.clone()]).collect()
    }
}

fn is_empty_map(map: Option<&Map<String, Value>>) -> bool {
    map.is_none_or(|map| map.is_empty())
}

fn items(value: Side<'_>) -> &[Value] {
    value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

type Grouped<'v> = Vec<(PathElement<'v>, Vec<&'v Value>)>;

fn by_element<'v, 's: 'v>(list: ListShape<'s>, items: &'v [Value]) -> Grouped<'v> {
    let group = |item| Some((list.element(item).ok()?, vec![item]));
    let mut grouped: Grouped<'v> = items.iter().filter_map(group).collect();
    grouped.sort_by(|(one, _), (other, _)| one.cmp(other));
    grouped.dedup_by(|again, first| {
        let same = again.0 == first.0;
        if same {
            first.1.append(&mut again.1);
        }
        same
    });
    grouped
}

fn find<'g, 'v>(grouped: &'g Grouped<'v>, element: &PathElement<'_>) -> &'g [&'v Value] {
    match grouped.binary_search_by(|(known, _)| known.cmp(element)) {
        Ok(index) => &grouped[index].1,
        Err(_) => &[],
    }
}
