//! Values. Text, lists and maps that come from JSON or from the program are looked at where they are, never copied.

pub(crate) mod convert;
pub(crate) mod equal;
pub(crate) mod list;
pub(crate) mod map;
mod message;
pub(crate) mod opaque;
pub(crate) mod order;
pub mod shape;
mod show;
pub(crate) mod time;

pub use list::List;
pub use map::Map;
pub use message::Message;
pub use opaque::Opaque;
pub use time::{Duration, Timestamp};

use crate::eval::EvalError;
use crate::typing::Type;
use serde_json::Value as Json;
use shape::Shape;
use std::ops::Deref;
use std::sync::Arc;

/// How many elements a value may have as JSON.
const MAX_JSON: u32 = 1 << 22;

/// What an expression is worth.
#[derive(Clone, Debug)]
pub enum Value<'a> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    Uint(u64),
    /// A floating point number.
    Double(f64),
    /// Text.
    String(Text<'a>),
    /// Bytes.
    Bytes(Blob<'a>),
    /// A span of time.
    Duration(Duration),
    /// A point in time.
    Timestamp(Timestamp),
    /// A list.
    List(List<'a>),
    /// A map or an object.
    Map(Map<'a>),
    /// A message that the expression made.
    Message(Arc<Message<'a>>),
    /// A value that may be missing.
    Optional(Option<Arc<Value<'a>>>),
    /// A type.
    Type(Arc<Type>),
    /// A value of a library's own type.
    Opaque(Arc<dyn Opaque>),
}

/// Text that is borrowed or shared.
#[derive(Clone, Debug)]
pub enum Text<'a> {
    /// Part of the input or of the program.
    Borrowed(&'a str),
    /// Made during evaluation.
    Shared(Arc<str>),
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Text::Borrowed(text) => text,
            Text::Shared(text) => text,
        }
    }
}

/// Bytes that are borrowed or shared.
#[derive(Clone, Debug)]
pub enum Blob<'a> {
    /// Part of the program.
    Borrowed(&'a [u8]),
    /// Made during evaluation.
    Shared(Arc<[u8]>),
}

impl Deref for Blob<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Blob::Borrowed(bytes) => bytes,
            Blob::Shared(bytes) => bytes,
        }
    }
}

