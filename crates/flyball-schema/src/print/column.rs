//! A column of a built-in kind, the two that nearly every kind has, and how cells read an object.

use super::age;
use jiff::Timestamp;
use serde_json::{Value, json};

/// A column of a built-in kind.
pub(super) struct Column {
    pub name: &'static str,
    pub kind: &'static str,
    pub description: &'static str,
    /// Shown by `-o wide` only.
    pub wide: bool,
}

/// A column and what stands in it.
pub(super) type Shown = (Column, fn(&Value, Timestamp) -> Value);

pub(super) const NAMED: Shown = (NAME, |object, _| json!(name(object)));
pub(super) const AGED: Shown = (AGE, age);

pub(super) const NAME: Column = column("Name", "string", "The object's name, unique among its kind in a namespace.");
pub(super) const AGE: Column = column("Age", "string", "How long ago the object was created.");

pub(super) const fn column(name: &'static str, kind: &'static str, description: &'static str) -> Column {
    Column { name, kind, description, wide: false }
}

pub(super) const fn wide(name: &'static str, kind: &'static str, description: &'static str) -> Column {
    Column { name, kind, description, wide: true }
}

pub(super) fn definition(column: &Column) -> Value {
    let Column { name, kind, description, wide } = column;
    let format = if matches!(*name, "Name" | "Attacher") {
        "name"
    } else {
        ""
    };
    let priority = u8::from(*wide);
    json!({"name": name, "type": kind, "format": format, "description": description, "priority": priority})
}

pub(super) fn name(object: &Value) -> &str {
    text(object, "/metadata/name")
}

pub(super) fn age(object: &Value, now: Timestamp) -> Value {
    json!(age::since(object.pointer("/metadata/creationTimestamp"), now))
}

pub(super) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn number(object: &Value, pointer: &str) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or_default()
}

pub(super) fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The texts of a list.
pub(super) fn joined(items: &[Value], between: &str) -> String {
    items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(between)
}

pub(super) fn none() -> Value {
    json!("<none>")
}

/// A name, and whether its object is the one that is used by default.
pub(super) fn default_name(object: &Value, annotation: &str) -> String {
    let annotations = object.pointer("/metadata/annotations");
    let is_default = annotations.is_some_and(|annotations| annotations[annotation] == "true");
    format!("{}{}", name(object), if is_default { " (default)" } else { "" })
}

/// `a=1,b=2`, or `<none>`.
pub(super) fn labels(labels: Option<&Value>) -> String {
    let labels = labels.and_then(Value::as_object).into_iter().flatten();
    let labels = labels.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
    or_none(&labels.collect::<Vec<_>>().join(",")).to_owned()
}

pub(super) fn or_none(text: &str) -> &str {
    if text.is_empty() { "<none>" } else { text }
}
