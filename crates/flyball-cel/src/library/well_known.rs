//! The messages of `google.protobuf` that cel-go always knows. Their literals are worth values of the language: a wrapper what
//! it wraps, `Struct` a map, `ListValue` a list, `Value` any JSON. `Any`, which packs encoded messages, is refused by name.
// cel-go: common/types/provider.go, common/types/pb/type.go, and ConvertToNative of each type

use crate::env::ObjectType;
use crate::eval::EvalError;
use crate::typing::Type;
use crate::value::map::Entries;
use crate::value::{Duration, List, Map, Message, Timestamp, Value, convert};
use std::sync::Arc;

/// The message that is known and cannot be made.
pub(crate) const ANY: &str = "google.protobuf.Any";
/// The only value of an enum that cel-go knows, which is zero.
pub(crate) const NULL_VALUE: &str = "google.protobuf.NullValue.NULL_VALUE";

/// The greatest integer that JSON's numbers hold exactly.
const MAX_SAFE: u64 = (1 << 53) - 1;

/// A well-known message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WellKnown {
    Duration,
    Timestamp,
    Empty,
    Struct,
    Value,
    ListValue,
    /// A wrapper of this scalar.
    Wrapper(Native),
}

const MESSAGES: [(&str, WellKnown); 15] = [
    ("BoolValue", WellKnown::Wrapper(Native::Bool)),
    ("BytesValue", WellKnown::Wrapper(Native::Bytes)),
    ("DoubleValue", WellKnown::Wrapper(Native::Double)),
    ("Duration", WellKnown::Duration),
    ("Empty", WellKnown::Empty),
    ("FloatValue", WellKnown::Wrapper(Native::Float)),
    ("Int32Value", WellKnown::Wrapper(Native::Int32)),
    ("Int64Value", WellKnown::Wrapper(Native::Int64)),
    ("ListValue", WellKnown::ListValue),
    ("StringValue", WellKnown::Wrapper(Native::String)),
    ("Struct", WellKnown::Struct),
    ("Timestamp", WellKnown::Timestamp),
    ("UInt32Value", WellKnown::Wrapper(Native::Uint32)),
    ("UInt64Value", WellKnown::Wrapper(Native::Uint64)),
    ("Value", WellKnown::Value),
];

/// What a field of a message is in Go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Native {
    Bool,
    Int32,
    Int64,
    Uint32,
    Uint64,
    Float,
    Double,
    String,
    Bytes,
    Enum,
    /// An object of JSON values in a field of its own message.
    JsonObject,
    /// A list of JSON values in a field of its own message.
    JsonList,
    /// A map field of JSON values.
    JsonEntries,
    /// A repeated field of JSON values.
    JsonItems,
}

impl WellKnown {
    /// The message of this name.
    pub(crate) fn named(name: &str) -> Option<WellKnown> {
        let name = name.strip_prefix("google.protobuf.")?;
        MESSAGES.iter().find(|(known, _)| *known == name).map(|(_, message)| *message)
    }

