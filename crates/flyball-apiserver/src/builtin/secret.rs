//! Secrets.

use super::{at, fill};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flyball_schema::violation::Violation;
use serde_json::Value;

/// Gives a secret its type, and moves `stringData` into `data`.
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

/// Finds what is wrong with a secret.
// pkg/apis/core/validation/validation.go, ValidateSecret and ValidateSecretUpdate
pub fn validate(secret: &Value, live: Option<&Value>) -> Vec<Violation> {
    let mut violations = super::config_map::validate_keys(&secret["data"], "data");
    violations.extend(super::config_map::validate_size(secret, &["data"]));
    let Some(live) = live else { return violations };
    if secret["type"] != live["type"] {
        violations.push(Violation::invalid("type", secret["type"].clone(), "field is immutable"));
    }
    violations.extend(super::config_map::validate_immutable(secret, live, &["data"]));
    violations
}
