//! Shapes: what JSON is declared to be. A shape decides how a JSON value is seen, how lists compare, and how types are named.

use super::time::{Duration, Timestamp};
use super::{Blob, List, Map, Value};
use crate::eval::EvalError;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::sync::Arc;

/// JSON of any shape, seen as it is.
pub static ANY: Shape = Shape { kind: ShapeKind::Any, nullable: true };

/// What a JSON value is declared to be.
#[derive(Clone, Debug)]
pub struct Shape {
    /// The form of the value.
    pub kind: ShapeKind,
    /// Whether it may be null instead.
    pub nullable: bool,
}

/// The forms that a JSON value may be declared to have.
#[derive(Clone, Debug)]
pub enum ShapeKind {
    /// Anything, seen as it is.
    Any,
    /// A boolean.
    Bool,
    /// An integer.
    Int,
    /// A number, seen as `double` even if it is whole.
    Double,
    /// Text.
    String,
    /// Bytes in base64.
    Bytes,
    /// A duration, as Go writes it.
    Duration,
    /// A date without time.
    Date,
    /// A date and time.
    DateTime,
    /// An integer or text.
    IntOrString,
    /// An array.
    List {
        /// What its elements are.
        items: Box<Shape>,
        /// How it compares and grows.
        kind: ListKind,
    },
    /// An object with arbitrary keys and values of one shape.
    Map(Box<Shape>),
    /// An object with declared fields.
    Object(Arc<ObjectShape>),
    /// A value that expressions cannot look into.
    Hidden,
}

/// How lists of a shape compare and grow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListKind {
    /// In order.
    Atomic,
    /// Without order; elements occur once.
    Set,
    /// Without order; elements are told apart by these fields.
    Map(Vec<Arc<str>>),
}

/// The fields of an object.
#[derive(Clone, Debug, Default)]
pub struct ObjectShape {
    /// Each field, by its name in expressions.
    pub fields: BTreeMap<Arc<str>, FieldShape>,
}

/// One field of an object.
#[derive(Clone, Debug)]
pub struct FieldShape {
    /// Its name in JSON.
    pub json_name: Arc<str>,
    /// What it is.
    pub shape: Shape,
}

impl ObjectShape {
    /// The name in expressions of a field with this name in JSON.
    pub fn cel_name<'a>(&'a self, json_name: &'a str) -> Option<&'a str> {
        match self.fields.get(json_name) {
            Some(field) if &*field.json_name == json_name => Some(json_name),
            _ => {
                let mut fields = self.fields.iter();
                fields.find(|(_, field)| &*field.json_name == json_name).map(|(name, _)| &**name)
            }
        }
    }
}

impl From<ShapeKind> for Shape {
    fn from(kind: ShapeKind) -> Shape {
        Shape { kind, nullable: false }
    }
}

impl Shape {
    pub(crate) fn is_any(&self) -> bool {
        matches!(self.kind, ShapeKind::Any)
    }

    /// Sees a JSON value as this shape.
    pub(crate) fn adapt<'a>(&'a self, json: &'a Json) -> Result<Value<'a>, EvalError> {
        match (&self.kind, json) {
            (ShapeKind::Any, _) => Ok(Value::json(json)),
            (_, Json::Null) if self.nullable => Ok(Value::Null),
            (_, Json::Null) => Err(EvalError::new("invalid data, got null for schema with nullable=false")),
            (ShapeKind::Bool, Json::Bool(value)) => Ok(Value::Bool(*value)),
            (ShapeKind::Int, Json::Number(number)) if number.is_i64() => Ok(Value::json(json)),
            (ShapeKind::Double, Json::Number(number)) => Ok(Value::Double(number.as_f64().unwrap_or(f64::NAN))),
            (ShapeKind::String, Json::String(text)) => Ok(Value::text(text)),
            (ShapeKind::IntOrString, Json::String(text)) => Ok(Value::text(text)),
            (ShapeKind::IntOrString, Json::Number(number)) if number.is_i64() => Ok(Value::json(json)),
            (ShapeKind::List { .. }, Json::Array(items)) => Ok(Value::List(List::Json(items, self))),
            (ShapeKind::Map(_) | ShapeKind::Object(_), Json::Object(entries)) => {
                Ok(Value::Map(Map::Json(entries, self)))
            }
            (ShapeKind::Hidden, Json::Object(entries)) => Ok(Value::Map(Map::Json(entries, self))),
            (ShapeKind::Hidden, _) => Ok(Value::json(json)),
            (kind, Json::String(text)) => adapt_text(kind, text),
            (kind, _) => Err(misfit(kind, json)),
        }
    }
}

fn adapt_text<'a>(kind: &ShapeKind, text: &str) -> Result<Value<'a>, EvalError> {
    let wrong = |what: &str| EvalError::new(format!("Invalid {what} {text}"));
    match kind {
        ShapeKind::Bytes => match STANDARD.decode(text) {
            Ok(bytes) => Ok(Value::Bytes(Blob::Shared(bytes.into()))),
            Err(_) => Err(wrong("byte formatted string")),
        },
        ShapeKind::Duration => Duration::parse(text).map(Value::Duration).ok_or_else(|| wrong("duration")),
        ShapeKind::Date => {
            let point = Timestamp::parse(&format!("{text}T00:00:00Z"));
            point.map(Value::Timestamp).ok_or_else(|| wrong("date formatted string"))
        }
        ShapeKind::DateTime => {
            let point = Timestamp::parse_lenient(text);
            point.map(Value::Timestamp).ok_or_else(|| wrong("date-time formatted string"))
        }
        kind => Err(misfit(kind, &Json::String(String::new()))),
    }
}

