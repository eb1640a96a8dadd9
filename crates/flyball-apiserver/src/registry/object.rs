//! An object as a value, and as the bytes that every reader and watcher shares.
//! It is encoded once per write, with a gap where the store writes the resource version.

use flyball_schema::managed_fields;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::io::Write;
use std::sync::LazyLock;

static NOTHING: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);

/// An object's metadata; empty if there is none.
pub fn metadata(object: &Value) -> &Map<String, Value> {
    object["metadata"].as_object().unwrap_or(&NOTHING)
}

/// An object's metadata, to be changed; made if there is none.
pub fn metadata_mut(object: &mut Value) -> &mut Map<String, Value> {
    field_mut(object, "metadata")
}

/// An object in a field, to be changed; made if there is none.
pub fn field_mut<'a>(object: &'a mut Value, field: &str) -> &'a mut Map<String, Value> {
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let value = &mut object[field];
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().expect("made an object above")
}

/// A text in an object's metadata; empty if absent.
pub fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    metadata(object).get(field).and_then(Value::as_str).unwrap_or_default()
}

/// An object's name; empty if it has none.
pub fn name(object: &Value) -> &str {
    text(object, "name")
}

/// An object's finalizers.
pub fn finalizers(object: &Value) -> Vec<&str> {
    let finalizers = metadata(object).get("finalizers").and_then(Value::as_array);
    finalizers.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Whether an object is being deleted.
pub fn is_deleting(object: &Value) -> bool {
    metadata(object).get("deletionTimestamp").is_some_and(|time| !time.is_null())
}

/// An object's generation; 0 if it has none.
pub fn generation(object: &Value) -> i64 {
    metadata(object).get("generation").and_then(Value::as_i64).unwrap_or(0)
}

/// How every encoded object begins: `{"apiVersion":"apps/v1","kind":"Deployment",`.
pub fn head(api_version: &str, kind: &str) -> String {
    format!("{{\"apiVersion\":{},\"kind\":{},", Value::from(api_version), Value::from(kind))
}

/// Encodes an object: `apiVersion` and `kind` first, and a gap for the resource version.
pub fn encode(object: &Value) -> flyball_store::Value {
    let mut bytes = Vec::with_capacity(1024);
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    bytes.extend_from_slice(head(text("apiVersion"), text("kind")).as_bytes());
    bytes.extend_from_slice(b"\"metadata\":{\"resourceVersion\":\"");
    let gap = bytes.len();
    bytes.push(b'"');
    let members = metadata(object).iter().filter(|(key, _)| *key != "resourceVersion");
    members.for_each(|(key, value)| member(&mut bytes, key, value));
    bytes.push(b'}');
    let rest = object.as_object().unwrap_or(&NOTHING).iter();
    rest.filter(|(key, _)| !matches!(key.as_str(), "apiVersion" | "kind" | "metadata"))
        .for_each(|(key, value)| member(&mut bytes, key, value));
    bytes.push(b'}');
    flyball_store::Value::stamped(bytes, gap)
}

fn member(bytes: &mut Vec<u8>, key: &str, value: &Value) {
    match value {
        Value::Array(entries) if key == "managedFields" => {
            bytes.extend_from_slice(b",\"managedFields\":[");
            separated(bytes, entries, entry);
            bytes.push(b']');
        }
        _ => write!(bytes, ",{}:{value}", Value::from(key)).expect("a vector takes every write"),
    }
}

/// Writes an entry of `managedFields`, its paths in their own order.
fn entry(bytes: &mut Vec<u8>, entry: &Value) {
    let fields = &entry["fieldsV1"];
    if managed_fields::is_in_order(fields) {
        return write!(bytes, "{entry}").expect("a vector takes every write");
    }
    bytes.push(b'{');
    separated(bytes, entry.as_object().unwrap_or(&NOTHING), |bytes, (key, value)| {
        let written = match key.as_str() {
            "fieldsV1" => write!(bytes, "\"fieldsV1\":{}", managed_fields::text(value)),
            _ => write!(bytes, "{}:{value}", Value::from(key.as_str())),
        };
        written.expect("a vector takes every write");
    });
    bytes.push(b'}');
}

fn separated<T>(bytes: &mut Vec<u8>, items: impl IntoIterator<Item = T>, write: fn(&mut Vec<u8>, T)) {
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            bytes.push(b',');
        }
        write(bytes, item);
    }
}

