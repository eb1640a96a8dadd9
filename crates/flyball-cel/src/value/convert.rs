//! Conversions between types, with Go's notation of numbers.

use super::{Blob, Duration, Text, Timestamp, Value};
use crate::eval::EvalError;
use crate::typing::Type;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::sync::Arc;

/// Converts a value to another type, as `int(x)`, `string(x)` and so on do.
pub(crate) fn convert<'a>(value: &Value<'a>, to: &Type) -> Result<Value<'a>, EvalError> {
    let converted = match (to, value) {
        (Type::Type(_), value) => Some(Ok(Value::Type(Arc::new(value.type_of())))),
        (Type::Bool, Value::Bool(_))
        | (Type::Bytes, Value::Bytes(_))
        | (Type::Double, Value::Double(_))
        | (Type::Duration, Value::Duration(_))
        | (Type::Int, Value::Int(_))
        | (Type::String, Value::String(_))
        | (Type::Timestamp, Value::Timestamp(_))
        | (Type::Uint, Value::Uint(_)) => Some(Ok(value.clone())),
        (Type::String, value) => to_string(value),
        (Type::Int, value) => to_int(value),
        (Type::Uint, value) => to_uint(value),
        (Type::Double, Value::Int(number)) => Some(Ok(Value::Double(*number as f64))),
        (Type::Double, Value::Uint(number)) => Some(Ok(Value::Double(*number as f64))),
        (Type::Double, Value::String(text)) => parse_double(text).map(|number| Ok(Value::Double(number))),
        (Type::Bool, Value::String(text)) => parse_bool(text).map(|value| Ok(Value::Bool(value))),
        (Type::Bytes, Value::String(text)) => Some(Ok(to_bytes(text))),
        (Type::Duration, Value::String(text)) => Duration::parse(text).map(|span| Ok(Value::Duration(span))),
        (Type::Timestamp, Value::Int(seconds)) => Some(timestamp(Timestamp::new(*seconds, 0))),
        (Type::Timestamp, Value::String(text)) => {
            Timestamp::parse(text).map(|point| timestamp(Some(point).filter(|point| point.is_in_range())))
        }
        _ => None,
    };
    converted.unwrap_or_else(|| {
        let from = value.type_of();
        let message = format!("type conversion error from '{}' to '{}'", from.runtime_name(), to.runtime_name());
        Err(EvalError::new(message))
    })
}

fn timestamp<'a>(point: Option<Timestamp>) -> Result<Value<'a>, EvalError> {
    point.map(Value::Timestamp).ok_or_else(|| EvalError::new("timestamp overflow"))
}

fn to_bytes<'a>(text: &Text<'a>) -> Value<'a> {
    match text {
        Text::Borrowed(text) => Value::Bytes(Blob::Borrowed(text.as_bytes())),
        Text::Shared(text) => Value::bytes(text.as_bytes()),
    }
}

fn to_string<'a>(value: &Value<'a>) -> Option<Result<Value<'a>, EvalError>> {
    Some(Ok(Value::string(match value {
        Value::Null => "null".to_string(),
        Value::Bool(value) => value.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Uint(number) => number.to_string(),
        Value::Double(number) => format_general(*number),
        Value::Duration(span) => span.to_string(),
        Value::Timestamp(point) => point.to_string(),
        Value::Type(kind) => kind.runtime_name().to_string(),
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => text.to_string(),
            Err(_) => return Some(Err(EvalError::new("invalid UTF-8 in bytes, cannot convert to string"))),
        },
        _ => return None,
    })))
}

fn to_int<'a>(value: &Value<'a>) -> Option<Result<Value<'a>, EvalError>> {
    let overflow = || EvalError::new("integer overflow");
    let number = match value {
        Value::Double(number) => {
            let fits = *number > i64::MIN as f64 && *number < i64::MAX as f64;
            if fits { Ok(*number as i64) } else { Err(overflow()) }
        }
        Value::Uint(number) => i64::try_from(*number).map_err(|_| overflow()),
        Value::Duration(span) => Ok(span.nanoseconds()),
        Value::Timestamp(point) => Ok(point.seconds()),
        Value::String(text) => Ok(parse_int(text)?),
        _ => return None,
    };
    Some(number.map(Value::Int))
}