impl<'a> Value<'a> {
    /// JSON as it is: integers that fit are `int`, other numbers `double`, objects are maps.
    pub fn json(json: &'a Json) -> Value<'a> {
        match json {
            Json::Null => Value::Null,
            Json::Bool(value) => Value::Bool(*value),
            Json::Number(number) => match number.as_i64() {
                Some(value) => Value::Int(value),
                None => Value::Double(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(text) => Value::text(text),
            Json::Array(items) => Value::List(List::Json(items, &shape::ANY)),
            Json::Object(entries) => Value::Map(Map::Json(entries, &shape::ANY)),
        }
    }

    /// JSON of a declared shape: what does not fit the shape is an error once it is looked at.
    ///
    /// # Errors
    /// If the outermost value does not fit.
    pub fn shaped(json: &'a Json, shape: &'a Shape) -> Result<Value<'a>, EvalError> {
        shape.adapt(json)
    }

    /// Text that is borrowed.
    pub fn text(text: &'a str) -> Value<'a> {
        Value::String(Text::Borrowed(text))
    }

    /// Text that is made here.
    pub fn string(text: impl Into<Arc<str>>) -> Value<'a> {
        Value::String(Text::Shared(text.into()))
    }

    /// Bytes that are made here.
    pub fn bytes(bytes: impl Into<Arc<[u8]>>) -> Value<'a> {
        Value::Bytes(Blob::Shared(bytes.into()))
    }

    /// A list of these values.
    pub fn list(items: Vec<Value<'a>>) -> Value<'a> {
        Value::List(List::Items(Arc::new(items)))
    }

    /// An object of this type whose fields are resolved when they are selected, by [`Activation::resolve_field`].
    ///
    /// [`Activation::resolve_field`]: crate::Activation::resolve_field
    pub fn lazy(type_name: impl Into<Arc<str>>) -> Value<'a> {
        Value::Map(Map::Lazy(type_name.into()))
    }

    /// An optional that has a value.
    pub fn some(value: Value<'a>) -> Value<'a> {
        Value::Optional(Some(Arc::new(value)))
    }

    /// A value of a library's type.
    pub fn opaque(value: impl Opaque) -> Value<'a> {
        Value::Opaque(Arc::new(value))
    }

    /// The value as a library's type, if it is that one.
    pub fn downcast<T: Opaque>(&self) -> Option<&T> {
        match self {
            Value::Opaque(value) => {
                let any: &dyn std::any::Any = &**value;
                any.downcast_ref()
            }
            _ => None,
        }
    }

    /// The type of the value; lists and maps do not tell the types of what they hold.
    pub fn type_of(&self) -> Type {
        match self {
            Value::Null => Type::Null,
            Value::Bool(_) => Type::Bool,
            Value::Int(_) => Type::Int,
            Value::Uint(_) => Type::Uint,
            Value::Double(_) => Type::Double,
            Value::String(_) => Type::String,
            Value::Bytes(_) => Type::Bytes,
            Value::Duration(_) => Type::Duration,
            Value::Timestamp(_) => Type::Timestamp,
            Value::List(_) => Type::list(Type::Dyn),
            Value::Map(Map::Lazy(name)) => Type::Struct(name.clone()),
            Value::Map(_) => Type::map(Type::Dyn, Type::Dyn),
            Value::Message(message) => Type::Struct(message.shared_type_name()),
            Value::Optional(_) => Type::optional(Type::Dyn),
            Value::Type(_) => Type::Type(None),
            Value::Opaque(value) => value.type_of(),
        }
    }

    /// How large the value is: code points, bytes, elements or entries.
    pub fn size(&self) -> Option<usize> {
        match self {
            Value::String(text) => Some(code_points(text)),
            Value::Bytes(bytes) => Some(bytes.len()),
            Value::List(list) => Some(list.len()),
            Value::Map(map) => Some(map.len()),
            Value::Opaque(value) => value.size(),
            _ => None,
        }
    }

    /// The text, if it is text.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// What an optional holds, unless that is an error.
    pub(crate) fn held(&self) -> Result<Value<'a>, EvalError> {
        match self.downcast::<opaque::Failed>() {
            Some(failed) => Err(failed.0.clone()),
            None => Ok(self.clone()),
        }
    }

    /// Whether it is a key by its value alone.
    pub(crate) fn is_scalar(&self) -> bool {
        self.is_qualifier() || matches!(self, Value::Null)
    }

    /// Whether it can select from a list or a map.
    pub(crate) fn is_qualifier(&self) -> bool {
        use Value::{Bool, Double, Int, String, Uint};
        matches!(self, String(_) | Int(_) | Uint(_) | Bool(_) | Double(_))
    }

