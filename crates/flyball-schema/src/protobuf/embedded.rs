//! Types that Go writes by hand: times, quantities, ports that may have a name, JSON within protobuf, and the schemas of
//! CustomResourceDefinitions that may be a list or a boolean instead.

use super::decode::message as read_message;
use super::encode::{message as write_message, unnamed};
use super::wire::{delimited, each_field, put_bytes, put_number};
use super::{DecodeError, EncodeError};
use crate::decode::Document;
use crate::kinds;
use crate::managed_fields;
use crate::quantity::Quantity;
use crate::schema::{Form, Node};
use jiff::Timestamp;
use serde_json::{Map, Value};

const JSON_SCHEMA_PROPS: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";

enum Kind {
    Seconds,
    Microseconds,
    Quantity,
    IntOrString,
    /// `RawExtension`, `JSON`: one field with JSON in it.
    Json,
    /// The same, with the paths of a field manager in their own order.
    FieldsV1,
    SchemaOrBool,
    /// `JSONSchemaPropsOrArray`: the list is one of schemas.
    SchemaOrArray,
    /// `JSONSchemaPropsOrStringArray`: the list is one of names.
    SchemaOrNames,
}

fn kind(node: Node<'_>) -> Option<Kind> {
    let name = node.type_name().and_then(|name| name.rsplit('.').next()).unwrap_or_default();
    match (&node.form, name) {
        (Form::Quantity, _) => Some(Kind::Quantity),
        (Form::IntOrString, _) => Some(Kind::IntOrString),
        (Form::String, "Time") => Some(Kind::Seconds),
        (Form::String, "MicroTime") => Some(Kind::Microseconds),
        (Form::Any, "JSONSchemaPropsOrBool") => Some(Kind::SchemaOrBool),
        (Form::Any, "JSONSchemaPropsOrArray") => Some(Kind::SchemaOrArray),
        (Form::Any, "JSONSchemaPropsOrStringArray") => Some(Kind::SchemaOrNames),
        (Form::Any, _) => Some(Kind::Json),
        (Form::Object(object), "FieldsV1") if object.fields.is_empty() => Some(Kind::FieldsV1),
        (Form::Object(object), _) if node.preserve_unknown && object.fields.is_empty() => Some(Kind::Json),
        _ => None,
    }
}

/// Whether a type has a message of its own, written by hand.
pub(super) fn is_message(node: Node<'_>) -> bool {
    kind(node).is_some()
}

/// Writes what stands in the message of such a type; null is Go's zero value.
pub(super) fn write(out: &mut Vec<u8>, value: &Value, node: Node<'_>) -> Result<(), EncodeError> {
    let Some(kind) = kind(node) else { return Err(unnamed()) };
    match (kind, value) {
        (Kind::Seconds | Kind::Microseconds, Value::Null) => {}
        (kind @ (Kind::Seconds | Kind::Microseconds), Value::String(text)) => write_time(out, &kind, text)?,
        (Kind::Quantity, Value::Null) => put_bytes(out, 1, b"0"),
        (Kind::Quantity, Value::String(text)) => put_bytes(out, 1, text.as_bytes()),
        (Kind::Quantity, Value::Number(number)) => put_bytes(out, 1, number.to_string().as_bytes()),
        (Kind::IntOrString, value) => {
            let (text, number) = match value {
                Value::String(text) => (Some(text.as_str()), 0),
                Value::Null => (None, 0),
                value => (None, value.as_i64().ok_or_else(unnamed)?),
            };
            put_number(out, 1, u64::from(text.is_some()));
            put_number(out, 2, number.cast_unsigned());
            put_bytes(out, 3, text.unwrap_or_default().as_bytes());
        }
        // Only where it is a value of its own does JSON keep a null: in a list of them.
        (Kind::Json, Value::Null) if !matches!(node.form, Form::Any) => {}
        (Kind::FieldsV1, Value::Null) => {}
        (Kind::Json, value) => put_bytes(out, 1, value.to_string().as_bytes()),
        (Kind::FieldsV1, value) => put_bytes(out, 1, managed_fields::text(value).as_bytes()),
        (Kind::SchemaOrBool, Value::Object(_)) => {
            put_number(out, 1, 1);
            write_schema(out, 2, value)?;
        }
        (Kind::SchemaOrBool, value) => put_number(out, 1, u64::from(value == &Value::Bool(true))),
        (Kind::SchemaOrArray | Kind::SchemaOrNames, Value::Object(_)) => write_schema(out, 1, value)?,
        (Kind::SchemaOrArray, Value::Array(items)) => items.iter().try_for_each(|item| write_schema(out, 2, item))?,
        (Kind::SchemaOrNames, Value::Array(items)) => items.iter().try_for_each(|item| {
            put_bytes(out, 2, item.as_str().ok_or_else(unnamed)?.as_bytes());
            Ok(())
        })?,
        (Kind::SchemaOrArray | Kind::SchemaOrNames, Value::Null) => {}
        _ => return Err(unnamed()),
    }
    Ok(())
}

// apimachinery/pkg/apis/meta/v1/time_proto.go and micro_time_proto.go
fn write_time(out: &mut Vec<u8>, kind: &Kind, text: &str) -> Result<(), EncodeError> {
    let time: Timestamp = text.parse().map_err(|_| unnamed())?;
    let seconds = time.as_nanosecond().div_euclid(1_000_000_000) as i64;
    let nanos = time.as_nanosecond().rem_euclid(1_000_000_000) as u64;
    let nanos = match kind {
        Kind::Microseconds => nanos / 1000 * 1000,
        _ => 0,
    };
    if (seconds, nanos) != (GO_ZERO, 0) {
        put_number(out, 1, seconds.cast_unsigned());
        put_number(out, 2, nanos);
    }
    Ok(())
}

