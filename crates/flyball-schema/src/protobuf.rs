//! Protobuf to JSON and back for built-in kinds, driven by the table of kinds. The bytes are those that Go's generated
//! code writes: fields by number, what is no pointer always, maps by key.

mod decode;
mod embedded;
mod encode;
mod wire;

use crate::kinds;
use crate::schema::{Form, Node, Wire};
use serde_json::Value;

/// What every object in protobuf begins with.
// apimachinery/pkg/runtime/serializer/protobuf/protobuf.go, protoEncodingPrefix
pub const PREFIX: [u8; 4] = *b"k8s\0";

/// Why bytes are no object, in the words of Go's generated code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// There are no bytes.
    #[error("empty data")]
    Empty,
    /// There is a prefix and nothing behind it.
    #[error("empty body")]
    EmptyBody,
    /// It does not begin as an object in protobuf does.
    #[error("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")]
    Prefix,
    /// It ends in the middle of a value.
    #[error("unexpected EOF")]
    End,
    /// A number has more than 64 bits.
    #[error("proto: integer overflow")]
    Overflow,
    /// Something is longer than anything can be.
    #[error("proto: negative length found during unmarshaling")]
    Length,
    /// A wire type that protobuf does not have.
    #[error("proto: illegal wireType {0}")]
    WireType(u8),
    /// A group ends that never began.
    #[error("proto: {0}: wiretype end group for non-group")]
    EndGroup(String),
    /// A group ends that never began, in something unknown.
    #[error("proto: unexpected end of group")]
    EndOfGroup,
    /// A field number that protobuf does not have.
    #[error("proto: {message}: illegal tag {number} (wire type {tag})")]
    Tag {
        /// The type.
        message: String,
        /// The field's number.
        number: i32,
        /// The whole tag.
        tag: u64,
    },
    /// A field is there in another way than its type is written.
    #[error("proto: wrong wireType = {found} for field {field}")]
    WrongWireType {
        /// How it is written.
        found: u8,
        /// Which field.
        field: String,
    },
    /// Messages lie in each other deeper than anything is read.
    #[error("exceeded max depth")]
    Depth,
    /// A value is none of its type.
    #[error("{0}")]
    Value(String),
}

/// A value that its type has no place for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} does not fit its type")]
pub struct EncodeError {
    /// The field's name.
    pub field: String,
}

/// An object in protobuf that has not been looked into: its type, and its bytes.
// apimachinery/pkg/runtime/types.go, Unknown
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// What it says its `apiVersion` is; empty where it does not say.
    pub api_version: String,
    /// What it says its `kind` is; empty where it does not say.
    pub kind: String,
    /// Its fields.
    pub raw: &'a [u8],
}

