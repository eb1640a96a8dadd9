//! Rules in the types of built-in kinds that decoding does not check: enumerated values, and absent times that
//! are written as `null`.

use crate::schema::{Form, Node};
use crate::violation::Violation;
use serde_json::Value;

/// Times that are not pointers in Go, which encodes them as `null` where they are absent.
const ZERO_TIMES: [&str; 7] = [
    "evictionTime",
    "finishedAt",
    "lastHeartbeatTime",
    "lastProbeTime",
    "lastTransitionTime",
    "lastUpdateTime",
    "startedAt",
];

/// Writes absent times as `null` where Go does.
pub fn fill_times(node: Node<'_>, value: &mut Value) {
    match (value, &node.form) {
        (Value::Object(members), Form::Object(object)) => {
            for field in &object.fields {
                let is_time = node.at(field.schema).format.as_deref() == Some("date-time");
                if is_time && ZERO_TIMES.contains(&&*field.name) {
                    members.entry(&*field.name).or_insert(Value::Null);
                }
            }
            for (name, member) in members.iter_mut() {
                if let Some(inner) = node.field(name) {
                    fill_times(inner, member);
                }
            }
        }
        (Value::Array(items), Form::List(_)) => {
            if let Some(inner) = node.items() {
                items.iter_mut().for_each(|item| fill_times(inner, item));
            }
        }
        _ => {}
    }
}

/// Reports values that are not in the enumeration of their type.
pub fn validate(node: Node<'_>, value: &Value, path: &str) -> Vec<Violation> {
    let mut violations = Vec::new();
    if let Value::String(text) = value
        && !node.allowed.is_empty()
        && !node.allowed.contains(value)
        && !text.is_empty()
    {
        let mut supported: Vec<&str> = node.allowed.iter().filter_map(Value::as_str).collect();
        supported.sort_unstable();
        violations.push(Violation::not_supported(path, text.as_str(), &supported));
    }
    match value {
        Value::Object(members) if matches!(node.form, Form::Object(_)) => {
            for (name, member) in members {
                let Some(inner) = node.field(name) else { continue };
                let path = if path.is_empty() {
                    name.clone()
                } else {
                    format!("{path}.{name}")
                };
                violations.extend(validate(inner, member, &path));
            }
        }
        Value::Array(items) => {
            if let Some(inner) = node.items() {
                let item = |(index, item)| validate(inner, item, &format!("{path}[{index}]"));
                violations.extend(items.iter().enumerate().flat_map(item));
            }
        }
        _ => {}
    }
    violations
}
