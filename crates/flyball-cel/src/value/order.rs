//! Order: numbers of all types among each other, and values of one type.

use super::Value;
use crate::eval::EvalError;
use std::cmp::Ordering;

/// Whether values of this type have an order.
pub(crate) fn is_ordered(value: &Value<'_>) -> bool {
    use Value::{Bool, Bytes, Double, Duration, Int, String, Timestamp, Uint};
    matches!(
        value,
        Bool(_) | Int(_) | Uint(_) | Double(_) | String(_) | Bytes(_) | Duration(_) | Timestamp(_)
    )
}

/// How one value compares to another.
pub(crate) fn compare(one: &Value<'_>, other: &Value<'_>) -> Result<Ordering, EvalError> {
    Ok(match (one, other) {
        (Value::Bool(one), Value::Bool(other)) => one.cmp(other),
        (Value::String(one), Value::String(other)) => (**one).cmp(&**other),
        (Value::Bytes(one), Value::Bytes(other)) => (**one).cmp(&**other),
        (Value::Duration(one), Value::Duration(other)) => one.cmp(other),
        (Value::Timestamp(one), Value::Timestamp(other)) => one.cmp(other),
        (Value::Double(one), _) if one.is_nan() => return Err(nan()),
        _ => return compare_numbers(one, other).unwrap_or_else(|| Err(EvalError::no_such_overload())),
    })
}

/// The same for numbers; nothing if one is no number.
pub(crate) fn compare_numbers(one: &Value<'_>, other: &Value<'_>) -> Option<Result<Ordering, EvalError>> {
    use Value::{Double, Int, Uint};
    let order = match (one, other) {
        (Int(one), Int(other)) => one.cmp(other),
        (Uint(one), Uint(other)) => one.cmp(other),
        (Int(one), Uint(other)) => compare_int_uint(*one, *other),
        (Uint(one), Int(other)) => compare_int_uint(*other, *one).reverse(),
        (Double(one), Double(other)) => return Some(one.partial_cmp(other).ok_or_else(nan)),
        (Double(one), Int(other)) => return Some(compare_double_int(*one, *other)),
        (Int(one), Double(other)) => return Some(compare_double_int(*other, *one).map(Ordering::reverse)),
        (Double(one), Uint(other)) => return Some(compare_double_uint(*one, *other)),
        (Uint(one), Double(other)) => return Some(compare_double_uint(*other, *one).map(Ordering::reverse)),
        _ => return None,
    };
    Some(Ok(order))
}

fn nan() -> EvalError {
    EvalError::new("NaN values cannot be ordered")
}

fn compare_int_uint(int: i64, uint: u64) -> Ordering {
    u64::try_from(int).map_or(Ordering::Less, |int| int.cmp(&uint))
}

fn compare_double_int(double: f64, int: i64) -> Result<Ordering, EvalError> {
    if double < i64::MIN as f64 {
        return Ok(Ordering::Less);
    }
    if double > i64::MAX as f64 {
        return Ok(Ordering::Greater);
    }
    double.partial_cmp(&(int as f64)).ok_or_else(nan)
}

fn compare_double_uint(double: f64, uint: u64) -> Result<Ordering, EvalError> {
    if double < 0.0 {
        return Ok(Ordering::Less);
    }
    if double > u64::MAX as f64 {
        return Ok(Ordering::Greater);
    }
    double.partial_cmp(&(uint as f64)).ok_or_else(nan)
}
