//! Values as Go's `%v` shows them in messages.

use super::{Value, convert};
use std::fmt;

impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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
            Value::Duration(span) => span.fmt(f),
            Value::Timestamp(point) => point.fmt(f),
            Value::List(list) => {
                f.write_str("[")?;
                for (index, item) in list.iter().enumerate() {
                    f.write_str(if index > 0 { ", " } else { "" })?;
                    if let Ok(item) = item {
                        item.fmt(f)?;
                    }
                }
                f.write_str("]")
            }
            Value::Map(map) => {
                f.write_str("{")?;
                for (index, (key, value)) in map.entries().flatten().enumerate() {
                    write!(f, "{}{key}: {value}", if index > 0 { ", " } else { "" })?;
                }
                f.write_str("}")
            }
            Value::Optional(Some(value)) => write!(f, "optional({value})"),
            Value::Optional(None) => f.write_str("optional.none()"),
            Value::Type(kind) => f.write_str(kind.runtime_name()),
            Value::Opaque(value) => f.write_str(&value.show()),
        }
    }
}