    fn name(self) -> &'static str {
        MESSAGES.iter().find(|(_, message)| *message == self).map_or("", |(name, _)| name)
    }

    /// The type of its literals.
    pub(crate) fn result(self) -> Type {
        match self {
            WellKnown::Duration => Type::Duration,
            WellKnown::Timestamp => Type::Timestamp,
            WellKnown::Empty => Type::object("google.protobuf.Empty"),
            WellKnown::Struct => Type::map(Type::String, Type::Dyn),
            WellKnown::Value => Type::Dyn,
            WellKnown::ListValue => Type::list(Type::Dyn),
            WellKnown::Wrapper(native) => Type::Nullable(Arc::new(native.checked())),
        }
    }

    /// Whether its name is a type at run time; the others are names for types that have another name.
    pub(crate) fn is_type(self) -> bool {
        matches!(self, WellKnown::Duration | WellKnown::Timestamp | WellKnown::Empty)
    }

    /// The type of a field.
    pub(crate) fn field(self, name: &str) -> Option<Type> {
        self.native(name).map(Native::checked)
    }

    fn native(self, field: &str) -> Option<Native> {
        Some(match (self, field) {
            (WellKnown::Duration | WellKnown::Timestamp, "seconds") => Native::Int64,
            (WellKnown::Duration | WellKnown::Timestamp, "nanos") => Native::Int32,
            (WellKnown::Struct, "fields") => Native::JsonEntries,
            (WellKnown::ListValue, "values") => Native::JsonItems,
            (WellKnown::Wrapper(native), "value") => native,
            (WellKnown::Value, "null_value") => Native::Enum,
            (WellKnown::Value, "number_value") => Native::Double,
            (WellKnown::Value, "string_value") => Native::String,
            (WellKnown::Value, "bool_value") => Native::Bool,
            (WellKnown::Value, "struct_value") => Native::JsonObject,
            (WellKnown::Value, "list_value") => Native::JsonList,
            _ => return None,
        })
    }

    /// What a literal with these fields is worth. `left` is how many elements may still be copied.
    pub(crate) fn make<'a>(self, fields: Vec<(Arc<str>, Value<'a>)>, left: &mut u64) -> Result<Value<'a>, EvalError> {
        let mut made = Vec::with_capacity(fields.len());
        for (field, value) in fields {
            let Some(native) = self.native(&field) else { continue };
            made.push((field.clone(), self.set(&field, native, &value, left)?));
        }
        let number = |name: &str| match made.iter().find(|(field, _)| &**field == name) {
            Some((_, Value::Int(number))) => *number,
            _ => 0,
        };
        Ok(match self {
            WellKnown::Duration => Value::Duration(Duration::from_parts(number("seconds"), number("nanos"))),
            WellKnown::Timestamp => Value::Timestamp(Timestamp::from_parts(number("seconds"), number("nanos"))),
            WellKnown::Empty => {
                let message =
                    Message::new("google.protobuf.Empty".into(), Some(Arc::new(ObjectType::default())), made)?;
                Value::Message(Arc::new(message))
            }
            WellKnown::Value => match made.pop() {
                Some((field, value)) if &*field != "null_value" => value,
                _ => Value::Null,
            },
            WellKnown::Struct => made.pop().map_or_else(empty_map, |(_, value)| value),
            WellKnown::ListValue => made.pop().map_or_else(|| Value::list(Vec::new()), |(_, value)| value),
            WellKnown::Wrapper(native) => made.pop().map_or_else(|| native.zero(), |(_, value)| value),
        })
    }

    /// The value of a field, converted to what the message holds.
    fn set<'a>(self, field: &str, native: Native, value: &Value<'a>, left: &mut u64) -> Result<Value<'a>, EvalError> {
        let place = || format!("google.protobuf.{}.{field}", self.name());
        let takes = match native {
            Native::JsonEntries => matches!(value, Value::Map(_)),
            Native::JsonItems => matches!(value, Value::List(_)),
            _ => true,
        };
        if !takes {
            let found = shown_type(value);
            return Err(EvalError::new(format!("unsupported field type for {}: {found}", place())));
        }
        native.convert(value, left).map_err(|error| match error.is_cancelled() {
            true => error,
            false => EvalError::new(format!("field type conversion error for {} value type: {error}", place())),
        })
    }
}

impl Native {
    /// The type that the checker wants.
    fn checked(self) -> Type {
        match self {
            Native::Bool => Type::Bool,
            Native::Int32 | Native::Int64 | Native::Enum => Type::Int,
            Native::Uint32 | Native::Uint64 => Type::Uint,
            Native::Float | Native::Double => Type::Double,
            Native::String => Type::String,
            Native::Bytes => Type::Bytes,
            Native::JsonObject | Native::JsonEntries => Type::map(Type::String, Type::Dyn),
            Native::JsonList | Native::JsonItems => Type::list(Type::Dyn),
        }
    }

    fn zero<'a>(self) -> Value<'a> {
        match self {
            Native::Bool => Value::Bool(false),
            Native::Int32 | Native::Int64 => Value::Int(0),
            Native::Uint32 | Native::Uint64 => Value::Uint(0),
            Native::Float | Native::Double => Value::Double(0.0),
            Native::String => Value::text(""),
            Native::Bytes => Value::bytes([]),
            _ => Value::Null,
        }
    }

