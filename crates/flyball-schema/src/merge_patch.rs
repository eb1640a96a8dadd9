//! JSON merge patch: RFC 7396, with the one liberty that Kubernetes' library takes.

use serde_json::Value;

/// Merges a patch into a value: objects merge field by field, `null` removes, everything else replaces.
// evanphx/json-patch v4, merge.go
pub fn apply(target: &mut Value, patch: &Value) {
    match (target, patch) {
        (Value::Object(target), Value::Object(changes)) => {
            for (name, change) in changes {
                if change.is_null() {
                    target.remove(name);
                } else {
                    apply(target.entry(name.as_str()).or_insert(Value::Null), change);
                }
            }
        }
        // Where an object was, an array is taken as it is; elsewhere nulls inside its objects go.
        (target @ Value::Object(_), _) => *target = patch.clone(),
        (target, _) => *target = without_nulls(patch),
    }
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(name, value)| (name.clone(), without_nulls(value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_nulls).collect()),
        _ => value.clone(),
    }
}
