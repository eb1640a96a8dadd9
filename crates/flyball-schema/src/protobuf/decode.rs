//! The fields of a message into a value. What Go would leave out of JSON is left out.

use super::wire::{Written, each_field, varint};
use super::{DecodeError, embedded, is_wrapped, is_zero};
use crate::decode::{self, MAX_DEPTH};
use crate::schema::{Field, Form, Node, Protobuf, Wire};
use base64::prelude::{BASE64_STANDARD, Engine};
use serde_json::{Map, Number, Value};

type Result<T, E = DecodeError> = std::result::Result<T, E>;

/// Reads an object; nothing in it lies deeper than what JSON may bring.
pub(super) fn object(raw: &[u8], node: Node<'_>) -> Result<Value> {
    let value = message(raw, node, Map::new(), MAX_DEPTH)?;
    match decode::is_deeper_than(&value, MAX_DEPTH) {
        true => Err(DecodeError::Depth),
        false => Ok(value),
    }
}

/// Reads a message into what is known of it already.
pub(super) fn message(bytes: &[u8], node: Node<'_>, mut into: Map<String, Value>, depth: usize) -> Result<Value> {
    let depth = depth.checked_sub(1).ok_or(DecodeError::Depth)?;
    let reading = Reading { node, depth };
    reading.fields(bytes, node.wire_order(), 0, &mut into)?;
    Ok(Value::Object(into))
}

struct Reading<'a> {
    node: Node<'a>,
    depth: usize,
}

impl<'a> Reading<'a> {
    fn fields(&self, bytes: &[u8], order: &[u16], level: usize, into: &mut Map<String, Value>) -> Result<()> {
        let name = self.node.type_name().and_then(|name| name.rsplit('.').next()).unwrap_or_default();
        each_field(bytes, name, |number, written| {
            let start = order.partition_point(|index| self.place(*index).path[level] < number);
            let end = order.partition_point(|index| self.place(*index).path[level] <= number);
            let Some(&first) = order[start..end].first() else {
                return Ok(());
            };
            let field = &self.node.fields()[usize::from(first)];
            match self.place(first).path.len() == level + 1 {
                true => self.field(written, field, into),
                false => self.fields(written.bytes(&field.name)?, &order[start..end], level + 1, into),
            }
        })
    }

    fn place(&self, index: u16) -> &'a Protobuf {
        let place = self.node.fields()[usize::from(index)].protobuf.as_ref();
        place.expect("the order has only fields that protobuf keeps")
    }

    fn field(&self, written: Written<'_>, field: &Field, into: &mut Map<String, Value>) -> Result<()> {
        let Some(place) = &field.protobuf else { return Ok(()) };
        let (node, name) = (self.node.at(field.schema), &*field.name);
        match &node.form {
            Form::List(list) if is_wrapped(node.at(list.items), place.wire) => {
                let items = wrapped(written.bytes(name)?)?;
                into.insert(name.to_owned(), items);
            }
            Form::List(list) => {
                let known = into.entry(name).or_insert_with(|| Value::Array(vec![]));
                let Value::Array(items) = known else { return Ok(()) };
                self.items(items, written, name, node.at(list.items), place.wire)?;
            }
            Form::Map(map) => {
                let known = into.entry(name).or_insert_with(|| Value::Object(Map::new()));
                let Value::Object(entries) = known else { return Ok(()) };
                let (key, value) = self.entry(written.bytes(name)?, name, node.at(map.values), place.wire)?;
                entries.insert(key, value);
            }
            _ => {
                let known = into.remove(name);
                let value = self.single(written, name, node, place.wire, known)?;
                let written = !place.omitted && node.default.as_ref().is_some_and(is_zero);
                let always = written || matches!(node.form, Form::Quantity);
                let kept = match place.pointer {
                    true => !value.is_null(),
                    false => !is_zero(&value) || always || (field.required && !value.is_null()),
                };
                if kept {
                    into.insert(name.to_owned(), value);
                }
            }
        }
        Ok(())
    }

    /// Adds an item, or all of them where numbers are packed.
    fn items(
        &self,
        items: &mut Vec<Value>,
        written: Written<'_>,
        name: &str,
        node: Node<'_>,
        wire: Wire,
    ) -> Result<()> {
        match (wire, written) {
            (Wire::Varint, Written::Bytes(mut packed)) => {
                while !packed.is_empty() {
                    let number = Written::Varint(varint(&mut packed)?);
                    items.push(self.single(number, name, node, wire, None)?);
                }
            }
            _ => items.push(self.single(written, name, node, wire, None)?),
        }
        Ok(())
    }

    fn entry(&self, bytes: &[u8], name: &str, node: Node<'_>, wire: Wire) -> Result<(String, Value)> {
        let mut key = String::new();
        let mut value = None;
        each_field(bytes, name, |number, written| {
            match number {
                1 => key = written.text(name)?,
                2 => value = Some(self.single(written, name, node, wire, None)?),
                _ => {}
            }
            Ok(())
        })?;
        let value = match value {
            Some(value) => value,
            None => self.single(zero(wire), name, node, wire, None)?,
        };
        Ok((key, value))
    }

    fn single(
        &self,
        written: Written<'_>,
        name: &str,
        node: Node<'_>,
        wire: Wire,
        known: Option<Value>,
    ) -> Result<Value> {
        match wire {
            Wire::Varint => written.varint(name).map(|number| integer(number, node)),
            Wire::Fixed64 => match written {
                Written::Fixed64(bits) => double(f64::from_bits(bits)),
                _ => Err(written.wrong(name)),
            },
            Wire::String => written.text(name).map(Value::String),
            Wire::Bytes => written.bytes(name).map(|bytes| BASE64_STANDARD.encode(bytes).into()),
            Wire::Message if embedded::is_message(node) => embedded::read(written.bytes(name)?, node, self.depth),
            Wire::Message => match (&node.form, known) {
                (Form::List(_), _) => wrapped(written.bytes(name)?),
                (_, Some(Value::Object(known))) => message(written.bytes(name)?, node, known, self.depth),
                _ => message(written.bytes(name)?, node, Map::new(), self.depth),
            },
        }
    }
}

/// What a map's value is where an entry has only a key.
fn zero(wire: Wire) -> Written<'static> {
    match wire {
        Wire::Varint => Written::Varint(0),
        Wire::Fixed64 => Written::Fixed64(0),
        Wire::String | Wire::Bytes | Wire::Message => Written::Bytes(&[]),
    }
}

/// The texts in a message that is only there for them.
fn wrapped(bytes: &[u8]) -> Result<Value> {
    let mut items = Vec::new();
    each_field(bytes, "Items", |number, written| {
        if number == 1 {
            items.push(Value::String(written.text("Items")?));
        }
        Ok(())
    })?;
    Ok(Value::Array(items))
}

fn integer(number: u64, node: Node<'_>) -> Value {
    match (&node.form, node.format.as_deref()) {
        (Form::Boolean, _) => (number != 0).into(),
        // Go keeps the low 32 bits.
        (_, Some("int32")) => (number as i32).into(),
        _ => number.cast_signed().into(),
    }
}

/// A number as Go writes it in JSON: without a fraction where it has none.
pub(super) fn double(number: f64) -> Result<Value> {
    const MOST: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() < MOST {
        return Ok((number as i64).into());
    }
    let unsupported = || DecodeError::Value(format!("json: unsupported value: {number}"));
    Number::from_f64(number).map(Value::Number).ok_or_else(unsupported)
}