    /// The same value, borrowing from where it is kept.
    pub(crate) fn borrow(&'a self) -> Value<'a> {
        match self {
            Value::String(text) => Value::text(text),
            Value::Bytes(bytes) => Value::Bytes(Blob::Borrowed(bytes)),
            Value::List(List::Items(items)) => Value::List(List::Borrowed(items)),
            other => other.clone(),
        }
    }

    /// Whether it is the empty or zero value of its type.
    pub(crate) fn is_zero(&self) -> bool {
        match self {
            Value::Null => true,
            Value::Bool(value) => !value,
            Value::Int(value) => *value == 0,
            Value::Uint(value) => *value == 0,
            Value::Double(value) => *value == 0.0,
            Value::String(text) => text.is_empty(),
            Value::Bytes(bytes) => bytes.is_empty(),
            Value::Duration(span) => span.nanoseconds() == 0,
            Value::Timestamp(point) => point.is_zero(),
            // Upstream's lists and maps of a declared shape have no zero value.
            Value::List(list) => list.is_empty() && list.shape().is_none(),
            Value::Map(map) => map.is_empty() && map.shape().is_none(),
            Value::Message(message) => message.is_empty(),
            Value::Optional(_) | Value::Type(_) | Value::Opaque(_) => false,
        }
    }

    /// The value as JSON, as far as JSON has one: bytes in base64, times as text. `None` for types and library values, and for
    /// values that share so many parts that their JSON would be too large.
    pub fn to_json(&self) -> Option<Json> {
        self.to_json_within(&mut MAX_JSON.clone())
    }

    /// The value as JSON by the rules of protocol buffers, which admission's patches follow: integers beyond 2^53 are text.
    ///
    /// # Errors
    /// What has no JSON, in cel-go's words.
    pub fn to_protobuf_json(&self) -> Result<Json, EvalError> {
        let converted = crate::library::well_known::json_value(self, &mut u64::from(MAX_JSON))?;
        let mut json = converted.to_json().ok_or_else(EvalError::cost_limit)?;
        whole_numbers(&mut json);
        Ok(json)
    }

    fn to_json_within(&self, left: &mut u32) -> Option<Json> {
        *left = left.checked_sub(1)?;
        Some(match self {
            Value::Null => Json::Null,
            Value::Bool(value) => Json::Bool(*value),
            Value::Int(value) => Json::from(*value),
            Value::Uint(value) => Json::from(*value),
            Value::Double(value) => serde_json::Number::from_f64(*value).map_or(Json::Null, Json::Number),
            Value::String(text) => Json::String(text.to_string()),
            Value::Bytes(_) | Value::Duration(_) | Value::Timestamp(_) => Json::String(convert::to_json_text(self)),
            Value::List(list) => {
                let items = list.iter().map(|item| item.ok()?.to_json_within(left));
                Json::Array(items.collect::<Option<Vec<Json>>>()?)
            }
            Value::Map(map) => {
                let entries = map.entries().map(|entry| {
                    let (key, value) = entry.ok()?;
                    Some((convert::key_text(&key)?, value.to_json_within(left)?))
                });
                Json::Object(entries.collect::<Option<serde_json::Map<String, Json>>>()?)
            }
            Value::Message(message) => {
                let fields = message.fields().map(|(name, value)| Some((name.to_owned(), value.to_json_within(left)?)));
                Json::Object(fields.collect::<Option<serde_json::Map<String, Json>>>()?)
            }
            Value::Optional(Some(value)) => value.to_json_within(left)?,
            Value::Optional(None) | Value::Type(_) | Value::Opaque(_) => return None,
        })
    }
}

/// Writes floating point numbers that are whole as integers.
fn whole_numbers(json: &mut Json) {
    match json {
        Json::Number(number) => {
            if let Some(whole) = number.as_f64().filter(|_| number.is_f64()).and_then(equal::lossless_int) {
                *json = Json::from(whole);
            }
        }
        Json::Array(items) => items.iter_mut().for_each(whole_numbers),
        Json::Object(entries) => entries.values_mut().for_each(whole_numbers),
        _ => {}
    }
}

/// Equality as the language has it; two values whose comparison fails are not equal.
impl PartialEq for Value<'_> {
    fn eq(&self, other: &Value<'_>) -> bool {
        equal::equal(self, other).unwrap_or(false)
    }
}

/// How many code points a text has.
pub(crate) fn code_points(text: &str) -> usize {
    if text.is_ascii() {
        text.len()
    } else {
        text.chars().count()
    }
}

impl From<bool> for Value<'_> {
    fn from(value: bool) -> Self {
        Value::Bool(value)
    }
}

impl From<i64> for Value<'_> {
    fn from(value: i64) -> Self {
        Value::Int(value)
    }
}
