//! The strategic merge patch that turns one object into another.

use super::list::deletion;
use super::order::{Identity, Places, enforce};
use super::{DIRECTIVE, ORDER, Object, RETAIN_KEYS, Result, Strategy, Type};
use crate::schema::Node;
use serde_json::{Value, json};

/// The patch that makes `modified` of `original`, both objects of a built-in type.
// strategicpatch.CreateTwoWayMergePatch
pub fn diff(original: &Value, modified: &Value, node: Node<'_>) -> Result<Value> {
    let empty = Object::new();
    let object = |value: &Value| value.as_object().unwrap_or(&empty).clone();
    objects(&object(original), &object(modified), Type::Struct(node), false).map(Value::Object)
}

// diffMaps
fn objects(original: &Object, modified: &Object, of: Type<'_>, retains_keys: bool) -> Result<Object> {
    let mut patch = Object::new();
    for (key, value) in modified {
        match (original.get(key), value) {
            (Some(old), new) if old == new => {}
            (Some(Value::Object(old)), Value::Object(new)) => {
                let (of, strategy) = of.field(key)?;
                let change = match strategy.replaces() {
                    true => new.clone(),
                    false => objects(old, new, of, strategy.retains_keys())?,
                };
                patch.insert(key.clone(), Value::Object(change));
            }
            (Some(Value::Array(old)), Value::Array(new)) => {
                let (of, strategy) = of.items(key)?;
                match strategy.merges() {
                    true => lists(key, old, new, of, strategy, &mut patch)?,
                    false => drop(patch.insert(key.clone(), value.clone())),
                }
            }
            _ => drop(patch.insert(key.clone(), value.clone())),
        }
    }
    let gone = original.keys().filter(|key| !modified.contains_key(*key));
    patch.extend(gone.map(|key| (key.clone(), Value::Null)));
    if retains_keys && !modified.is_empty() && !patch.is_empty() {
        let kept: Vec<&String> = modified.iter().filter(|(_, value)| !value.is_null()).map(|(key, _)| key).collect();
        patch.insert(RETAIN_KEYS.to_owned(), json!(kept));
    }
    Ok(patch)
}

// diffLists
fn lists(
    field: &str,
    old: &[Value],
    new: &[Value],
    of: Type<'_>,
    strategy: Strategy<'_>,
    patch: &mut Object,
) -> Result<()> {
    let Some(key) = strategy.merge_key() else {
        values(field, old, new, patch);
        return Ok(());
    };
    let (known, kept) = (Places::new(old, Identity::Key(key)), Places::new(new, Identity::Key(key)));
    let mut changes = Vec::new();
    for item in new {
        match (known.of(item).map(|place| &old[place]), item) {
            (Some(Value::Object(old)), Value::Object(new)) if old != new => {
                let mut change = objects(old, new, of, strategy.retains_keys())?;
                change.insert(key.to_owned(), item[key].clone());
                changes.push(Value::Object(change));
            }
            (Some(_), _) => {}
            (None, item) => changes.push(item.clone()),
        }
    }
    let gone = old.iter().filter(|item| kept.of(item).is_none());
    changes.extend(gone.map(|item| json!({key: item[key], DIRECTIVE: "delete"})));
    if !changes.is_empty() {
        patch.insert(field.to_owned(), Value::Array(changes));
    }
    let order: Vec<Value> = new.iter().map(|item| json!({key: item[key]})).collect();
    if !order.is_empty() {
        enforce(order.clone(), &order, &[], Identity::Key(key))?;
        patch.insert(format!("{ORDER}/{field}"), Value::Array(order));
    }
    Ok(())
}

// diffListsOfScalars
fn values(field: &str, old: &[Value], new: &[Value], patch: &mut Object) {
    let (known, kept) = (Places::new(old, Identity::Value), Places::new(new, Identity::Value));
    let added: Vec<Value> = new.iter().filter(|item| known.of(item).is_none()).cloned().collect();
    let gone: Vec<Value> = old.iter().filter(|item| kept.of(item).is_none()).cloned().collect();
    if !added.is_empty() {
        patch.insert(field.to_owned(), Value::Array(added));
    }
    if !gone.is_empty() {
        patch.insert(deletion(field), Value::Array(gone));
    }
    if !new.is_empty() {
        patch.insert(format!("{ORDER}/{field}"), Value::Array(new.to_vec()));
    }
}
