//! Access to an object's metadata.

use serde_json::{Map, Value};
use std::sync::LazyLock;

static NOTHING: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);

/// An object's metadata; empty if there is none.
pub(super) fn metadata(object: &Value) -> &Map<String, Value> {
    object["metadata"].as_object().unwrap_or(&NOTHING)
}

/// An object's metadata, mutable; created if there is none.
pub(super) fn metadata_mut(object: &mut Value) -> &mut Map<String, Value> {
    let metadata = super::at(object, "metadata");
    if !metadata.is_object() {
        *metadata = Value::Object(Map::new());
    }
    metadata.as_object_mut().expect("made an object above")
}

/// A text in an object's metadata; empty if absent.
pub(super) fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    metadata(object).get(field).and_then(Value::as_str).unwrap_or_default()
}

/// An object's name; empty if it has none.
pub(super) fn name(object: &Value) -> &str {
    text(object, "name")
}

/// An object's finalizers.
pub(super) fn finalizers(object: &Value) -> Vec<&str> {
    let finalizers = metadata(object).get("finalizers").and_then(Value::as_array);
    finalizers.into_iter().flatten().filter_map(Value::as_str).collect()
}
