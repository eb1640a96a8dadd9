//! Equality: numbers by value whatever their type, lists and maps by what they hold.

use super::list::List;
use super::map::{Key, Map};
use super::shape::ListKind;
use super::{Value, order};
use crate::eval::EvalError;
use serde_json::Value as Json;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

/// How many elements one comparison may look at. Values that share parts can be larger than memory.
const MAX_COMPARED: u32 = 1 << 22;

/// Whether two values are equal.
pub(crate) fn equal(one: &Value<'_>, other: &Value<'_>) -> Result<bool, EvalError> {
    equal_within(one, other, &mut MAX_COMPARED.clone())
}

/// The same, while there are comparisons left.
fn equal_within(one: &Value<'_>, other: &Value<'_>, left: &mut u32) -> Result<bool, EvalError> {
    *left = left.checked_sub(1).ok_or_else(EvalError::cost_limit)?;
    Ok(match (one, other) {
        (Value::Null, other) => matches!(other, Value::Null),
        (_, Value::Null) => false,
        (Value::Bool(one), Value::Bool(other)) => one == other,
        (Value::Int(one), Value::Int(other)) => one == other,
        (Value::String(one), Value::String(other)) => **one == **other,
        (Value::Bytes(one), Value::Bytes(other)) => **one == **other,
        (Value::Duration(one), Value::Duration(other)) => one == other,
        (Value::Timestamp(one), Value::Timestamp(other)) => one == other,
        (Value::Message(one), Value::Message(other)) => return one.equals(other),
        (Value::List(one), other) => return equal_lists(one, other, left),
        (Value::Map(one), other) => return equal_maps(one, other, left),
        (Value::Optional(one), Value::Optional(other)) => match (one, other) {
            (Some(one), Some(other)) => return equal_within(one, other, left),
            (one, other) => one.is_none() && other.is_none(),
        },
        (Value::Type(one), Value::Type(other)) => one.runtime_name() == other.runtime_name(),
        (Value::Opaque(one), Value::Opaque(other)) => return one.equals(&**other),
        (Value::Opaque(_), _) => return Err(EvalError::no_such_overload()),
        _ => order::compare_numbers(one, other) == Some(Ok(Ordering::Equal)),
    })
}

fn equal_lists(one: &List<'_>, other: &Value<'_>, left: &mut u32) -> Result<bool, EvalError> {
    let Value::List(other) = other else {
        return match one.shape() {
            Some(_) => Err(EvalError::no_such_overload()),
            None => Ok(false),
        };
    };
    if one.len() != other.len() {
        return Ok(false);
    }
    match one.shape().map(|shape| shape.list_kind()) {
        Some(ListKind::Set) => equal_sets(one, other),
        Some(ListKind::Map(keys)) => equal_keyed(one, other, keys, left),
        _ => {
            for (one, other) in one.iter().zip(other.iter()) {
                if !equal_within(&one?, &other?, left)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
    }
}

fn equal_sets(one: &List<'_>, other: &List<'_>) -> Result<bool, EvalError> {
    let items: Vec<Value<'_>> = one.iter().collect::<Result<_, _>>()?;
    let members = Members::new(&items);
    for item in other.iter() {
        if !members.contains(&items, &item?)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn equal_keyed(one: &List<'_>, other: &List<'_>, keys: &[Arc<str>], left: &mut u32) -> Result<bool, EvalError> {
    let items: Vec<Value<'_>> = one.iter().collect::<Result<_, _>>()?;
    let places = keyed_places(&items, keys);
    for item in other.iter() {
        let item = item?;
        let Some(place) = places.get(&list_key(&item, keys)) else {
            return Ok(false);
        };
        if !equal_within(&items[*place], &item, left)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The elements of a set, hashed as far as they are scalars.
pub(crate) struct Members {
    keys: HashMap<Key, usize>,
    /// How many elements cannot be hashed and are compared one by one.
    others: usize,
}

impl Members {
    pub(crate) fn new(items: &[Value<'_>]) -> Members {
        let mut members = Members { keys: HashMap::new(), others: 0 };
        items.iter().enumerate().for_each(|(place, item)| members.insert(item, place));
        members
    }

    pub(crate) fn insert(&mut self, item: &Value<'_>, place: usize) {
        match Key::of(item) {
            Some(key) => {
                self.keys.insert(key, place);
            }
            None => self.others += 1,
        }
    }

    pub(crate) fn contains(&self, items: &[Value<'_>], item: &Value<'_>) -> Result<bool, EvalError> {
        if let Some(key) = Key::of(item) {
            return Ok(self.keys.contains_key(&key));
        }
        if self.others == 0 {
            return Ok(false);
        }
        for known in items {
            if equal(known, item)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The values of the fields that tell elements of a list apart.
pub(crate) fn list_key(item: &Value<'_>, keys: &[Arc<str>]) -> Vec<Option<Key>> {
    let Value::Map(map) = item else { return Vec::new() };
    let field = |key: &Arc<str>| map.find_text(key).ok().flatten().and_then(|value| Key::of(&value));
    keys.iter().map(field).collect()
}

pub(crate) fn keyed_places(items: &[Value<'_>], keys: &[Arc<str>]) -> HashMap<Vec<Option<Key>>, usize> {
    items.iter().enumerate().map(|(place, item)| (list_key(item, keys), place)).collect()
}

fn equal_maps(one: &Map<'_>, other: &Value<'_>, left: &mut u32) -> Result<bool, EvalError> {
    let Value::Map(other) = other else {
        return match one.shape() {
            Some(_) => Err(EvalError::no_such_overload()),
            None => Ok(false),
        };
    };
    if one.len() != other.len() {
        return Ok(false);
    }
    if let (Map::Json(one, shape), Map::Json(other, _)) = (one, other)
        && !shape.is_any()
        && !equal_hidden(one, other, |key| one_is_declared(shape, key))
    {
        return Ok(false);
    }
    for entry in one.entries() {
        let (key, value) = entry?;
        match other.find(&key)? {
            Some(other) if equal_within(&value, &other, left)? => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}

fn one_is_declared(shape: &super::shape::Shape, key: &str) -> bool {
    use super::shape::ShapeKind;
    match &shape.kind {
        ShapeKind::Object(object) => object.cel_name(key).is_some(),
        ShapeKind::Map(_) => true,
        _ => false,
    }
}

/// Compares the entries that no declaration covers; one that the other object lacks is passed over, as upstream does.
fn equal_hidden(
    one: &serde_json::Map<String, Json>,
    other: &serde_json::Map<String, Json>,
    is_declared: impl Fn(&str) -> bool,
) -> bool {
    let hidden = one.iter().filter(|(key, _)| !is_declared(key));
    hidden.into_iter().all(|(key, value)| other.get(key).is_none_or(|other| value == other))
}

/// The integer that a floating point number is, if it is one.
pub(crate) fn lossless_int(number: f64) -> Option<i64> {
    let int = number as i64;
    (int as f64 == number && number < 9_223_372_036_854_775_808.0).then_some(int)
}

/// The same without sign.
pub(crate) fn lossless_uint(number: f64) -> Option<u64> {
    let uint = number as u64;
    (uint as f64 == number && number < 18_446_744_073_709_551_616.0).then_some(uint)
}
