//! What a test expects: a value in canonical form, a type, or an error.

use flyball_cel::{Map, Type, Value};
use serde_json::{Value as Json, json};

use crate::cel::canonical::{double, entries_of, hexadecimal, timestamp};
use crate::cel::textproto::{Field, Message};

/// What a test needs that is not there.
pub const MESSAGES: &str = "protobuf messages";

/// What a test says that an expression is.
#[derive(Debug)]
pub enum Expected {
    /// A value, and its type where the test tells it.
    Value(Json, Option<String>),
    /// A type alone.
    Type(String),
    /// Any error.
    Error,
}

impl Expected {
    /// Reads the result of a test; `true` where it says nothing.
    pub fn of(test: &Message) -> Result<Expected, &'static str> {
        if let Some(value) = test.message("value") {
            return Ok(Expected::Value(json_of(value)?, None));
        }
        if let Some(typed) = test.message("typed_result") {
            let kind = typed.message("deduced_type").map(type_of).transpose()?.map(|kind| kind.to_string());
            return match (typed.message("result"), kind) {
                (Some(value), kind) => Ok(Expected::Value(json_of(value)?, kind)),
                (None, Some(kind)) => Ok(Expected::Type(kind)),
                (None, None) => Err("a result of no form"),
            };
        }
        if test.message("eval_error").is_some() || test.message("any_eval_errors").is_some() {
            return Ok(Expected::Error);
        }
        if test.message("unknown").is_some() || test.message("any_unknowns").is_some() {
            return Err("unknown values");
        }
        Ok(Expected::Value(json!(true), None))
    }
}

/// A `cel.expr.Value` in canonical form.
fn json_of(value: &Message) -> Result<Json, &'static str> {
    let Some((kind, field)) = value.fields.first() else {
        return Err("a value of no form");
    };
    Ok(match (kind.as_str(), field) {
        ("null_value", _) => Json::Null,
        ("bool_value", Field::Word(word)) => json!(word == "true"),
        ("int64_value", Field::Word(word)) => json!({"int": integer(word)?.to_string()}),
        ("uint64_value", Field::Word(word)) => json!({"uint": integer(word)?.to_string()}),
        ("double_value", Field::Word(word)) => double(number(word)?),
        ("string_value", Field::Text(bytes)) => json!(String::from_utf8_lossy(bytes)),
        ("bytes_value", Field::Text(bytes)) => hexadecimal(bytes),
        ("type_value", Field::Text(bytes)) => json!({"type": String::from_utf8_lossy(bytes)}),
        ("list_value", Field::Message(list)) => list.messages("values").map(json_of).collect::<Result<_, _>>()?,
        ("map_value", Field::Message(map)) => {
            let entry = |entry: &Message| {
                let part = |name| entry.message(name).ok_or("an entry of no form").and_then(json_of);
                Ok((part("key")?, part("value")?))
            };
            entries_of(map.messages("entries").map(entry).collect::<Result<_, &'static str>>()?)
        }
        ("object_value", Field::Message(object)) => object_of(object)?,
        _ => return Err(MESSAGES),
    })
}

/// A duration or a timestamp in an `Any`.
fn object_of(object: &Message) -> Result<Json, &'static str> {
    let Some((name, Field::Message(message))) = object.fields.first() else {
        return Err(MESSAGES);
    };
    let part = |name: &str| match message.all(name).next() {
        Some(Field::Word(word)) => integer(word),
        _ => Ok(0),
    };
    let (seconds, nanoseconds) = (part("seconds")?, part("nanos")?);
    match name.as_str() {
        "[type.googleapis.com/google.protobuf.Duration]" => {
            Ok(json!({"duration": (seconds * 1_000_000_000 + nanoseconds).to_string()}))
        }
        "[type.googleapis.com/google.protobuf.Timestamp]" => {
            let seconds = i64::try_from(seconds).map_err(|_| "a number out of range")?;
            Ok(timestamp(seconds, u32::try_from(nanoseconds).map_err(|_| "a number out of range")?))
        }
        _ => Err(MESSAGES),
    }
}

