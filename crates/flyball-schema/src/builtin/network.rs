//! NetworkPolicies, IngressClasses, Endpoints and EndpointSlices.

mod ingress;
mod policy;

use super::{at, fill, fill_zero, items, within};
use serde_json::{Value, json};

pub use ingress::{validate_ingress, validate_ingress_status};
pub use policy::validate_policy;

/// Sets the policy types of a NetworkPolicy and the protocol of its ports.
// pkg/apis/networking/v1/defaults.go
pub fn default_policy(object: &mut Value) {
    let spec = at(object, "spec");
    let has_egress = spec.get("egress").and_then(Value::as_array).is_some_and(|rules| !rules.is_empty());
    let types = if has_egress {
        json!(["Ingress", "Egress"])
    } else {
        json!(["Ingress"])
    };
    let is_empty = spec.get("policyTypes").and_then(Value::as_array).is_none_or(Vec::is_empty);
    if is_empty {
        spec["policyTypes"] = types;
    }
    for direction in ["ingress", "egress"] {
        for rule in items(spec, direction) {
            items(rule, "ports").for_each(|port| fill_zero(port, "protocol", "TCP"));
        }
    }
}

/// Sets the defaults of an IngressClass.
pub fn default_ingress_class(class: &mut Value) {
    if let Some(parameters) = within(class, "spec").and_then(|spec| within(spec, "parameters")) {
        fill(parameters, "scope", "Cluster");
    }
}

/// Sets the protocol of the ports of Endpoints.
pub fn default_endpoints(endpoints: &mut Value) {
    for subset in items(endpoints, "subsets") {
        items(subset, "ports").for_each(|port| fill(port, "protocol", "TCP"));
    }
}

/// Sets the name and protocol of the ports of an EndpointSlice.
// pkg/apis/discovery/v1/defaults.go
pub fn default_slice(slice: &mut Value) {
    for port in items(slice, "ports") {
        fill(port, "name", "");
        fill(port, "protocol", "TCP");
    }
}