impl<'a> Envelope<'a> {
    /// Reads what stands around an object.
    pub fn read(bytes: &'a [u8]) -> Result<Envelope<'a>, DecodeError> {
        let message = match bytes.strip_prefix(&PREFIX) {
            _ if bytes.is_empty() => return Err(DecodeError::Empty),
            None => return Err(DecodeError::Prefix),
            Some([]) => return Err(DecodeError::EmptyBody),
            Some(message) => message,
        };
        let mut envelope = Envelope::default();
        wire::each_field(message, "Unknown", |number, field| {
            match number {
                1 => wire::each_field(field.bytes("TypeMeta")?, "TypeMeta", |number, field| {
                    match number {
                        1 => envelope.api_version = field.text("APIVersion")?,
                        2 => envelope.kind = field.text("Kind")?,
                        _ => {}
                    }
                    Ok(())
                })?,
                2 => envelope.raw = field.bytes("Raw")?,
                _ => {}
            }
            Ok(())
        })?;
        Ok(envelope)
    }
}

/// Makes a value of an object's fields; `apiVersion` and `kind` stand in its [`Envelope`].
pub fn decode(raw: &[u8], node: Node<'_>) -> Result<Value, DecodeError> {
    decode::object(raw, node)
}

/// The fields of an object; nothing stands around them.
pub fn encode(value: &Value, node: Node<'_>) -> Result<Vec<u8>, EncodeError> {
    let mut out = Vec::with_capacity(512);
    encode::message(&mut out, value, node)?;
    Ok(out)
}

/// Whatever says of itself what it is, as a client reads it: prefix, type and fields.
pub fn encode_object(value: &Value) -> Result<Vec<u8>, EncodeError> {
    let text = |field: &str| value[field].as_str().unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let node = kinds::builtin().type_of(api_version, kind);
    let node = node.ok_or_else(|| EncodeError { field: format!("{api_version} {kind}") })?;
    Ok(wrap(api_version, kind, &encode(value, node)?))
}

/// Reads whatever says of itself what it is.
pub fn decode_object(bytes: &[u8]) -> Result<Value, DecodeError> {
    let Envelope { api_version, kind, raw } = Envelope::read(bytes)?;
    let unknown = || DecodeError::Value(format!("no kind {kind:?} is registered for version {api_version:?}"));
    let node = kinds::builtin().type_of(&api_version, &kind).ok_or_else(unknown)?;
    let mut value = decode(raw, node)?;
    value["apiVersion"] = api_version.into();
    value["kind"] = kind.into();
    Ok(value)
}

/// Reads the events of a watch: the type of each, and its object as bytes. What is cut off is left out.
pub fn decode_events(mut bytes: &[u8]) -> Result<Vec<(String, &[u8])>, DecodeError> {
    let mut events = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk::<4>() {
        let Some((frame, rest)) = rest.split_at_checked(u32::from_be_bytes(*length) as usize) else {
            break;
        };
        bytes = rest;
        let (mut change, mut object): (String, &[u8]) = (String::new(), &[]);
        wire::each_field(frame, "WatchEvent", |number, field| {
            match number {
                1 => change = field.text("Type")?,
                2 => wire::each_field(field.bytes("Object")?, "RawExtension", |number, field| {
                    if number == 1 {
                        object = field.bytes("Raw")?;
                    }
                    Ok(())
                })?,
                _ => {}
            }
            Ok(())
        })?;
        events.push((change, object));
    }
    Ok(events)
}

/// A list of objects as a client reads it, made of its items one by one.
pub fn encode_list(
    (api_version, kind): (&str, &str),
    metadata: &Value,
    items: impl Iterator<Item = Value>,
    node: Node<'_>,
) -> Result<Vec<u8>, EncodeError> {
    let meta = kinds::builtin().schema("io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta");
    let mut raw = Vec::with_capacity(4096);
    wire::delimited(&mut raw, 1, |raw| encode::message(raw, metadata, meta.expect("ListMeta is in the table")))?;
    for item in items {
        wire::delimited(&mut raw, 2, |raw| encode::message(raw, &item, node))?;
    }
    Ok(wrap(api_version, kind, &raw))
}

/// One event of a watch, framed: its length in four bytes, its type, and the object in its own envelope.
// apimachinery/pkg/apis/meta/v1/watch.go, WatchEvent; runtime/serializer/protobuf, LengthDelimitedFramer
pub fn encode_event(change: &str, object: &[u8]) -> Vec<u8> {
    let mut out = vec![0; 4];
    wire::put_bytes(&mut out, 1, change.as_bytes());
    let raw: Result<(), EncodeError> = wire::delimited(&mut out, 2, |out| {
        wire::put_bytes(out, 1, object);
        Ok(())
    });
    raw.expect("bytes always fit");
    let length = u32::try_from(out.len() - 4).unwrap_or(u32::MAX);
    out[..4].copy_from_slice(&length.to_be_bytes());
    out
}

/// Puts the prefix and the type around an object's fields.
pub fn wrap(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(raw.len() + api_version.len() + kind.len() + 32);
    out.extend_from_slice(&PREFIX);
    let typed: Result<(), EncodeError> = wire::delimited(&mut out, 1, |out| {
        wire::put_bytes(out, 1, api_version.as_bytes());
        wire::put_bytes(out, 2, kind.as_bytes());
        Ok(())
    });
    typed.expect("texts always fit");
    wire::put_bytes(&mut out, 2, raw);
    wire::put_bytes(&mut out, 3, b"");
    wire::put_bytes(&mut out, 4, b"");
    out
}

/// Whether a list has a message around its items: `UserInfo.extra`'s values and `APIResource.verbs`.
fn is_wrapped(items: Node<'_>, wire: Wire) -> bool {
    wire == Wire::Message && matches!(items.form, Form::String) && !embedded::is_message(items)
}

/// Whether a value is what Go has where nothing is given.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}
