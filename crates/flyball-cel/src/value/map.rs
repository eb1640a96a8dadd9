//! Maps: JSON objects where they are, and maps made during evaluation.

use super::shape::{Shape, ShapeKind};
use super::{List, Text, Value, equal};
use crate::eval::EvalError;
use serde_json::{Map as JsonMap, Value as Json};
use std::collections::HashMap;
use std::sync::Arc;

/// How many entries a map may have before its keys are hashed.
const SMALL: usize = 8;

/// A map or an object.
#[derive(Clone, Debug)]
pub enum Map<'a> {
    /// A JSON object and its shape.
    Json(&'a JsonMap<String, Json>, &'a Shape),
    /// A map made during evaluation.
    Entries(Arc<Entries<'a>>),
    /// An object of the type with this name, whose fields the activation resolves when they are selected.
    Lazy(Arc<str>),
}

/// The entries of a map made during evaluation, in the order in which they came.
#[derive(Clone, Debug, Default)]
pub struct Entries<'a> {
    entries: Vec<(Value<'a>, Value<'a>)>,
    places: HashMap<Key, usize>,
    /// How many of the first entries have a place.
    indexed: usize,
}

/// A key that can be hashed. Integers and unsigned integers of one value are different keys; looking up tries both.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(u64),
    String(Arc<str>),
    Duration(i64),
    Timestamp(i64, u32),
    /// An address, a network or a type, by the name of its type and its own.
    Named(&'static str, String),
    /// A list, a map, an optional or a library's value, by where it is.
    Identity(usize),
    NoOptional,
}

impl Key {
    /// The key that a scalar is.
    pub(crate) fn of(value: &Value<'_>) -> Option<Key> {
        Some(match value {
            Value::Null => Key::Null,
            Value::Bool(value) => Key::Bool(*value),
            Value::Int(value) => Key::Int(*value),
            Value::Uint(value) => Key::Uint(*value),
            Value::Double(value) => Key::Double((value + 0.0).to_bits()),
            Value::String(Text::Shared(text)) => Key::String(text.clone()),
            Value::String(Text::Borrowed(text)) => Key::String((*text).into()),
            _ => return None,
        })
    }

    /// The key that any value is, as Go hashes it: times, addresses and types by value, other values by identity. `None` for
    /// JSON, which is another value each time it is looked at.
    pub(crate) fn of_any(value: &Value<'_>) -> Result<Option<Key>, EvalError> {
        let identity = |pointer: *const ()| Some(Key::Identity(pointer.addr()));
        Ok(match value {
            Value::Duration(span) => Some(Key::Duration(span.nanoseconds())),
            Value::Timestamp(point) => Some(Key::Timestamp(point.seconds(), point.nanoseconds())),
            Value::Type(kind) => Some(Key::Named("type", kind.runtime_name().into())),
            Value::Optional(None) => Some(Key::NoOptional),
            Value::Optional(Some(value)) => identity(Arc::as_ptr(value).cast()),
            Value::List(List::Items(items) | List::Shaped(items, _)) => identity(Arc::as_ptr(items).cast()),
            Value::List(List::Borrowed(items)) if !items.is_empty() => identity(items.as_ptr().cast()),
            Value::Map(Map::Entries(entries)) => identity(Arc::as_ptr(entries).cast()),
            Value::Message(message) => identity(Arc::as_ptr(message).cast()),
            Value::Bytes(_) => return Err(EvalError::internal("runtime error: hash of unhashable type types.Bytes")),
            Value::Opaque(value) => match value.type_of().runtime_name() {
                "kubernetes.Semver" => {
                    return Err(EvalError::internal("runtime error: hash of unhashable type cel.Semver"));
                }
                "net.IP" => Some(Key::Named("net.IP", value.show())),
                "net.CIDR" => Some(Key::Named("net.CIDR", value.show())),
                _ => identity(Arc::as_ptr(value).cast()),
            },
            scalar => Key::of(scalar),
        })
    }
}

fn is_same_key(one: &Value<'_>, other: &Value<'_>) -> bool {
    match (one, other) {
        (Value::Bool(one), Value::Bool(other)) => one == other,
        (Value::Int(one), Value::Int(other)) => one == other,
        (Value::Uint(one), Value::Uint(other)) => one == other,
        (Value::Double(one), Value::Double(other)) => one == other,
        (Value::String(one), Value::String(other)) => **one == **other,
        (Value::Null, Value::Null) => true,
        _ => false,
    }
}

impl<'a> Entries<'a> {
    /// Sets the value of a key.
    pub(crate) fn insert(&mut self, key: Value<'a>, value: Value<'a>) -> Result<(), EvalError> {
        match self.place(&key)? {
            Some(place) => self.entries[place].1 = value,
            None => {
                self.entries.push((key, value));
                self.index();
            }
        }
        Ok(())
    }

    /// Takes a key out.
    pub(crate) fn remove(&mut self, key: &Value<'a>) -> Result<(), EvalError> {
        if let Some(place) = self.place(key)? {
            self.entries.remove(place);
            self.places.clear();
            self.indexed = 0;
            self.index();
        }
        Ok(())
    }

    fn index(&mut self) {
        if self.entries.len() <= SMALL {
            return;
        }
        for (place, (key, _)) in self.entries.iter().enumerate().skip(self.indexed) {
            if let Ok(Some(key)) = Key::of_any(key) {
                self.places.insert(key, place);
            }
        }
        self.indexed = self.entries.len();
    }

