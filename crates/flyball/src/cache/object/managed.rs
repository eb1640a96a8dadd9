//! Field sets of server-side apply (`metadata.managedFields`, KEP-555): which fields a manager has applied, read without a schema.

use serde::{Deserialize, Serialize};
use serde_json::{
    Map, Value,
    value::{RawValue, to_raw_value},
};
use std::{borrow::Cow, collections::BTreeMap};

/// Metadata that no manager owns (apimachinery, `managedfields/internal/stripmeta.go`).
const STRIPPED: [&str; 8] = [
    "creationTimestamp",
    "generation",
    "managedFields",
    "name",
    "namespace",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// An entry of `metadata.managedFields`, as much of it as is kept.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
    #[serde(borrow, default)]
    manager: Cow<'a, str>,
    #[serde(borrow, default)]
    operation: Cow<'a, str>,
    #[serde(borrow, default)]
    subresource: Cow<'a, str>,
    #[serde(borrow)]
    fields_v1: Option<&'a RawValue>,
}

type Fields<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;

/// An object without `metadata.managedFields`, and the value of those.
pub(super) fn split(json: &str) -> serde_json::Result<(Cow<'_, str>, String)> {
    let mut object: Fields<'_> = serde_json::from_str(json)?;
    let mut metadata: Fields<'_> = match object.get("metadata") {
        Some(metadata) => serde_json::from_str(metadata.get())?,
        None => Fields::new(),
    };
    let Some(managed) = metadata.remove("managedFields") else {
        return Ok((json.into(), String::new()));
    };
    let metadata = to_raw_value(&metadata)?;
    object.insert("metadata".into(), &metadata);
    Ok((serde_json::to_string(&object)?.into(), managed.get().to_owned()))
}

/// What of `managed` a manager has applied, or one whose name is this one, a slash, and something else.
pub(super) fn applied_by(managed: &str, manager: &str) -> String {
    let mut entries: Vec<Entry<'_>> = serde_json::from_str(managed).unwrap_or_default();
    entries.retain(|entry| {
        let rest = entry.manager.strip_prefix(manager);
        entry.operation == "Apply" && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    });
    match entries.is_empty() {
        true => String::new(),
        false => serde_json::to_string(&entries).expect("entries are JSON"),
    }
}

pub(super) fn applied_fields(managed: &str, manager: &str, subresource: &str) -> Option<Value> {
    let entries: Vec<Entry<'_>> = serde_json::from_str(managed).ok()?;
    let applied = entries
        .iter()
        .find(|entry| (&*entry.manager, &*entry.operation, &*entry.subresource) == (manager, "Apply", subresource));
    serde_json::from_str(applied?.fields_v1?.get()).ok()
}

/// The fields of a desired object that are not in the set of those that its manager has applied: another manager has changed
/// or removed them since.
pub(crate) fn missing(fields: &Value, desired: &Value) -> Vec<String> {
    let mut paths = Vec::new();
    for (name, value) in desired.as_object().into_iter().flatten() {
        match (name.as_str(), value, fields.get(format!("f:{name}"))) {
            ("apiVersion" | "kind", ..) => {}
            // A status that has a subresource of its own is not taken from an apply to the object.
            ("status", _, None) => {}
            ("metadata", Value::Object(metadata), fields) => {
                let metadata = metadata.iter().filter(|(name, _)| !STRIPPED.contains(&name.as_str()));
                metadata.for_each(|(name, value)| missing_field(fields, name, value, "metadata", &mut paths));
            }
            _ => missing_field(Some(fields), name, value, "", &mut paths),
        }
    }
    paths
}

fn missing_field(fields: Option<&Value>, name: &str, value: &Value, path: &str, paths: &mut Vec<String>) {
    let path = match path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    };
    match (fields.and_then(|fields| fields.get(format!("f:{name}"))), value) {
        (Some(fields), value) => missing_below(fields, value, &path, paths),
        (None, Value::Object(fields)) if !fields.is_empty() => {
            fields.iter().for_each(|(name, value)| missing_field(None, name, value, &path, paths));
        }
        (None, _) => paths.push(path),
    }
}

fn missing_below(fields: &Value, value: &Value, path: &str, paths: &mut Vec<String>) {
    match value {
        _ if is_leaf(fields) => {}
        Value::Object(value) => {
            value
                .iter()
                .for_each(|(name, value)| missing_field(Some(fields), name, value, path, paths));
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                let path = format!("{path}[{index}]");
                match item_fields(fields, item) {
                    Some(fields) => missing_below(fields, item, &path, paths),
                    None => paths.push(path),
                }
            }
        }
        _ => paths.push(path.to_owned()),
    }
}

