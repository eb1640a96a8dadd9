//! A value into the fields of a message.

use super::wire::{delimited, put_bytes, put_double, put_number};
use super::{EncodeError, embedded, is_wrapped};
use crate::schema::{Field, Form, Node, Wire};
use base64::prelude::{BASE64_STANDARD, Engine};
use serde_json::{Map, Value};
use std::sync::LazyLock;

type Result<T, E = EncodeError> = std::result::Result<T, E>;

static NOTHING: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);

/// Writes the fields of a message by number.
pub(super) fn message(out: &mut Vec<u8>, value: &Value, node: Node<'_>) -> Result<()> {
    let object = match value {
        Value::Object(object) => object,
        Value::Null => &NOTHING,
        _ => return Err(misfit(node.type_name().unwrap_or("object"))),
    };
    fields(out, object, node, node.wire_order(), 0)
}

/// Writes some fields of a message; those that have a longer path stand in a message of their own.
fn fields(out: &mut Vec<u8>, object: &Map<String, Value>, node: Node<'_>, order: &[u16], level: usize) -> Result<()> {
    let mut rest = order;
    while let Some(&first) = rest.first() {
        let field = &node.fields()[usize::from(first)];
        let path = field.protobuf.as_ref().map_or(&[][..], |place| &place.path);
        let number = path[level];
        if path.len() == level + 1 {
            one(out, number, object.get(&*field.name), field, node)?;
            rest = &rest[1..];
            continue;
        }
        let same = |index: &u16| node.fields()[usize::from(*index)].protobuf.as_ref().map(|place| place.path[level]);
        let count = rest.iter().take_while(|index| same(index) == Some(number)).count();
        let (inner, after) = rest.split_at(count);
        delimited(out, number, |out| fields(out, object, node, inner, level + 1))?;
        rest = after;
    }
    Ok(())
}

fn one(out: &mut Vec<u8>, number: u32, value: Option<&Value>, field: &Field, owner: Node<'_>) -> Result<()> {
    let Some(place) = &field.protobuf else { return Ok(()) };
    let node = owner.at(field.schema);
    let value = value.filter(|value| !value.is_null());
    let written = match (&node.form, value) {
        (Form::List(list), Some(Value::Array(items))) => list_of(out, number, items, node.at(list.items), place.wire),
        (Form::Map(map), Some(Value::Object(entries))) => entries.iter().try_for_each(|(key, value)| {
            delimited(out, number, |out| {
                put_bytes(out, 1, key.as_bytes());
                single(out, 2, value, node.at(map.values), place.wire)
            })
        }),
        (Form::List(_) | Form::Map(_), None) => Ok(()),
        (_, Some(value)) => single(out, number, value, node, place.wire),
        (_, None) if place.pointer || place.wire == Wire::Bytes => Ok(()),
        (_, None) => single(out, number, &Value::Null, node, place.wire),
    };
    written.map_err(|error| {
        if error.field.is_empty() {
            misfit(&field.name)
        } else {
            error
        }
    })
}

fn list_of(out: &mut Vec<u8>, number: u32, items: &[Value], node: Node<'_>, wire: Wire) -> Result<()> {
    if is_wrapped(node, wire) {
        return delimited(out, number, |out| list_of(out, 1, items, node, Wire::String));
    }
    items.iter().try_for_each(|item| single(out, number, item, node, wire))
}

/// Writes one value; null is Go's zero value.
pub(super) fn single(out: &mut Vec<u8>, number: u32, value: &Value, node: Node<'_>, wire: Wire) -> Result<()> {
    match (wire, value) {
        (Wire::Varint, Value::Bool(flag)) => put_number(out, number, u64::from(*flag)),
        (Wire::Varint, Value::Null) => put_number(out, number, 0),
        (Wire::Varint, Value::Number(integer)) => {
            let integer = integer.as_i64().map(i64::cast_unsigned).or(integer.as_u64());
            put_number(out, number, integer.ok_or_else(unnamed)?);
        }
        (Wire::Fixed64, Value::Number(float)) => put_double(out, number, float.as_f64().ok_or_else(unnamed)?),
        (Wire::Fixed64, Value::Null) => put_double(out, number, 0.0),
        (Wire::String, Value::String(text)) => put_bytes(out, number, text.as_bytes()),
        (Wire::String, Value::Null) => put_bytes(out, number, b""),
        (Wire::Bytes, Value::String(text)) => put_bytes(out, number, &base64(text)?),
        (Wire::Bytes, Value::Null) => {}
        (Wire::Message, value) if embedded::is_message(node) => {
            delimited(out, number, |out| embedded::write(out, value, node))?;
        }
        (Wire::Message, value) => match (&node.form, value) {
            (Form::Object(_), value) => delimited(out, number, |out| message(out, value, node))?,
            (Form::List(list), Value::Array(items)) => list_of(out, number, items, node.at(list.items), wire)?,
            (Form::List(_), Value::Null) => {}
            _ => return Err(unnamed()),
        },
        _ => return Err(unnamed()),
    }
    Ok(())
}

/// Go skips line ends.
fn base64(text: &str) -> Result<Vec<u8>> {
    let decoded = match text.contains(['\r', '\n']) {
        true => BASE64_STANDARD.decode(text.replace(['\r', '\n'], "")),
        false => BASE64_STANDARD.decode(text),
    };
    decoded.map_err(|_| unnamed())
}

pub(super) fn misfit(field: &str) -> EncodeError {
    EncodeError { field: field.to_owned() }
}

/// A misfit whose field the caller knows.
pub(super) fn unnamed() -> EncodeError {
    misfit("")
}
