//! The object before anything was written to it.

use crate::schema::{Form, Node};
use serde_json::{Map, Value};

/// What an object is compared with when it is created: for a built-in kind what Go writes of an empty one, else nothing.
pub(super) fn zero(node: Node<'_>, object: &Value) -> Value {
    if node.name.is_none() {
        return Value::Object(Map::new());
    }
    let mut zero = Map::new();
    for field in node.fields() {
        let ty = node.at(field.schema);
        let value = object.get(&*field.name).unwrap_or(&Value::Null);
        let empty = match (&ty.schema().default, &ty.schema().form) {
            (Some(Value::Object(_)), Form::Object(_)) => self::zero(ty, value),
            (Some(default), _) if is_zero(default) => default.clone(),
            (None, _) if field.required && !is_omitted(node, &field.name) => Value::Null,
            // Go writes null where it always writes the field; the table knows that of required ones only.
            _ if object.get(&*field.name).is_some_and(Value::is_null) => Value::Null,
            _ => continue,
        };
        zero.insert(field.name.to_string(), empty);
    }
    Value::Object(zero)
}

/// Whether Go leaves out what is required.
fn is_omitted(node: Node<'_>, field: &str) -> bool {
    const BINDING: &str = "io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicyBindingSpec";
    field == "validationActions" && node.type_name() == Some(BINDING)
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}