fn stamp(value: &flyball_store::Value, resource_version: &str) -> bytes::Bytes {
    let gap = value.revision_at.unwrap_or(0);
    [&value.bytes[..gap], resource_version.as_bytes(), &value.bytes[gap..]].concat().into()
}

/// An entry's value with another resource version than it was stored with.
pub fn restamp(entry: &flyball_store::Entry, revision: u64) -> bytes::Bytes {
    let Some(gap) = entry.revision_at else {
        return entry.value.clone();
    };
    let after = gap + entry.revision.to_string().len();
    [
        &entry.value[..gap],
        revision.to_string().as_bytes(),
        &entry.value[after..],
    ]
    .concat()
    .into()
}

/// Encodes an object that is never stored, such as that of a dry run.
pub fn encode_unstored(object: &Value) -> bytes::Bytes {
    match text(object, "resourceVersion") {
        "" => object.to_string().into(),
        version => stamp(&encode(object), version),
    }
}

/// Decodes what the store keeps.
pub fn decode(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).expect("the store keeps what was encoded")
}

/// What can be told of an encoded object without decoding all of it.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Peek<'a> {
    /// Its metadata.
    #[serde(borrow)]
    pub metadata: PeekMetadata<'a>,
}

/// What can be told of an encoded object's metadata.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PeekMetadata<'a> {
    /// The labels.
    pub labels: Option<Map<String, Value>>,
    /// The name.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// The namespace.
    #[serde(borrow)]
    pub namespace: Cow<'a, str>,
    /// When its deletion was asked for.
    #[serde(borrow)]
    pub deletion_timestamp: Option<Cow<'a, str>>,
}

/// Looks at an encoded object.
pub fn peek(bytes: &[u8]) -> Peek<'_> {
    serde_json::from_slice(bytes).expect("the store keeps what was encoded")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_encoded_object_has_a_gap_for_its_resource_version() {
        let object = json!({"kind": "Pod", "apiVersion": "v1", "spec": {"a": "\"<é>"},
            "metadata": {"name": "web", "resourceVersion": "7", "labels": {"app": "web"}}});

        let value = encode(&object);

        let head = head("v1", "Pod");
        assert!(value.bytes.starts_with(head.as_bytes()));
        let mut expected = object;
        expected["metadata"]["resourceVersion"] = json!("42");
        assert_eq!(decode(&stamp(&value, "42")), expected);
    }

    #[test]
    fn items_are_owned_in_their_own_order() {
        let ports = json!({"k:{\"port\":10}": {}, "k:{\"port\":9}": {".": {}, "f:name": {}}});
        let entry = json!({"manager": "m", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:ports": ports}}});
        let object = json!({"metadata": {"name": "web", "managedFields": [entry, {"manager": "n"}]}});

        let bytes = stamp(&encode(&object), "1");

        let written = std::str::from_utf8(&bytes).unwrap();
        let nine = r#""f:ports":{"k:{\"port\":9}":{".":{},"f:name":{}},"k:{\"port\":10}":{}}}}"#;
        assert!(written.contains(nine), "{written}");
        assert_eq!(decode(&bytes)["metadata"]["managedFields"], object["metadata"]["managedFields"]);
    }

    #[test]
    fn a_peek_sees_labels_and_deletion() {
        let object = json!({"metadata": {"name": "web", "labels": {"app": "web"}, "deletionTimestamp": "now"}});

        let bytes = stamp(&encode(&object), "1");
        let metadata = peek(&bytes).metadata;

        assert_eq!(metadata.labels.unwrap()["app"], "web");
        assert_eq!(metadata.deletion_timestamp.as_deref(), Some("now"));
        assert_eq!(metadata.name, "web");
    }
}
