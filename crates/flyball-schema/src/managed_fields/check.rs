//! Whether an object fits its type as far as ownership is concerned, in the words of structured-merge-diff.

use super::path::PathElement;
use super::shape::{ListShape, MapShape, Scalar, Shape, Type};
use crate::go_text;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::fmt;

/// Whether an item may occur twice in a set or an associative list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Duplicates {
    /// In stored objects.
    Allowed,
    /// In applied configurations.
    Refused,
}

/// What does not fit, with its path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Misfits(Vec<String>);

// structured-merge-diff, typed/helpers.go, ValidationErrors.Error
impl fmt::Display for Misfits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [misfit] => f.write_str(misfit),
            misfits => write!(f, "errors:\n  {}", misfits.join("\n  ")),
        }
    }
}

/// Checks an object.
// structured-merge-diff, typed/validate.go
pub(super) fn check(ty: Type<'_>, value: &Value, duplicates: Duplicates) -> Result<(), Misfits> {
    let mut walk = Walk { path: Vec::new(), duplicates, misfits: Misfits::default() };
    walk.value(ty, value);
    if walk.misfits.0.is_empty() {
        Ok(())
    } else {
        Err(walk.misfits)
    }
}

struct Walk<'v> {
    path: Vec<PathElement<'v>>,
    duplicates: Duplicates,
    misfits: Misfits,
}

impl<'v> Walk<'v> {
    fn value<'s: 'v>(&mut self, ty: Type<'s>, value: &'v Value) {
        if matches!(ty, Type::Atomic | Type::Deduced) {
            return;
        }
        match (ty.shape(Some(value)), value) {
            (Shape::Nothing, _) => self.report("schema error: invalid atom: inlined"),
            (_, Value::Null) => {}
            (Shape::Map(map), Value::Object(fields)) => self.fields(map, fields),
            (Shape::List(list), Value::Array(items)) => self.items(list, items),
            (Shape::Scalar(scalar), _) => self.scalar(scalar, value),
            (Shape::Map(_), _) => self.report(&format!("expected map, got &{{{}}}", printed(value))),
            (Shape::List(_), _) => self.report(&format!("expected list, got &{{{}}}", printed(value))),
        }
    }

    fn scalar(&mut self, scalar: Scalar, value: &Value) {
        let text = match (scalar, value) {
            (Scalar::Numeric, Value::Number(_))
            | (Scalar::String, Value::String(_))
            | (Scalar::Boolean, Value::Bool(_))
            | (Scalar::Untyped, Value::Bool(_) | Value::Number(_) | Value::String(_)) => return,
            (Scalar::Numeric, _) => format!("expected numeric (int or float), got {}", type_name(value)),
            (Scalar::String, _) => {
                format!("expected string, got &value.valueUnstructured{{Value:{}}}", literal(value))
            }
            (Scalar::Boolean, _) => format!("expected boolean, got &{{{}}}", printed(value)),
            (Scalar::Untyped, _) => format!("expected any scalar, got &{{{}}}", printed(value)),
        };
        self.report(&text);
    }

    fn fields<'s: 'v>(&mut self, map: MapShape<'s>, fields: &'v Map<String, Value>) {
        for (name, value) in fields {
            self.path.push(PathElement::Field(name));
            let ty = map.field(name);
            if matches!(ty, Type::Undeclared) {
                self.report("field not declared in schema");
            } else {
                self.value(ty, value);
            }
            self.path.pop();
            if matches!(ty, Type::Undeclared) {
                return;
            }
        }
    }

    fn items<'s: 'v>(&mut self, list: ListShape<'s>, items: &'v [Value]) {
        let mut seen = BTreeSet::new();
        for (index, item) in items.iter().enumerate() {
            let element = if list.is_atomic() {
                PathElement::Index(i64::try_from(index).unwrap_or(i64::MAX))
            } else {
                match list.element(item) {
                    Ok(element) => self.note(&mut seen, element),
                    Err(reason) => return self.report(&format!("element {index}: {reason}")),
                }
            };
            self.path.push(element);
            self.value(list.items, item);
            self.path.pop();
        }
    }

    fn note(&mut self, seen: &mut BTreeSet<PathElement<'v>>, element: PathElement<'v>) -> PathElement<'v> {
        if !seen.insert(element.clone()) && self.duplicates == Duplicates::Refused {
            self.report(&format!("duplicate entries for key {element}"));
        }
        element
    }

    fn report(&mut self, text: &str) {
        let path: String = self.path.iter().map(ToString::to_string).collect();
        self.misfits.0.push(if path.is_empty() {
            text.to_owned()
        } else {
            format!("{path}: {text}")
        });
    }
}

/// `%T` of a decoded value.
fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// `%v` of a decoded value.
fn printed(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".into(),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(printed).collect::<Vec<_>>().join(" ")),
        Value::Object(fields) => {
            let fields: Vec<_> = sorted(fields).map(|(name, value)| format!("{name}:{}", printed(value))).collect();
            format!("map[{}]", fields.join(" "))
        }
        _ => go_text::shown(value),
    }
}

/// `%#v` of a decoded value.
fn literal(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".into(),
        Value::Array(items) => {
            format!("[]interface {{}}{{{}}}", items.iter().map(literal).collect::<Vec<_>>().join(", "))
        }
        Value::Object(fields) => {
            let quoted = |(name, value): (&String, &Value)| format!("{}:{}", go_text::quote(name), literal(value));
            let fields: Vec<_> = sorted(fields).map(quoted).collect();
            format!("map[string]interface {{}}{{{}}}", fields.join(", "))
        }
        _ => go_text::shown(value),
    }
}

fn sorted(fields: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    let mut fields: Vec<_> = fields.iter().collect();
    fields.sort_by_key(|(name, _)| *name);
    fields.into_iter()
}
