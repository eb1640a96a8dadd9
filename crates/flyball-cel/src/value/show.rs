//! Values as Go's `%v` shows them in messages, and in the language's own notation.

use super::{Value, convert};
use crate::library::strings::go_quote;
use std::fmt::{self, Display};

/// How many elements are shown at most; the others are dots. Values that share parts can be larger than memory.
const MAX_SHOWN: u32 = 1 << 16;

impl Value<'_> {
    /// The value in the language's notation: `"text"`, `3u`, `duration("1s")`. Entries of maps are in the order of their keys.
    pub fn notation(&self) -> String {
        self.notation_within(&mut MAX_SHOWN.clone())
    }

    fn notation_within(&self, left: &mut u32) -> String {
        let Some(less) = left.checked_sub(1) else {
            return "…".into();
        };
        *left = less;
        match self {
            Value::Null => "null".into(),
            Value::Uint(number) => format!("{number}u"),
            Value::Double(number) if number.is_nan() => "double(\"NaN\")".into(),
            Value::Double(number) if number.is_infinite() => {
                format!("double(\"{}Infinity\")", if *number < 0.0 { "-" } else { "" })
            }
            Value::Double(number) => {
                let text = number.to_string();
                if text.contains('.') { text } else { format!("{text}.0") }
            }
            Value::String(text) => go_quote(text),
            Value::Bytes(bytes) => {
                let octets: Vec<String> = bytes.iter().map(|byte| format!("\\{byte:03o}")).collect();
                format!("b\"{}\"", octets.concat())
            }
            Value::Duration(span) => format!("duration(\"{span}\")"),
            Value::Timestamp(point) => format!("timestamp(\"{}\")", point.in_utc()),
            Value::List(list) => {
                let items: Vec<String> = list.iter().flatten().map(|item| item.notation_within(left)).collect();
                format!("[{}]", items.join(", "))
            }
            Value::Map(map) => {
                let mut entries: Vec<String> = Vec::with_capacity(map.len());
                for (key, value) in map.entries().flatten() {
                    entries.push(format!("{}: {}", key.notation_within(left), value.notation_within(left)));
                }
                entries.sort();
                format!("{{{}}}", entries.join(", "))
            }
            Value::Optional(Some(value)) => format!("optional.of({})", value.notation_within(left)),
            other => other.to_string(),
        }
    }

    /// The name of cel-go's implementation of the type, which some of its messages show.
    pub(crate) fn go_type(&self) -> &'static str {
        match self {
            Value::Null => "types.Null",
            Value::Bool(_) => "types.Bool",
            Value::Int(_) => "types.Int",
            Value::Uint(_) => "types.Uint",
            Value::Double(_) => "types.Double",
            Value::String(_) => "types.String",
            Value::Bytes(_) => "types.Bytes",
            Value::Duration(_) => "types.Duration",
            Value::Timestamp(_) => "types.Timestamp",
            Value::List(_) => "*types.baseList",
            Value::Map(_) => "*types.baseMap",
            Value::Message(message) if message.is_open() => "*dynamic.ObjectVal",
            Value::Message(_) => "*types.protoObj",
            Value::Optional(_) => "*types.Optional",
            Value::Type(_) => "*types.Type",
            Value::Opaque(value) => match value.type_of().runtime_name() {
                "kubernetes.Quantity" => "cel.Quantity",
                "kubernetes.Semver" => "cel.Semver",
                "kubernetes.URL" => "cel.URL",
                "kubernetes.NamedFormat" => "cel.Format",
                "net.IP" => "cel.IP",
                "net.CIDR" => "cel.CIDR",
                _ => "ref.Val",
            },
        }
    }

    /// The name of the Go type in which cel-go keeps the value.
    pub(crate) fn native_type(&self) -> &'static str {
        match self {
            Value::Null => "structpb.NullValue",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int64",
            Value::Uint(_) => "uint64",
            Value::Double(_) => "float64",
            Value::String(_) | Value::Type(_) => "string",
            Value::Bytes(_) => "[]uint8",
            Value::Duration(_) => "time.Duration",
            Value::Timestamp(_) => "time.Time",
            Value::List(_) => "[]ref.Val",
            Value::Map(_) => "map[ref.Val]ref.Val",
            Value::Message(_) => "map[string]interface {}",
            Value::Optional(_) | Value::Opaque(_) => "ref.Val",
        }
    }

    fn show(&self, f: &mut fmt::Formatter<'_>, left: &mut u32) -> fmt::Result {
        let Some(less) = left.checked_sub(1) else {
            return f.write_str("…");
        };
        *left = less;
        match self {
            Value::Null => f.write_str("NULL_VALUE"),
            Value::Bool(value) => value.fmt(f),
            Value::Int(number) => number.fmt(f),
            Value::Uint(number) => number.fmt(f),
            Value::Double(number) => f.write_str(&convert::format_general(*number)),
            Value::String(text) => f.write_str(text),
            Value::Bytes(bytes) => {
                let shown: Vec<String> = bytes.iter().map(u8::to_string).collect();
                write!(f, "[{}]", shown.join(" "))
            }
            Value::Duration(span) => f.write_str(&span.go_text()),
            Value::Timestamp(point) => f.write_str(&point.go_text()),
            Value::List(list) => {
                f.write_str("[")?;
                for (index, item) in list.iter().flatten().enumerate() {
                    f.write_str(if index > 0 { ", " } else { "" })?;
                    item.show(f, left)?;
                }
                f.write_str("]")
            }
            Value::Map(map) => {
                f.write_str("{")?;
                for (index, (key, value)) in map.entries().flatten().enumerate() {
                    f.write_str(if index > 0 { ", " } else { "" })?;
                    key.show(f, left)?;
                    f.write_str(": ")?;
                    value.show(f, left)?;
                }
                f.write_str("}")
            }
            Value::Message(message) => {
                write!(f, "{}{{", message.type_name())?;
                for (index, (name, value)) in message.fields().enumerate() {
                    write!(f, "{}{name}: ", if index > 0 { ", " } else { "" })?;
                    value.show(f, left)?;
                }
                f.write_str("}")
            }
            Value::Optional(Some(value)) => {
                f.write_str("optional(")?;
                value.show(f, left)?;
                f.write_str(")")
            }
            Value::Optional(None) => f.write_str("optional.none()"),
            Value::Type(kind) => f.write_str(kind.runtime_name()),
            Value::Opaque(value) => f.write_str(&value.show()),
        }
    }
}

impl Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.show(f, &mut MAX_SHOWN.clone())
    }
}
