//! NetworkPolicies.

use super::{at, fill};
use serde_json::{Value, json};

/// Fills in which directions a NetworkPolicy governs, and the protocol of its ports.
// pkg/apis/networking/v1/defaults.go
pub fn default_policy(object: &mut Value) {
    let spec = at(object, "spec");
    let has_egress = spec["egress"].as_array().is_some_and(|rules| !rules.is_empty());
    let types = if has_egress {
        json!(["Ingress", "Egress"])
    } else {
        json!(["Ingress"])
    };
    fill(spec, "policyTypes", types);
    for direction in ["ingress", "egress"] {
        let rules = spec.get_mut(direction).and_then(Value::as_array_mut).into_iter().flatten();
        for port in rules.flat_map(|rule| rule.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten()) {
            fill(port, "protocol", "TCP");
        }
    }
}
