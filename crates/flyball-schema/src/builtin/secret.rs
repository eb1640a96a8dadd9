//! Secrets.

use super::config_map::{validate_immutable, validate_keys, validate_size};
use super::meta;
use super::{at, fill};
use crate::decode::{DecodeError, Document};
use crate::violation::Violation;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// Sets the type of a secret, and moves `stringData` into `data`.
// pkg/apis/core/v1/conversion.go, Convert_v1_Secret_To_core_Secret
pub fn default(secret: &mut Value) {
    fill(secret, "type", "Opaque");
    let Some(members) = secret.as_object_mut() else { return };
    let Some(Value::Object(texts)) = members.remove("stringData") else {
        return;
    };
    for (key, text) in texts {
        let encoded = STANDARD.encode(text.as_str().unwrap_or_default());
        at(secret, "data")[key] = encoded.into();
    }
}

/// Validates a secret.
// pkg/apis/core/validation/validation.go, ValidateSecret and ValidateSecretUpdate
pub fn validate(secret: &Value, live: Option<&Value>) -> Vec<Violation> {
    let mut violations = Vec::new();
    if let Some(live) = live {
        if secret["type"] != live["type"] {
            violations.push(Violation::invalid("type", secret["type"].clone(), "field is immutable"));
        }
        violations.extend(validate_immutable(secret, live, &["data"]));
    }
    violations.extend(validate_keys(&secret["data"], "data"));
    violations.extend(validate_size(secret, &["data"]));
    violations.extend(validate_type(secret));
    violations
}

/// The keys that the built-in types of secrets require.
fn validate_type(secret: &Value) -> Vec<Violation> {
    let has = |key: &str| secret["data"].get(key).is_some();
    let missing = |key: &str| Violation::required(format!("data[{key}]"), "");
    match secret["type"].as_str().unwrap_or_default() {
        "kubernetes.io/service-account-token" => {
            const KEY: &str = "kubernetes.io/service-account.name";
            let annotations = meta::metadata(secret).get("annotations");
            let name = annotations.and_then(|annotations| annotations[KEY].as_str()).unwrap_or_default();
            let path = format!("metadata.annotations[{KEY}]");
            name.is_empty().then(|| Violation::required(path, "")).into_iter().collect()
        }
        "kubernetes.io/dockercfg" => validate_json(secret, ".dockercfg").into_iter().collect(),
        "kubernetes.io/dockerconfigjson" => validate_json(secret, ".dockerconfigjson").into_iter().collect(),
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => {
            vec![missing("username"), missing("password")]
        }
        "kubernetes.io/ssh-auth" if !has("ssh-privatekey") => vec![missing("ssh-privatekey")],
        "kubernetes.io/tls" => ["tls.crt", "tls.key"].into_iter().filter(|key| !has(key)).map(missing).collect(),
        _ => Vec::new(),
    }
}

fn validate_json(secret: &Value, key: &str) -> Option<Violation> {
    let path = format!("data[{key}]");
    let Some(encoded) = secret["data"][key].as_str() else {
        return Some(Violation::required(path, ""));
    };
    let bytes = STANDARD.decode(encoded).unwrap_or_default();
    let why = match Document::json(&bytes).and_then(Document::untyped) {
        Ok(decoded) if decoded.value.is_object() || decoded.value.is_null() => return None,
        Ok(decoded) => {
            let kind = match decoded.value {
                Value::Array(_) => "array",
                Value::String(_) => "string",
                Value::Bool(_) => "bool",
                _ => "number",
            };
            format!("json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}")
        }
        Err(DecodeError::Json(why) | DecodeError::Yaml(why) | DecodeError::Type(why)) => why,
    };
    Some(Violation::invalid(path, "<secret contents redacted>", &why))
}
