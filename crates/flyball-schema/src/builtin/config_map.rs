//! ConfigMaps, and the validation that they share with Secrets.

use crate::names;
use crate::violation::Violation;
use serde_json::Value;

/// The most bytes of all values together.
const MOST_BYTES: usize = 1024 * 1024;

/// Validates a ConfigMap.
// pkg/apis/core/validation/validation.go, ValidateConfigMap and ValidateConfigMapUpdate
pub fn validate(map: &Value, live: Option<&Value>) -> Vec<Violation> {
    let mut violations = Vec::new();
    if let Some(live) = live {
        violations.extend(validate_immutable(map, live, &["data", "binaryData"]));
    }
    violations.extend(validate_keys(&map["data"], "data"));
    let binary = map["binaryData"].as_object();
    for key in map["data"].as_object().into_iter().flatten().map(|(key, _)| key) {
        if binary.is_some_and(|binary| binary.contains_key(key)) {
            let why = "duplicate of key present in binaryData";
            violations.push(Violation::invalid(format!("data[{key}]"), key.as_str(), why));
        }
    }
    violations.extend(validate_keys(&map["binaryData"], "binaryData"));
    violations.extend(validate_size(map, &["data", "binaryData"]));
    violations
}

pub(super) fn validate_keys(values: &Value, path: &str) -> Vec<Violation> {
    let keys = values.as_object().into_iter().flatten().map(|(key, _)| key);
    let wrong = |key: &String| {
        let path = format!("{path}[{key}]");
        let all = names::config_key(key);
        all.into_iter()
            .map(|why| Violation::invalid(path.clone(), key.as_str(), &why))
            .collect::<Vec<_>>()
    };
    keys.flat_map(wrong).collect()
}

pub(super) fn validate_size(object: &Value, fields: &[&str]) -> Option<Violation> {
    let is_map = object["kind"] == "ConfigMap";
    let bytes = |field: &&str| -> usize {
        let values = object[*field].as_object().into_iter().flatten();
        let plain = *field == "data" && is_map;
        let length = |text: &str| if plain { text.len() } else { text.len() / 4 * 3 };
        values.map(|(_, value)| value.as_str().map_or(0, length)).sum()
    };
    let total: usize = fields.iter().map(bytes).sum();
    let path = if is_map { "[]" } else { "data" };
    (total > MOST_BYTES).then(|| Violation::too_long(path, MOST_BYTES as u64))
}

/// Validates an update of an object with `immutable: true`.
pub(super) fn validate_immutable(object: &Value, live: &Value, fields: &[&str]) -> Vec<Violation> {
    if live["immutable"] != true {
        return Vec::new();
    }
    let mut violations = Vec::new();
    let why = "field is immutable when `immutable` is set";
    if object["immutable"] != true {
        violations.push(Violation::forbidden("immutable", why));
    }
    for field in fields {
        if object[*field] != live[*field] {
            violations.push(Violation::forbidden(*field, why));
        }
    }
    violations
}