fn misfit(kind: &ShapeKind, json: &Json) -> EvalError {
    let found = match json {
        Json::Null => "<nil>",
        Json::Bool(_) => "bool",
        Json::Number(number) if number.is_i64() => "int64",
        Json::Number(_) => "float64",
        Json::String(_) => "string",
        Json::Array(_) => "[]interface {}",
        Json::Object(_) => "map[string]interface {}",
    };
    EvalError::new(match kind {
        ShapeKind::IntOrString => {
            "invalid data, expected XIntOrString value to be either a string or integer".to_string()
        }
        ShapeKind::Map(_) | ShapeKind::Object(_) => {
            "invalid data, expected a map for the provided schema with type=object".to_string()
        }
        ShapeKind::List { .. } => "invalid data, expected an array for the provided schema with type=array".to_string(),
        ShapeKind::Double => format!("invalid data, expected float, got {found}"),
        ShapeKind::Int => format!("invalid data, expected int, got {found}"),
        ShapeKind::Bool => format!("invalid data, expected bool, got {found}"),
        _ => format!("invalid data, expected string, got {found}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bindings, Env, Type};
    use serde_json::json;

    fn shape() -> Shape {
        let field = |name: &str, kind: ShapeKind| {
            let json_name = if name == "dashed__name" { "dashed-name" } else { name };
            (Arc::from(name), FieldShape { json_name: json_name.into(), shape: kind.into() })
        };
        let text = || Box::new(Shape::from(ShapeKind::String));
        let item = ObjectShape {
            fields: [field("name", ShapeKind::String), field("n", ShapeKind::Int)].into(),
        };
        let items = Box::new(Shape::from(ShapeKind::Object(Arc::new(item))));
        let keys = vec!["name".into()];
        let fields = [
            field("set", ShapeKind::List { items: text(), kind: ListKind::Set }),
            field("map", ShapeKind::List { items, kind: ListKind::Map(keys) }),
            field("list", ShapeKind::List { items: text(), kind: ListKind::Atomic }),
            field("number", ShapeKind::Double),
            field("bytes", ShapeKind::Bytes),
            field("at", ShapeKind::DateTime),
            field("span", ShapeKind::Duration),
            field("port", ShapeKind::IntOrString),
            field("gone", ShapeKind::String),
            field("values", ShapeKind::Map(Box::new(Shape::from(ShapeKind::Int)))),
            field("dashed__name", ShapeKind::Bool),
        ];
        ShapeKind::Object(Arc::new(ObjectShape { fields: fields.into() })).into()
    }

    fn evaluate(text: &str) -> Result<bool, String> {
        let object = json!({
            "set": ["a", "b"], "list": ["a", "b"], "map": [{"name": "x", "n": 1}, {"name": "y", "n": 2}],
            "number": 1, "bytes": "aGk=", "at": "2024-01-01T00:00:00Z", "span": "1h", "port": "http", "gone": null,
            "values": {"one": 1, "two": null}, "dashed-name": true, "undeclared": 1,
        });
        let shape = shape();
        let program = Env::kubernetes().variable("self", Type::Dyn).compile(text).expect(text);
        let bindings = Bindings::new().bind("self", Value::shaped(&object, &shape).expect("an object"));
        match program.evaluate(&bindings) {
            Ok(Value::Bool(value)) => Ok(value),
            Ok(other) => Err(format!("{other:?}")),
            Err(error) => Err(error.message().into()),
        }
    }

    #[test]
    fn json_is_seen_as_it_is_declared() {
        let cases = [
            "self.set == ['b', 'a'] && self.set != ['a', 'c']",
            "self.list != ['b', 'a'] && self.list == ['a', 'b']",
            "self.map == [{'name': dyn('y'), 'n': dyn(2)}, {'name': dyn('x'), 'n': dyn(1)}]",
            "self.set + ['b', 'c'] == ['a', 'b', 'c'] && size(self.set + ['b', 'c']) == 3",
            "(self.map + [{'name': dyn('x'), 'n': dyn(9)}])[0].n == 9 && size(self.list + ['a']) == 3",
            "type(self.number) == double && self.number == 1.0",
            "self.bytes == b'hi' && self.at == timestamp('2024-01-01T00:00:00Z') && self.span == duration('60m')",
            "self.port == 'http' && self.dashed__name && !has(self.gone) && !has(self.undeclared)",
            "self.values.one == 1 && 'one' in self.values && !('three' in self.values)",
        ];
        for text in cases {
            assert_eq!(evaluate(text), Ok(true), "{text}");
        }
    }

    #[test]
    fn what_does_not_fit_is_an_error_once_it_is_looked_at() {
        let null = "invalid data, got null for schema with nullable=false";
        assert_eq!(evaluate("self.values.two == 1"), Err(null.into()));
        assert_eq!(evaluate("self.undeclared == 1"), Err("no such key: undeclared".into()));
        let shape = shape();
        let error = Value::shaped(&json!([]), &shape).map(|_| ()).expect_err("no object");
        assert_eq!(error.message(), "invalid data, expected a map for the provided schema with type=object");
    }
}