/// The part of a live value that a manager has applied.
pub(crate) fn extract(fields: &Value, live: &Value) -> Value {
    match live {
        _ if is_leaf(fields) => live.clone(),
        Value::Object(live) => {
            let owned = live.iter().filter_map(|(name, value)| {
                let fields = fields.get(format!("f:{name}"))?;
                Some((name.clone(), extract(fields, value)))
            });
            owned.collect::<Map<_, _>>().into()
        }
        Value::Array(items) => {
            let owned = items.iter().filter_map(|item| Some(extract(item_fields(fields, item)?, item)));
            owned.collect()
        }
        live => live.clone(),
    }
}

/// Whether a set ends here: a scalar, or a map or list that is owned as a whole.
fn is_leaf(fields: &Value) -> bool {
    fields.as_object().is_none_or(Map::is_empty)
}

/// What is owned of an item of a list: known by its key, in which defaulted fields may be absent, or by its value.
fn item_fields<'a>(fields: &'a Value, item: &Value) -> Option<&'a Value> {
    if let Some(fields) = fields.get(format!("v:{item}")) {
        return Some(fields);
    }
    let keyed = fields.as_object()?.iter().filter_map(|(step, fields)| {
        let key: Map<String, Value> = serde_json::from_str(step.strip_prefix("k:")?).ok()?;
        Some((key, fields))
    });
    let is_key_of = |key: &Map<String, Value>| {
        let mut given = key.iter().filter_map(|(name, value)| Some(item.get(name)? == value)).peekable();
        given.peek().is_some() && given.all(|same| same)
    };
    keyed.into_iter().find(|(key, _)| is_key_of(key)).map(|(_, fields)| fields)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn service() -> (Value, Value) {
        let port = r#"k:{"port":80,"protocol":"TCP"}"#;
        let port = json!({ port: { ".": {}, "f:name": {}, "f:port": {} } });
        let fields = json!({
            "f:metadata": { "f:labels": { "f:a": {} }, "f:finalizers": { "v:\"x/y\"": {}, "v:\"z\"": {} },
                "f:ownerReferences": { "k:{\"uid\":\"u\"}": {} } },
            "f:spec": { "f:ports": port, "f:selector": {}, "f:type": {} },
        });
        let desired = json!({
            "apiVersion": "v1", "kind": "Service", "status": {},
            "metadata": { "name": "ada", "namespace": "default", "labels": { "a": "b" }, "finalizers": ["x/y", "z"],
                "ownerReferences": [{ "uid": "u", "name": "ada" }] },
            "spec": { "ports": [{ "name": "web", "port": 80 }], "selector": { "app": "ada" }, "type": "ClusterIP" },
        });
        (fields, desired)
    }

    #[test]
    fn nothing_is_missing_of_what_was_applied() {
        let (fields, desired) = service();
        assert_eq!(missing(&fields, &desired), [""; 0]);
    }

    #[test]
    fn fields_that_others_have_taken_are_missing() {
        for (pointer, step, path) in [
            ("/f:metadata", "f:labels", "metadata.labels.a"),
            ("/f:metadata/f:finalizers", "v:\"x/y\"", "metadata.finalizers[0]"),
            ("/f:spec", "f:type", "spec.type"),
            ("/f:spec", "f:selector", "spec.selector.app"),
            ("/f:spec/f:ports/k:{\"port\":80,\"protocol\":\"TCP\"}", "f:name", "spec.ports[0].name"),
        ] {
            let (mut fields, desired) = service();
            fields.pointer_mut(pointer).unwrap().as_object_mut().unwrap().remove(step).unwrap();
            assert_eq!(missing(&fields, &desired), [path]);
        }
    }

    #[test]
    fn a_manager_has_applied_a_part_of_an_object() {
        let live = json!({
            "ours": 1, "theirs": 2, "deep": { "ours": 3, "theirs": 4 }, "whole": { "a": 5 }, "set": ["a", "b", "c"],
            "conditions": [{ "type": "Theirs" }, { "type": "Ready", "status": "True", "note": "theirs" }],
        });
        let fields = json!({
            "f:ours": {}, "f:deep": { "f:ours": {} }, "f:whole": {}, "f:set": { "v:\"a\"": {}, "v:\"c\"": {} }, "f:gone": {},
            "f:conditions": { "k:{\"type\":\"Ready\"}": { ".": {}, "f:type": {}, "f:status": {} } },
        });
        let ours = json!({
            "ours": 1, "deep": { "ours": 3 }, "whole": { "a": 5 }, "set": ["a", "c"],
            "conditions": [{ "type": "Ready", "status": "True" }],
        });
        assert_eq!(extract(&fields, &live), ours);
    }
}
