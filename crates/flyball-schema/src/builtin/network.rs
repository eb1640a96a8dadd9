//! NetworkPolicies, IngressClasses, Endpoints and EndpointSlices.

use super::{at, fill, items, within};
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
    if let Some(members) = spec.as_object_mut() {
        members.retain(|_, value| !value.is_null());
    }
    fill(spec, "policyTypes", types);
    for direction in ["ingress", "egress"] {
        for rule in items(spec, direction) {
            items(rule, "ports").for_each(|port| fill(port, "protocol", "TCP"));
        }
    }
}

/// Fills in what an IngressClass leaves out.
pub fn default_ingress_class(class: &mut Value) {
    if let Some(parameters) = within(class, "spec").and_then(|spec| within(spec, "parameters")) {
        fill(parameters, "scope", "Cluster");
    }
}

/// Fills in the protocol of the ports of Endpoints.
pub fn default_endpoints(endpoints: &mut Value) {
    for subset in items(endpoints, "subsets") {
        items(subset, "ports").for_each(|port| fill(port, "protocol", "TCP"));
    }
}

/// Fills in the name and protocol of the ports of an EndpointSlice.
// pkg/apis/discovery/v1/defaults.go
pub fn default_slice(slice: &mut Value) {
    for port in items(slice, "ports") {
        fill(port, "name", "");
        fill(port, "protocol", "TCP");
    }
}
