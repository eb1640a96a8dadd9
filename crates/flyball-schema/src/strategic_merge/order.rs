//! The order of a merged list: what the patch names in the patch's order, the rest between as it stood.

use super::list::no_merge_key;
use super::{Result, bad_type};
use serde_json::Value;
use std::collections::HashMap;

/// What tells items apart.
#[derive(Clone, Copy)]
pub(super) enum Identity<'a> {
    /// The value of this field.
    Key(&'a str),
    /// The item itself.
    Value,
}

impl Identity<'_> {
    fn of(self, item: &Value) -> Option<&Value> {
        match self {
            Identity::Key(key) => item.get(key),
            Identity::Value => Some(item),
        }
    }

    fn check(self, items: &[Value]) -> Result<()> {
        let Identity::Key(key) = self else { return Ok(()) };
        for item in items {
            match item {
                Value::Object(object) if object.contains_key(key) => {}
                Value::Object(object) => return Err(no_merge_key(object, key)),
                other => return Err(bad_type("map[string]interface {}", other)),
            }
        }
        Ok(())
    }
}

/// Where each item of a list first stands.
pub(super) struct Places<'a> {
    by: Identity<'a>,
    first: HashMap<String, usize>,
}

impl<'a> Places<'a> {
    pub(super) fn new(items: &[Value], by: Identity<'a>) -> Places<'a> {
        let mut places = Places { by, first: HashMap::with_capacity(items.len()) };
        items.iter().enumerate().for_each(|(place, item)| places.add(item, place));
        places
    }

    pub(super) fn add(&mut self, item: &Value, place: usize) {
        if let Some(identity) = self.by.of(item) {
            self.first.entry(identity.to_string()).or_insert(place);
        }
    }

    pub(super) fn of(&self, item: &Value) -> Option<usize> {
        self.first.get(&self.by.of(item)?.to_string()).copied()
    }
}

/// Orders the items that `wanted` names as it does, and puts the others between them as they stood in `live`.
// normalizeElementOrder, mergeSortedSlice
pub(super) fn enforce(items: Vec<Value>, wanted: &[Value], live: &[Value], by: Identity<'_>) -> Result<Vec<Value>> {
    by.check(&items)?;
    by.check(wanted)?;
    by.check(live)?;
    let (wanted, live) = (Places::new(wanted, by), Places::new(live, by));
    let (mut named, mut rest): (Vec<Value>, Vec<Value>) = items.into_iter().partition(|item| wanted.of(item).is_some());
    named.sort_by_cached_key(|item| wanted.of(item));
    rest.sort_by_cached_key(|item| live.of(item));
    let mut ordered = Vec::with_capacity(named.len() + rest.len());
    let mut rest = rest.into_iter().peekable();
    for item in named {
        let stood_before = |other: &Value| match (live.of(other), live.of(&item)) {
            (Some(other), Some(own)) => other < own,
            _ => false,
        };
        while let Some(other) = rest.next_if(|other| stood_before(other)) {
            ordered.push(other);
        }
        ordered.push(item);
    }
    ordered.extend(rest);
    Ok(ordered)
}