/// A binding's value for the engine.
pub fn value_of(value: &Message) -> Result<Value<'static>, &'static str> {
    let Some((kind, field)) = value.fields.first() else {
        return Err("a value of no form");
    };
    Ok(match (kind.as_str(), field) {
        ("null_value", _) => Value::Null,
        ("bool_value", Field::Word(word)) => Value::Bool(word == "true"),
        ("int64_value", Field::Word(word)) => Value::Int(i64::try_from(integer(word)?).map_err(|_| "out of range")?),
        ("uint64_value", Field::Word(word)) => Value::Uint(u64::try_from(integer(word)?).map_err(|_| "out of range")?),
        ("double_value", Field::Word(word)) => Value::Double(number(word)?),
        ("string_value", Field::Text(bytes)) => Value::string(String::from_utf8_lossy(bytes)),
        ("bytes_value", Field::Text(bytes)) => Value::bytes(bytes.as_slice()),
        ("list_value", Field::Message(list)) => {
            Value::list(list.messages("values").map(value_of).collect::<Result<_, _>>()?)
        }
        ("map_value", Field::Message(map)) => {
            let entry = |entry: &Message| {
                let part = |name| entry.message(name).ok_or("an entry of no form").and_then(value_of);
                Ok((part("key")?, part("value")?))
            };
            let entries = map.messages("entries").map(entry).collect::<Result<Vec<_>, &'static str>>()?;
            Value::Map(Map::of(entries).map_err(|_| "a map of no form")?)
        }
        _ => return Err(MESSAGES),
    })
}

/// A `cel.expr.Type` as the engine has it.
pub fn type_of(kind: &Message) -> Result<Type, &'static str> {
    let Some((name, field)) = kind.fields.first() else {
        return Ok(Type::Dyn);
    };
    let word = match field {
        Field::Word(word) => word.as_str(),
        _ => "",
    };
    Ok(match (name.as_str(), field) {
        ("dyn", _) => Type::Dyn,
        ("null", _) => Type::Null,
        ("primitive", _) => primitive(word)?,
        ("wrapper", _) => Type::Nullable(primitive(word)?.into()),
        ("well_known", _) => match word {
            "TIMESTAMP" => Type::Timestamp,
            "DURATION" => Type::Duration,
            _ => return Err(MESSAGES),
        },
        ("list_type", Field::Message(list)) => Type::list(part(list, "elem_type")?),
        ("map_type", Field::Message(map)) => Type::map(part(map, "key_type")?, part(map, "value_type")?),
        ("type_param", Field::Text(name)) => Type::Param(String::from_utf8_lossy(name).as_ref().into()),
        ("type", Field::Message(inner)) if inner.fields.is_empty() => Type::Type(None),
        ("type", Field::Message(inner)) => Type::of_type(type_of(inner)?),
        ("abstract_type", Field::Message(inner)) => {
            let parameters: Result<Vec<Type>, _> = inner.messages("parameter_types").map(type_of).collect();
            Type::Opaque(inner.text("name").into(), parameters?.into())
        }
        ("message_type", _) => return Err(MESSAGES),
        _ => return Err("a type of no form"),
    })
}

fn part(message: &Message, name: &str) -> Result<Type, &'static str> {
    message.message(name).map_or(Ok(Type::Dyn), type_of)
}

fn primitive(word: &str) -> Result<Type, &'static str> {
    Ok(match word {
        "BOOL" => Type::Bool,
        "INT64" => Type::Int,
        "UINT64" => Type::Uint,
        "DOUBLE" => Type::Double,
        "STRING" => Type::String,
        "BYTES" => Type::Bytes,
        _ => return Err("a type of no form"),
    })
}

fn integer(word: &str) -> Result<i128, &'static str> {
    let (sign, digits) = word.strip_prefix('-').map_or((1, word), |digits| (-1, digits));
    let number = match digits.strip_prefix("0x") {
        Some(digits) => i128::from_str_radix(digits, 16),
        None => digits.parse(),
    };
    number.map(|number| sign * number).map_err(|_| "a number of no form")
}

fn number(word: &str) -> Result<f64, &'static str> {
    match word.to_ascii_lowercase().as_str() {
        "inf" | "infinity" => Ok(f64::INFINITY),
        "-inf" | "-infinity" => Ok(f64::NEG_INFINITY),
        "nan" => Ok(f64::NAN),
        other => other.trim_end_matches('f').parse().map_err(|_| "a number of no form"),
    }
}
