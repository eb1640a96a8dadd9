//! Lists as sets, and base64 (cel-go's sets and encoders extensions).

use crate::decl::{Entry, entry};
use crate::eval::EvalError;
use crate::value::{List, Value};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};

type Outcome<'a> = Result<Value<'a>, EvalError>;

pub(super) const SETS: [Entry; 3] = [
    entry(
        "sets.contains",
        "list_sets_contains_list",
        "(list(T), list(T)) -> bool",
        |args| match args {
            [Value::List(list), Value::List(wanted)] => contains(list, wanted).map(Value::Bool),
            _ => Err(EvalError::no_such_overload()),
        },
    ),
    entry(
        "sets.equivalent",
        "list_sets_equivalent_list",
        "(list(T), list(T)) -> bool",
        |args| match args {
            [Value::List(one), Value::List(other)] => Ok(Value::Bool(contains(one, other)? && contains(other, one)?)),
            _ => Err(EvalError::no_such_overload()),
        },
    ),
    entry(
        "sets.intersects",
        "list_sets_intersects_list",
        "(list(T), list(T)) -> bool",
        |args| match args {
            [Value::List(one), Value::List(other)] => intersects(one, other),
            _ => Err(EvalError::no_such_overload()),
        },
    ),
];

pub(super) const ENCODERS: [Entry; 2] = [
    entry("base64.decode", "base64_decode_string", "(string) -> bytes", |args| match args {
        [Value::String(text)] => decode(text),
        _ => Err(EvalError::no_such_overload()),
    }),
    entry("base64.encode", "base64_encode_bytes", "(bytes) -> string", |args| match args {
        [Value::Bytes(bytes)] => Ok(Value::string(STANDARD.encode(&**bytes))),
        _ => Err(EvalError::no_such_overload()),
    }),
];

fn contains<'a>(list: &List<'a>, wanted: &List<'a>) -> Result<bool, EvalError> {
    for item in wanted.iter() {
        if !list.contains(&item?)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn intersects<'a>(one: &List<'a>, other: &List<'a>) -> Outcome<'a> {
    for item in one.iter() {
        if matches!(other.contains(&item?), Ok(true)) {
            return Ok(Value::Bool(true));
        }
    }
    Ok(Value::Bool(false))
}

/// Base64 with or without padding; line breaks are passed over, as Go does.
fn decode<'a>(text: &str) -> Outcome<'a> {
    let text = text.replace(['\r', '\n'], "");
    let decoded = STANDARD.decode(&text).or_else(|_| STANDARD_NO_PAD.decode(&text));
    decoded.map(Value::bytes).map_err(|error| {
        let at = match error {
            base64::DecodeError::InvalidByte(at, _) => at,
            _ => text.len(),
        };
        EvalError::new(format!("illegal base64 data at input byte {at}"))
    })
}