    /// The name of the type in Go, which messages show.
    fn go_name(self) -> &'static str {
        match self {
            Native::Bool => "bool",
            Native::Int32 => "int32",
            Native::Int64 => "int64",
            Native::Uint32 => "uint32",
            Native::Uint64 => "uint64",
            Native::Float => "float32",
            Native::Double => "float64",
            Native::String => "string",
            Native::Bytes => "[]uint8",
            Native::Enum => "protoreflect.EnumNumber",
            Native::JsonObject | Native::JsonEntries => "*structpb.Struct",
            Native::JsonList | Native::JsonItems => "*structpb.ListValue",
        }
    }

    fn convert<'a>(self, value: &Value<'a>, left: &mut u64) -> Result<Value<'a>, EvalError> {
        match (self, value) {
            (_, Value::Optional(Some(value))) => self.convert(&value.held()?, left),
            (_, Value::Optional(None)) => Err(EvalError::new("optional.none() dereference")),
            (Native::Bool, Value::Bool(_))
            | (Native::Int64, Value::Int(_))
            | (Native::Uint64, Value::Uint(_))
            | (Native::Double, Value::Double(_))
            | (Native::String, Value::String(_))
            | (Native::Bytes, Value::Bytes(_)) => Ok(value.clone()),
            (Native::Int32 | Native::Enum, Value::Int(number)) => match i32::try_from(*number) {
                Ok(_) => Ok(value.clone()),
                Err(_) => Err(EvalError::new("integer overflow")),
            },
            (Native::Uint32, Value::Uint(number)) => match u32::try_from(*number) {
                Ok(_) => Ok(value.clone()),
                Err(_) => Err(EvalError::new("unsigned integer overflow")),
            },
            (Native::Float, Value::Double(number)) => Ok(Value::Double(f64::from(*number as f32))),
            (Native::String, Value::Opaque(opaque)) if is_text(opaque.type_of().runtime_name()) => {
                Ok(Value::string(opaque.show()))
            }
            (Native::Bytes, Value::List(list)) => bytes(list),
            (Native::JsonEntries, Value::Map(map)) => json_entries(map, left),
            (Native::JsonItems, Value::List(list)) => json_items(list, left),
            (Native::JsonObject, Value::Map(map)) if map.shape().is_none() => json_entries(map, left),
            (Native::JsonList, Value::List(list)) if list.shape().is_none() => json_items(list, left),
            (Native::JsonList, Value::Map(map)) if map.is_empty() => Ok(Value::list(Vec::new())),
            (native, other) => Err(refusal(other, native.go_name())),
        }
    }
}

fn empty_map<'a>() -> Value<'a> {
    Value::Map(Map::Entries(Arc::new(Entries::default())))
}

/// Bytes that are written as a list of small numbers.
fn bytes<'a>(list: &List<'a>) -> Result<Value<'a>, EvalError> {
    let byte = |item: Result<Value<'a>, EvalError>| match item? {
        Value::Uint(number) => u8::try_from(number).map_err(|_| EvalError::new("unsigned integer overflow")),
        other => Err(refusal(&other, "uint8")),
    };
    Ok(Value::bytes(list.iter().map(byte).collect::<Result<Vec<u8>, EvalError>>()?))
}