/// The first second of the year 1, which is no time at all for Go.
const GO_ZERO: i64 = -62_135_596_800;

fn write_schema(out: &mut Vec<u8>, number: u32, value: &Value) -> Result<(), EncodeError> {
    delimited(out, number, |out| write_message(out, value, json_schema_props()))
}

fn json_schema_props() -> Node<'static> {
    kinds::builtin().schema(JSON_SCHEMA_PROPS).expect("JSONSchemaProps are in the table")
}

/// Reads the message of such a type.
pub(super) fn read(bytes: &[u8], node: Node<'_>, depth: usize) -> Result<Value, DecodeError> {
    match kind(node) {
        Some(kind @ (Kind::Seconds | Kind::Microseconds)) => read_time(bytes, &kind),
        Some(Kind::Quantity) => read_quantity(bytes),
        Some(Kind::IntOrString) => read_int_or_string(bytes),
        Some(Kind::Json | Kind::FieldsV1) => read_json(bytes),
        Some(Kind::SchemaOrBool) => read_schema_or_bool(bytes, depth),
        Some(Kind::SchemaOrArray) => read_schema_or_list(bytes, depth, |item| read_schema(item, depth)),
        Some(Kind::SchemaOrNames) => {
            read_schema_or_list(bytes, depth, |item| Ok(String::from_utf8_lossy(item).into_owned().into()))
        }
        None => Ok(Value::Null),
    }
}

fn read_time(bytes: &[u8], kind: &Kind) -> Result<Value, DecodeError> {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let (mut seconds, mut nanos) = (0, 0);
    each_field(bytes, "Timestamp", |number, written| {
        match number {
            1 => seconds = written.varint("Seconds")?.cast_signed(),
            2 => nanos = written.varint("Nanos")? as i32,
            _ => {}
        }
        Ok(())
    })?;
    let outside = || DecodeError::Value("Time.MarshalJSON: year outside of range [0,9999]".to_owned());
    let (nanos, layout) = match kind {
        Kind::Microseconds => (nanos, "%Y-%m-%dT%H:%M:%S.%6fZ"),
        _ => (0, "%Y-%m-%dT%H:%M:%SZ"),
    };
    let time = Timestamp::new(seconds, nanos).map_err(|_| outside())?;
    if seconds == GO_ZERO && nanos == 0 {
        return Ok(Value::Null);
    }
    if time.as_second() < -62_167_219_200 {
        return Err(outside());
    }
    Ok(time.strftime(layout).to_string().into())
}

fn read_quantity(bytes: &[u8]) -> Result<Value, DecodeError> {
    let mut text = String::new();
    each_field(bytes, "Quantity", |number, written| {
        if number == 1 {
            text = written.text("String_")?;
        }
        Ok(())
    })?;
    match text.as_str() {
        // apimachinery/pkg/api/resource/quantity_proto.go: nothing is no amount.
        "" => Ok("0".into()),
        text => {
            let quantity = text.parse::<Quantity>().map_err(|error| DecodeError::Value(error.to_string()))?;
            Ok(quantity.to_string().into())
        }
    }
}

fn read_int_or_string(bytes: &[u8]) -> Result<Value, DecodeError> {
    let (mut kind, mut number, mut text) = (0, 0, String::new());
    each_field(bytes, "IntOrString", |field, written| {
        match field {
            1 => kind = written.varint("Type")?,
            2 => number = written.varint("IntVal")? as i32,
            3 => text = written.text("StrVal")?,
            _ => {}
        }
        Ok(())
    })?;
    match kind {
        0 => Ok(number.into()),
        1 => Ok(text.into()),
        _ => Err(DecodeError::Value("impossible IntOrString.Type".to_owned())),
    }
}

fn read_json(bytes: &[u8]) -> Result<Value, DecodeError> {
    let mut raw: &[u8] = &[];
    each_field(bytes, "RawExtension", |number, written| {
        if number == 1 {
            raw = written.bytes("Raw")?;
        }
        Ok(())
    })?;
    if raw.is_empty() {
        return Ok(Value::Null);
    }
    let decoded = Document::json(raw).and_then(Document::untyped);
    decoded
        .map(|decoded| decoded.value)
        .map_err(|error| DecodeError::Value(error.to_string()))
}

fn read_schema(bytes: &[u8], depth: usize) -> Result<Value, DecodeError> {
    read_message(bytes, json_schema_props(), Map::new(), depth)
}

fn read_schema_or_bool(bytes: &[u8], depth: usize) -> Result<Value, DecodeError> {
    let (mut allows, mut schema) = (false, None);
    each_field(bytes, "JSONSchemaPropsOrBool", |number, written| {
        match number {
            1 => allows = written.varint("Allows")? != 0,
            2 => schema = Some(read_schema(written.bytes("Schema")?, depth)?),
            _ => {}
        }
        Ok(())
    })?;
    Ok(schema.unwrap_or(Value::Bool(allows)))
}

fn read_schema_or_list(
    bytes: &[u8],
    depth: usize,
    read_item: impl Fn(&[u8]) -> Result<Value, DecodeError>,
) -> Result<Value, DecodeError> {
    let (mut schema, mut items) = (Value::Null, Vec::new());
    each_field(bytes, "JSONSchemaProps", |number, written| {
        match number {
            1 => schema = read_schema(written.bytes("Schema")?, depth)?,
            2 => items.push(read_item(written.bytes("Items")?)?),
            _ => {}
        }
        Ok(())
    })?;
    match items.is_empty() {
        true => Ok(schema),
        false => Ok(Value::Array(items)),
    }
}