fn to_uint<'a>(value: &Value<'a>) -> Option<Result<Value<'a>, EvalError>> {
    let overflow = || EvalError::new("unsigned integer overflow");
    let number = match value {
        Value::Double(number) => {
            let fits = *number >= 0.0 && *number < 18_446_744_073_709_551_616.0;
            if fits { Ok(*number as u64) } else { Err(overflow()) }
        }
        Value::Int(number) => u64::try_from(*number).map_err(|_| overflow()),
        Value::String(text) => Ok(Some(&**text).filter(|text| !text.starts_with('+'))?.parse().ok()?),
        _ => return None,
    };
    Some(number.map(Value::Uint))
}

/// Decimal digits behind an optional sign.
fn parse_int(text: &str) -> Option<i64> {
    text.parse().ok()
}

/// What Go's `strconv.ParseBool` takes.
fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}

/// What Go's `strconv.ParseFloat` takes: decimal and hexadecimal notation, digits separated by nothing.
pub(crate) fn parse_double(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let lower = unsigned.to_ascii_lowercase();
    if let Some(digits) = lower.strip_prefix("0x") {
        return parse_hexadecimal(digits).map(|number| if text.starts_with('-') { -number } else { number });
    }
    let named = matches!(lower.as_str(), "inf" | "infinity" | "nan");
    let number: f64 = text.parse().ok()?;
    if number.is_infinite() && !named {
        return None;
    }
    Some(number)
}

/// `1.8p3`, behind its `0x`.
fn parse_hexadecimal(text: &str) -> Option<f64> {
    let (mantissa, exponent) = text.split_once('p')?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut number = 0.0;
    for digit in whole.chars().chain(fraction.chars()) {
        number = number * 16.0 + f64::from(digit.to_digit(16)?);
    }
    let exponent: i32 = exponent.parse().ok()?;
    let scale = exponent.checked_sub(4 * i32::try_from(fraction.len()).ok()?)?;
    Some(number * 2f64.powi(scale)).filter(|number| number.is_finite())
}

/// A number as Go's `%g` shows it.
pub(crate) fn format_general(number: f64) -> String {
    if number.is_nan() {
        return "NaN".into();
    }
    if number.is_infinite() {
        return if number > 0.0 { "+Inf".into() } else { "-Inf".into() };
    }
    let scientific = format!("{number:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    // With the shortest digits, Go decides for an exponent as if the precision were six (strconv.formatDigits).
    if (-4..6).contains(&exponent) {
        return format!("{number}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

/// A map key as a JSON key.
pub(crate) fn key_text(key: &Value<'_>) -> Option<String> {
    match key {
        Value::String(text) => Some(text.to_string()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Int(number) => Some(number.to_string()),
        Value::Uint(number) => Some(number.to_string()),
        Value::Double(number) => Some(format_general(*number)),
        _ => None,
    }
}

/// Bytes in base64, times as text.
pub(crate) fn to_json_text(value: &Value<'_>) -> String {
    match value {
        Value::Bytes(bytes) => STANDARD.encode(&**bytes),
        Value::Duration(span) => span.to_string(),
        Value::Timestamp(point) => point.to_string(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_are_shown_as_go_shows_them() {
        let cases = [
            (1.0, "1"),
            (-0.0, "-0"),
            (1.5, "1.5"),
            (123456.0, "123456"),
            (1234567.0, "1.234567e+06"),
            (1e21, "1e+21"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (f64::INFINITY, "+Inf"),
        ];
        for (number, expected) in cases {
            assert_eq!(format_general(number), expected);
        }
    }

    #[test]
    fn doubles_are_read_as_go_reads_them() {
        assert_eq!(parse_double("1e400"), None);
        assert_eq!(parse_double("-Infinity"), Some(f64::NEG_INFINITY));
        assert_eq!(parse_double("0x1p-2"), Some(0.25));
        assert_eq!(parse_double(" 1"), None);
        assert_eq!(parse_double(".5"), Some(0.5));
    }
}