    fn place(&self, key: &Value<'_>) -> Result<Option<usize>, EvalError> {
        let is_small = self.entries.len() <= SMALL;
        if is_small && key.is_scalar() {
            return Ok(self.entries.iter().position(|(known, _)| is_same_key(known, key)));
        }
        let Some(key) = Key::of_any(key)? else {
            return Ok(None);
        };
        if !is_small {
            return Ok(self.places.get(&key).copied());
        }
        let is_key = |known: &Value<'_>| matches!(Key::of_any(known), Ok(Some(known)) if known == key);
        Ok(self.entries.iter().position(|(known, _)| is_key(known)))
    }

    /// The value of a key; numbers of one value are one key, whatever their type.
    pub(crate) fn find(&self, key: &Value<'_>) -> Result<Option<Value<'a>>, EvalError> {
        let get = |key: Value<'_>| Ok(self.place(&key)?.map(|place| self.entries[place].1.clone()));
        if let Some(place) = self.place(key)? {
            return Ok(Some(self.entries[place].1.clone()));
        }
        match key {
            Value::Double(number) => {
                let int = equal::lossless_int(*number).map_or(Ok(None), |int| get(Value::Int(int)))?;
                let uint = || equal::lossless_uint(*number).map_or(Ok(None), |uint| get(Value::Uint(uint)));
                int.map_or_else(uint, |found| Ok(Some(found)))
            }
            Value::Int(number) => u64::try_from(*number).map_or(Ok(None), |uint| get(Value::Uint(uint))),
            Value::Uint(number) => i64::try_from(*number).map_or(Ok(None), |int| get(Value::Int(int))),
            _ => Ok(None),
        }
    }
}

impl<'a> Map<'a> {
    /// How many entries there are.
    pub fn len(&self) -> usize {
        match self {
            Map::Json(entries, _) => entries.len(),
            Map::Entries(entries) => entries.entries.len(),
            Map::Lazy(_) => 0,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A map of these entries.
    ///
    /// # Errors
    /// If a key cannot be hashed.
    pub fn of(entries: impl IntoIterator<Item = (Value<'a>, Value<'a>)>) -> Result<Map<'a>, EvalError> {
        let mut map = Entries::default();
        for (key, value) in entries {
            map.insert(key, value)?;
        }
        Ok(Map::Entries(Arc::new(map)))
    }

    /// The value of a key, if there is one.
    ///
    /// # Errors
    /// If the key cannot be one of this map, or if the JSON value does not fit the declared shape.
    pub fn find(&self, key: &Value<'_>) -> Result<Option<Value<'a>>, EvalError> {
        match self {
            Map::Json(entries, shape) => match key {
                Value::String(key) => find_json(entries, shape, key),
                _ if shape.is_any() => Ok(None),
                _ => Err(EvalError::no_such_overload()),
            },
            Map::Entries(entries) => entries.find(key),
            Map::Lazy(_) => Ok(None),
        }
    }

    /// The same for a key that is text.
    pub(crate) fn find_text(&self, key: &str) -> Result<Option<Value<'a>>, EvalError> {
        match self {
            Map::Json(entries, shape) => find_json(entries, shape, key),
            Map::Entries(entries) => entries.find(&Value::text(key)),
            Map::Lazy(_) => Ok(None),
        }
    }

    /// The keys in order.
    pub fn keys(&self) -> Vec<Value<'a>> {
        match self {
            Map::Json(entries, shape) => {
                entries.keys().filter_map(|key| shape.key_name(key)).map(Value::text).collect()
            }
            Map::Entries(entries) => entries.entries.iter().map(|(key, _)| key.clone()).collect(),
            Map::Lazy(_) => Vec::new(),
        }
    }

    /// The entries in order.
    pub fn entries(&self) -> impl Iterator<Item = Result<(Value<'a>, Value<'a>), EvalError>> + '_ {
        let (json, made) = match self {
            Map::Json(entries, shape) => (Some((*entries, *shape)), None),
            Map::Entries(entries) => (None, Some(entries.entries.iter().cloned().map(Ok))),
            Map::Lazy(_) => (None, None),
        };
        let json = json.into_iter().flat_map(|(entries, shape)| {
            entries.keys().filter_map(|key| {
                let name = shape.key_name(key)?;
                let value = find_json(entries, shape, name).transpose()?;
                Some(value.map(|value| (Value::text(name), value)))
            })
        });
        json.chain(made.into_iter().flatten())
    }

    pub(crate) fn shape(&self) -> Option<&'a Shape> {
        match self {
            Map::Json(_, shape) => (!shape.is_any()).then_some(shape),
            Map::Entries(_) | Map::Lazy(_) => None,
        }
    }
}

fn find_json<'a>(
    entries: &'a JsonMap<String, Json>,
    shape: &'a Shape,
    key: &str,
) -> Result<Option<Value<'a>>, EvalError> {
    match &shape.kind {
        ShapeKind::Any => Ok(entries.get(key).map(Value::json)),
        ShapeKind::Map(values) => entries.get(key).map(|value| values.adapt(value)).transpose(),
        ShapeKind::Object(object) => {
            let Some(field) = object.fields.get(key) else {
                return Ok(None);
            };
            match entries.get(&*field.json_name) {
                None | Some(Json::Null) => Ok(None),
                Some(value) => field.shape.adapt(value).map(Some),
            }
        }
        _ => Ok(None),
    }
}

impl Shape {
    /// What a JSON key is called in expressions; keys that are not declared have no name.
    fn key_name<'a>(&'a self, key: &'a str) -> Option<&'a str> {
        match &self.kind {
            ShapeKind::Any | ShapeKind::Map(_) => Some(key),
            ShapeKind::Object(object) => object.cel_name(key),
            _ => None,
        }
    }
}