/// A value as `google.protobuf.Value` holds it: numbers as `double`, or as text where that is not exact; bytes and times as
/// text; maps with text as keys. `left` is how many elements may still be copied.
pub(crate) fn json_value<'a>(value: &Value<'a>, left: &mut u64) -> Result<Value<'a>, EvalError> {
    *left = left.checked_sub(1).ok_or_else(EvalError::cost_limit)?;
    Ok(match value {
        Value::Null | Value::Bool(_) | Value::Double(_) | Value::String(_) => value.clone(),
        Value::Int(number) if number.unsigned_abs() <= MAX_SAFE => Value::Double(*number as f64),
        Value::Uint(number) if *number <= MAX_SAFE => Value::Double(*number as f64),
        Value::Int(number) => Value::string(number.to_string()),
        Value::Uint(number) => Value::string(number.to_string()),
        Value::Bytes(_) | Value::Duration(_) | Value::Timestamp(_) => Value::string(convert::to_json_text(value)),
        Value::List(list) if list.shape().is_none() => json_items(list, left)?,
        Value::Map(map) if map.shape().is_none() => json_entries(map, left)?,
        Value::Message(message) => {
            let fields = message.fields().map(|(name, value)| match value {
                Value::Duration(_) | Value::Timestamp(_) => {
                    Err(EvalError::new(format!("proto: invalid type: {}", value.native_type())))
                }
                value => Ok((Value::string(name), json_value(value, left)?)),
            });
            Value::Map(Map::of(fields.collect::<Result<Vec<_>, EvalError>>()?)?)
        }
        Value::Optional(Some(value)) => json_value(&value.held()?, left)?,
        Value::Optional(None) => return Err(EvalError::new("optional.none() dereference")),
        Value::List(_) | Value::Map(_) | Value::Type(_) | Value::Opaque(_) => {
            return Err(refusal(value, "*structpb.Value"));
        }
    })
}

fn json_items<'a>(list: &List<'a>, left: &mut u64) -> Result<Value<'a>, EvalError> {
    let items = list.iter().map(|item| json_value(&item?, left));
    Ok(Value::list(items.collect::<Result<Vec<Value<'a>>, EvalError>>()?))
}

fn json_entries<'a>(map: &Map<'a>, left: &mut u64) -> Result<Value<'a>, EvalError> {
    let entries = map.entries().map(|entry| {
        let (key, value) = entry?;
        match key {
            Value::String(_) => Ok((key, json_value(&value, left)?)),
            other => Err(refusal(&other, "string")),
        }
    });
    Ok(Value::Map(Map::of(entries.collect::<Result<Vec<_>, EvalError>>()?)?))
}

/// Whether values of the type are converted to text.
fn is_text(name: &str) -> bool {
    matches!(
        name,
        "net.IP" | "net.CIDR" | "kubernetes.Quantity" | "kubernetes.URL" | "kubernetes.Semver"
    )
}

/// Why a value is not converted; each type of cel-go has words of its own.
fn refusal(value: &Value<'_>, to: &str) -> EvalError {
    let named = |name: &str| format!("type conversion error from {name} to '{to}'");
    EvalError::new(match value {
        Value::Null => named("'null_type'"),
        Value::Bool(_) => named("bool"),
        Value::Int(_) => format!("unsupported type conversion from 'int' to {to}"),
        Value::Uint(_) => format!("unsupported type conversion from 'uint' to {to}"),
        Value::Double(_) => named("Double"),
        Value::String(_) => format!("unsupported native conversion from string to '{to}'"),
        Value::Bytes(_) => named("Bytes"),
        Value::Duration(_) => named("'Duration'"),
        Value::Timestamp(_) => named("'Timestamp'"),
        // Kubernetes' lists and maps of a declared shape are not converted at all.
        Value::List(list) if list.shape().is_some() => named("'list(dyn)'"),
        Value::Map(map) if map.shape().is_some() => named("'map(dyn, dyn)'"),
        Value::List(_) => named("list"),
        Value::Map(_) => named("map"),
        Value::Message(_) => named("'*dynamicpb.Message'"),
        Value::Optional(_) => "optional.none() dereference".into(),
        Value::Type(_) => "type conversion not supported for 'type'".into(),
        Value::Opaque(opaque) => {
            let kind = opaque.type_of();
            let name = match kind.runtime_name() {
                "kubernetes.NamedFormat" => "Format",
                name => name.rsplit_once('.').map_or(name, |(_, name)| name),
            };
            named(&format!("'{name}'"))
        }
    })
}

/// The type of a value as cel-go shows it at run time.
fn shown_type(value: &Value<'_>) -> String {
    match value {
        Value::List(_) => "list(dyn)".into(),
        Value::Map(_) => "map(dyn, dyn)".into(),
        other => other.type_of().runtime_name().into(),
    }
}
