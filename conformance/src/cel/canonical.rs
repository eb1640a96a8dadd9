//! Values of expressions as JSON in which every type shows, so that two engines can be compared by text.

use flyball_cel::{EvalError, Value};
use serde_json::{Value as Json, json};

/// A value with its type: `{"int": "1"}`, `{"map": [[key, value], …]}` in the order of the keys' texts, strings as they are.
///
/// # Errors
/// Where a part of the value is an error.
pub fn canonical(value: &Value<'_>) -> Result<Json, EvalError> {
    Ok(match value {
        Value::Null => Json::Null,
        Value::Bool(value) => json!(value),
        Value::Int(value) => json!({"int": value.to_string()}),
        Value::Uint(value) => json!({"uint": value.to_string()}),
        Value::Double(value) => double(*value),
        Value::String(text) => json!(**text),
        Value::Bytes(bytes) => hexadecimal(bytes),
        Value::Duration(duration) => json!({"duration": duration.nanoseconds().to_string()}),
        Value::Timestamp(point) => timestamp(point.seconds(), fraction(&point.to_string())),
        Value::List(list) => list.iter().map(|item| canonical(&item?)).collect::<Result<_, _>>()?,
        Value::Map(map) => {
            let entries = map.entries().map(|entry| {
                let (key, value) = entry?;
                // cel-go looks the value up by its key, and finds none for a key that is not a number
                let value = match &key {
                    Value::Double(number) if number.is_nan() => json!({"opaque": "error"}),
                    _ => canonical(&value)?,
                };
                Ok((canonical(&key)?, value))
            });
            entries_of(entries.collect::<Result<_, EvalError>>()?)
        }
        Value::Optional(None) => json!({"optional": []}),
        Value::Optional(Some(value)) => json!({"optional": [canonical(value)?]}),
        Value::Type(kind) => json!({"type": kind.runtime_name()}),
        Value::Message(message) => json!({"opaque": message.type_name()}),
        Value::Opaque(opaque) => json!({"opaque": opaque.type_of().runtime_name()}),
    })
}

/// A number by its bits; all that are not a number are one.
pub fn double(value: f64) -> Json {
    let bits = if value.is_nan() {
        f64::NAN.to_bits()
    } else {
        value.to_bits()
    };
    json!({"double": bits.to_string()})
}

/// Bytes in hexadecimal.
pub fn hexadecimal(bytes: &[u8]) -> Json {
    json!({"bytes": bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()})
}

/// A point in time: seconds and nanoseconds since 1970.
pub fn timestamp(seconds: i64, nanoseconds: u32) -> Json {
    json!({"timestamp": format!("{seconds} {nanoseconds}")})
}

/// The entries of a map, sorted.
pub fn entries_of(mut entries: Vec<(Json, Json)>) -> Json {
    entries.sort_by_key(|(key, _)| key.to_string());
    let pairs: Vec<Json> = entries.into_iter().map(|(key, value)| json!([key, value])).collect();
    json!({"map": pairs})
}

/// The nanoseconds that RFC 3339 text has behind its dot.
fn fraction(text: &str) -> u32 {
    let Some((_, rest)) = text.split_once('.') else {
        return 0;
    };
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    format!("{digits:0<9}").parse().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flyball_cel::{Bindings, Env, Library};

    #[test]
    fn types_show() {
        let env = Env::new([Library::Standard]);
        let text =
            "[1, 1u, 1.0, 'a', b'a', {'k': null, 'b': true}, duration('1s'), timestamp('2023-01-01T00:00:00.5Z'), int]";
        let program = env.compile(text).unwrap();
        let value = canonical(&program.evaluate(&Bindings::new()).unwrap()).unwrap();
        let one = 1f64.to_bits().to_string();
        let expected = json!([
            {"int": "1"}, {"uint": "1"}, {"double": one}, "a", {"bytes": "61"},
            {"map": [["b", true], ["k", null]]}, {"duration": "1000000000"},
            {"timestamp": "1672531200 500000000"}, {"type": "int"},
        ]);
        assert_eq!(value, expected);
    }
}
