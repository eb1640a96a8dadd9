//! Lists in a strategic merge: merged by key or by value, thinned out, replaced, and put into order.

use super::order::{self, Identity, Places};
use super::{DELETE, DIRECTIVE, MergeError, ORDER, Object, Result, Strategy, Type};
use super::{bad_type, directive_key, kind, merge as merge_objects, unknown_directive, without_directives};
use crate::go_text;
use serde_json::Value;
use std::collections::HashSet;

/// What a patch has for a list.
pub(super) enum Change {
    /// Items to merge, or to put in the place of all.
    Merge(Vec<Value>),
    /// Items to take out.
    Delete(Vec<Value>),
}

// mergeSliceHandler
pub(super) fn merge(original: Vec<Value>, change: Change, of: Type<'_>, strategy: Strategy<'_>) -> Result<Vec<Value>> {
    let (patch, deletes) = match change {
        Change::Merge(patch) if !strategy.merges() => return Ok(patch),
        Change::Merge(patch) => (patch, false),
        Change::Delete(patch) => (patch, true),
    };
    if original.is_empty() && patch.is_empty() {
        return Ok(original);
    }
    if !is_of_objects(&original, &patch)? {
        return Ok(merge_values(original, &patch, deletes));
    }
    let key = strategy.merge_key();
    let key =
        key.ok_or_else(|| MergeError::Unfit(format!("cannot merge lists without merge key for {}", of.kind())))?;
    let (original, patch) = direct(original, patch, key)?;
    let merged = merge_items(original.clone(), &patch, key, of)?;
    order::enforce(merged, &patch, &original, Identity::Key(key))
}

// mergeSlice, for scalars
fn merge_values(mut original: Vec<Value>, patch: &[Value], deletes: bool) -> Vec<Value> {
    if deletes {
        let gone = Places::new(patch, Identity::Value);
        original.retain(|item| gone.of(item).is_none());
        return original;
    }
    let mut both = original.clone();
    both.extend_from_slice(patch);
    order::enforce(without_repeats(both), patch, &original, Identity::Value).expect("values need no key")
}

/// Each value once. In which order does not matter, they are put into one afterwards.
// deduplicateScalars
fn without_repeats(mut items: Vec<Value>) -> Vec<Value> {
    let mut known = HashSet::with_capacity(items.len());
    items.retain(|item| known.insert(item.to_string()));
    items
}

/// Does what items with a directive say, and leaves the others.
// mergeSliceWithSpecialElements
fn direct(mut original: Vec<Value>, patch: Vec<Value>, key: &str) -> Result<(Vec<Value>, Vec<Value>)> {
    let mut plain = Vec::new();
    let mut gone = Vec::new();
    let mut replaces = false;
    for item in patch {
        let Value::Object(object) = &item else { continue };
        match object.get(DIRECTIVE).map(Value::as_str) {
            None => plain.push(item),
            Some(Some("delete")) => {
                object.get(key).ok_or_else(|| no_merge_key(object, key))?;
                gone.push(item);
            }
            Some(Some("replace")) => replaces = true,
            Some(Some("merge")) => {
                return Err(MergeError::Unfit("merging lists cannot yet be specified in the patch".to_owned()));
            }
            Some(_) => return Err(unknown_directive(object)),
        }
    }
    if !gone.is_empty() {
        let gone = Places::new(&gone, Identity::Key(key));
        original.retain(|item| gone.of(item).is_none());
    }
    match replaces {
        true => Ok((plain, Vec::new())),
        false => Ok((original, plain)),
    }
}

// mergeSliceWithoutSpecialElements
fn merge_items(mut items: Vec<Value>, patch: &[Value], key: &str, of: Type<'_>) -> Result<Vec<Value>> {
    let mut places = Places::new(&items, Identity::Key(key));
    for item in patch {
        let Value::Object(object) = item else { continue };
        object.get(key).ok_or_else(|| no_merge_key(object, key))?;
        match places.of(item) {
            Some(place) => {
                let Value::Object(original) = items[place].take() else {
                    continue;
                };
                items[place] = Value::Object(merge_objects(original, object.clone(), of)?);
            }
            None => {
                places.add(item, items.len());
                items.push(item.clone());
            }
        }
    }
    Ok(items)
}

