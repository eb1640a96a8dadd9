//! Nodes.

use super::{at, fill};
use serde_json::{Value, json};

/// Taints a new node until it says that it is ready.
// plugin/pkg/admission/nodetaint/admission.go
pub fn prepare(node: &mut Value, live: Option<&Value>) {
    if live.is_some() {
        return;
    }
    const KEY: &str = "node.kubernetes.io/not-ready";
    let spec = at(node, "spec");
    fill(spec, "taints", json!([]));
    if let Some(taints) = spec["taints"].as_array_mut()
        && !taints.iter().any(|taint| taint["key"] == KEY && taint["effect"] == "NoSchedule")
    {
        taints.push(json!({"key": KEY, "effect": "NoSchedule"}));
    }
}
