//! The types of the language, their names, and the notation in which libraries declare signatures.

use std::fmt;
use std::sync::Arc;

/// A type that an expression can have.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// Not known before evaluation; assignable to and from everything.
    Dyn,
    /// The type of an expression in which an error was found.
    Error,
    /// The type of `null`.
    Null,
    /// `true` and `false`.
    Bool,
    /// Signed integers of 64 bits.
    Int,
    /// Unsigned integers of 64 bits.
    Uint,
    /// Floating point numbers of 64 bits.
    Double,
    /// Unicode text.
    String,
    /// A sequence of bytes.
    Bytes,
    /// A span of time.
    Duration,
    /// A point in time.
    Timestamp,
    /// A type as a value; which type, if that is known.
    Type(Option<Arc<Type>>),
    /// A list of elements of one type.
    List(Arc<Type>),
    /// A map from keys of one type to values of another.
    Map(Arc<Type>, Arc<Type>),
    /// A primitive type that may also be null.
    Nullable(Arc<Type>),
    /// An object type with fields, by name.
    Struct(Arc<str>),
    /// An abstract type with parameters, such as `optional_type`.
    Opaque(Arc<str>, Arc<[Type]>),
    /// A type parameter in the declaration of a function.
    Param(Arc<str>),
    /// A type that the checker is to find.
    Var(u32),
}

impl Type {
    /// A list of these.
    pub fn list(element: Type) -> Type {
        Type::List(Arc::new(element))
    }

    /// A map of these.
    pub fn map(key: Type, value: Type) -> Type {
        Type::Map(Arc::new(key), Arc::new(value))
    }

    /// An optional one of these.
    pub fn optional(inner: Type) -> Type {
        Type::Opaque("optional_type".into(), [inner].into())
    }

    /// This type as a value.
    pub fn of_type(inner: Type) -> Type {
        Type::Type(Some(Arc::new(inner)))
    }

    /// An object type.
    pub fn object(name: &str) -> Type {
        Type::Struct(name.into())
    }

    /// An abstract type without parameters.
    pub fn opaque(name: &str) -> Type {
        Type::Opaque(name.into(), [].into())
    }

    /// What is in the optional, if it is one.
    pub fn optional_inner(&self) -> Option<&Type> {
        match self {
            Type::Opaque(name, params) if &**name == "optional_type" => params.first(),
            _ => None,
        }
    }

    /// The name that values of this type report at run time.
    pub fn runtime_name(&self) -> &str {
        match self {
            Type::Dyn => "dyn",
            Type::Error => "error",
            Type::Null => "null_type",
            Type::Bool => "bool",
            Type::Int => "int",
            Type::Uint => "uint",
            Type::Double => "double",
            Type::String => "string",
            Type::Bytes => "bytes",
            Type::Duration => "google.protobuf.Duration",
            Type::Timestamp => "google.protobuf.Timestamp",
            Type::Type(_) => "type",
            Type::List(_) => "list",
            Type::Map(..) => "map",
            Type::Nullable(inner) => inner.runtime_name(),
            Type::Struct(name) | Type::Opaque(name, _) | Type::Param(name) => name,
            Type::Var(_) => "_var",
        }
    }

    /// Whether values of one type are values of the other at run time: what may be null is the type that it wraps.
    pub(crate) fn is_exact(&self, other: &Type) -> bool {
        match (self, other) {
            (Type::Nullable(inner), other) | (other, Type::Nullable(inner)) => inner.is_exact(other),
            (Type::List(one), Type::List(other)) | (Type::Type(Some(one)), Type::Type(Some(other))) => {
                one.is_exact(other)
            }
            (Type::Map(key, value), Type::Map(other_key, other_value)) => {
                key.is_exact(other_key) && value.is_exact(other_value)
            }
            (Type::Opaque(name, params), Type::Opaque(other_name, others)) => {
                name == other_name
                    && params.len() == others.len()
                    && params.iter().zip(others.iter()).all(|(one, other)| one.is_exact(other))
            }
            (one, other) => one == other,
        }
    }

    /// Reads a type as libraries write it: `list(string)`, `map(K, V)`, `optional(T)`; single capitals are parameters.
    pub(crate) fn read(text: &str) -> Type {
        let (name, params) = match text.split_once('(') {
            Some((name, rest)) => (name.trim(), split(rest.strip_suffix(')').unwrap_or(rest))),
            None => (text.trim(), Vec::new()),
        };
        let mut params = params.into_iter().map(Type::read);
        match name {
            "dyn" => Type::Dyn,
            "null" => Type::Null,
            "bool" => Type::Bool,
            "int" => Type::Int,
            "uint" => Type::Uint,
            "double" => Type::Double,
            "string" => Type::String,
            "bytes" => Type::Bytes,
            "duration" => Type::Duration,
            "timestamp" => Type::Timestamp,
            "type" => Type::Type(params.next().map(Arc::new)),
            "list" => Type::list(params.next().unwrap_or(Type::Dyn)),
            "map" => {
                let key = params.next().unwrap_or(Type::Dyn);
                Type::map(key, params.next().unwrap_or(Type::Dyn))
            }
            "optional" => Type::optional(params.next().unwrap_or(Type::Dyn)),
            name if name.len() == 1 => Type::Param(name.into()),
            name => match name.strip_prefix('~') {
                Some(opaque) => Type::Opaque(opaque.into(), params.collect()),
                None => Type::object(name),
            },
        }
    }
}

/// Splits at the commas that are in no parentheses.
pub(crate) fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, letter) in text.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    let last = text[start..].trim();
    if !last.is_empty() {
        parts.push(last);
    }
    parts
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Error => f.write_str("!error!"),
            Type::Null => f.write_str("null"),
            Type::Duration => f.write_str("duration"),
            Type::Timestamp => f.write_str("timestamp"),
            Type::Type(Some(inner)) => write!(f, "type({inner})"),
            Type::List(element) => write!(f, "list({element})"),
            Type::Map(key, value) => write!(f, "map({key}, {value})"),
            Type::Nullable(inner) => write!(f, "wrapper({inner})"),
            Type::Var(number) => write!(f, "_var{number}"),
            Type::Opaque(name, params) if !params.is_empty() => {
                write!(f, "{name}(")?;
                for (index, param) in params.iter().enumerate() {
                    write!(f, "{}{param}", if index > 0 { ", " } else { "" })?;
                }
                f.write_str(")")
            }
            other => f.write_str(other.runtime_name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_read_and_shown_alike() {
        for text in ["list(string)", "map(A, list(B))", "type(A)", "dyn", "a.B", "timestamp"] {
            assert_eq!(Type::read(text).to_string(), text);
        }
        assert_eq!(Type::read("optional(list(V))").to_string(), "optional_type(list(V))");
        assert_eq!(Type::read("~net.IP"), Type::opaque("net.IP"));
    }
}