/// Puts lists into the order that `$setElementOrder` asks for, merged with what the patch has for them.
// mergePatchIntoOriginal
pub(super) fn order_all(original: &mut Object, patch: &mut Object, of: Type<'_>) -> Result<()> {
    let directives: Vec<String> = patch.keys().filter(|key| key.starts_with(ORDER)).cloned().collect();
    for directive in directives {
        let order = match patch.remove(&directive) {
            Some(Value::Array(order)) => order,
            other => return Err(bad_type("[]interface {}", &other.unwrap_or_default())),
        };
        let field = directive_key(&directive, ORDER, "invalid patch format of setElementOrder list")?;
        let known = list_of(original, field)?;
        let change = list_of(patch, field)?;
        let (of, strategy) = of.items(field)?;
        check_order(change.as_deref().unwrap_or_default(), &order, strategy)?;
        let merged = match (known.clone(), change.clone()) {
            (None, None) => continue,
            (Some(known), None) => known,
            (None, Some(change)) => change.into_iter().filter_map(without_directives).collect(),
            (Some(known), Some(change)) => merge(known, Change::Merge(change), of, strategy)?,
        };
        let (known, change) = (known.unwrap_or_default(), change.unwrap_or_default());
        let identity = match strategy.merge_key() {
            Some(key) => Identity::Key(key),
            None => Identity::Value,
        };
        if known.is_empty() && change.is_empty() {
            return Err(MergeError::Unfit("no elements in any of the given slices".to_owned()));
        }
        is_of_objects(&known, &change)?;
        let ordered = order::enforce(merged, &order, &known, identity)?;
        original.insert(field.to_owned(), Value::Array(ordered));
        patch.remove(field);
    }
    Ok(())
}

fn list_of(object: &Object, field: &str) -> Result<Option<Vec<Value>>> {
    match object.get(field) {
        None => Ok(None),
        Some(Value::Array(items)) => Ok(Some(items.clone())),
        Some(other) => Err(bad_type("[]interface {}", other)),
    }
}

/// Refuses a patch whose items stand in another order than it asks for.
// validatePatchWithSetOrderList
fn check_order(patch: &[Value], order: &[Value], strategy: Strategy<'_>) -> Result<()> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    let key = strategy.merge_key();
    let deletes = |item: &Value| key.is_some() && item.get(DIRECTIVE).is_some_and(|directive| directive == "delete");
    if let (Some(_), Some(other)) = (key, patch.iter().find(|item| !item.is_object())) {
        return Err(bad_type("map[string]interface {}", other));
    }
    let mut wanted = order.iter();
    for item in patch.iter().filter(|item| !deletes(item) && item.get(DIRECTIVE).is_none()) {
        loop {
            let Some(place) = wanted.next() else {
                let all = |items: &[Value]| go_text::plain(&Value::Array(items.to_vec()));
                let why =
                    format!("The order in patch list:\n{}\n doesn't match {ORDER} list:\n{}\n", all(patch), all(order));
                return Err(MergeError::Unfit(why));
            };
            if same(item, place, key)? {
                break;
            }
        }
    }
    Ok(())
}

// mergeKeyValueEqual
fn same(one: &Value, other: &Value, key: Option<&str>) -> Result<bool> {
    let Some(key) = key else { return Ok(one == other) };
    let value = |item: &Value| match item {
        Value::Object(object) => object.get(key).cloned().ok_or_else(|| no_merge_key(object, key)),
        other => Err(bad_type("map[string]interface {}", other)),
    };
    Ok(value(one)? == value(other)?)
}

/// Whether items are objects; all of both lists have to be of one type.
// sliceElementType
fn is_of_objects(original: &[Value], patch: &[Value]) -> Result<bool> {
    let mut items = original.iter().chain(patch);
    let first = items.next().map_or("", kind);
    if first == "[]interface {}" {
        return Err(MergeError::Unprocessable("lists of lists are not supported"));
    }
    if first == "%!s(<nil>)" || items.any(|item| kind(item) != first) {
        let all = |items: &[Value]| go_text::plain(&Value::Array(items.to_vec()));
        let why = format!("list element types are not identical: [{} {}]", all(original), all(patch));
        return Err(MergeError::Unfit(why));
    }
    Ok(first == "map[string]interface {}")
}

pub(super) fn no_merge_key(object: &Object, key: &str) -> MergeError {
    let shown = go_text::plain(&Value::Object(object.clone()));
    MergeError::Unfit(format!("map: {shown} does not contain declared merge key: {key}"))
}

/// The directive that takes values out of a list.
pub(super) fn deletion(field: &str) -> String {
    format!("{DELETE}/{field}")
}
