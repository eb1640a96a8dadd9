//! Nodes.

use super::{at, fill};
use serde_json::{Value, json};

/// `podCIDR` is the first of `podCIDRs`, and takes precedence where they differ.
// pkg/apis/core/v1/conversion.go, Convert_v1_NodeSpec_To_core_NodeSpec
pub fn default(node: &mut Value) {
    let spec = at(node, "spec");
    let first = spec["podCIDRs"][0].as_str().unwrap_or_default().to_owned();
    match spec["podCIDR"].as_str().unwrap_or_default().to_owned() {
        one if one.is_empty() && !first.is_empty() => spec["podCIDR"] = first.into(),
        one if !one.is_empty() && one != first => spec["podCIDRs"] = json!([one]),
        _ => {}
    }
}

/// Adds the not-ready taint to a new node.
// plugin/pkg/admission/nodetaint/admission.go
pub fn taint(node: &mut Value) {
    const KEY: &str = "node.kubernetes.io/not-ready";
    let spec = at(node, "spec");
    fill(spec, "taints", json!([]));
    if let Some(taints) = spec["taints"].as_array_mut()
        && !taints.iter().any(|taint| taint["key"] == KEY && taint["effect"] == "NoSchedule")
    {
        taints.push(json!({"key": KEY, "effect": "NoSchedule"}));
    }
}
