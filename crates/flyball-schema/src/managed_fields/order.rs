//! Equality and order of JSON values as structured-merge-diff sees them: `1` and `1.0` are the same number.

use serde_json::{Number, Value};
use std::cmp::Ordering;

/// Whether two values are equal, numbers by their value.
pub(super) fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b) == Ordering::Equal,
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            // Keys mostly come in one order.
            let other = |key, b: (&String, _)| if b.0 == key { Some(b.1) } else { None };
            a.len() == b.len()
                && a.iter().zip(b).all(|((key, value), pair)| {
                    other(key, pair).or_else(|| b.get(key)).is_some_and(|other| equal(value, other))
                })
        }
        _ => a == b,
    }
}

/// The order of two values of any type: numbers, strings, booleans, lists, maps, null.
pub(super) fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => {
            let different = a.iter().zip(b).map(|(a, b)| compare(a, b)).find(|order| order.is_ne());
            different.unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        (Value::Object(a), Value::Object(b)) => {
            let different = a
                .iter()
                .zip(b)
                .map(|((name, a), (other, b))| name.cmp(other).then_with(|| compare(a, b)))
                .find(|order| order.is_ne());
            different.unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        _ => rank(a).cmp(&rank(b)),
    }
}

fn compare_numbers(a: &Number, b: &Number) -> Ordering {
    match (a.as_i64(), b.as_i64()) {
        (Some(a), Some(b)) => a.cmp(&b),
        _ => a.as_f64().unwrap_or(f64::NAN).total_cmp(&b.as_f64().unwrap_or(f64::NAN)),
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}
