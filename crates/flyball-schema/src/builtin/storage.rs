//! StorageClasses, CSIDrivers and CSINodes, PriorityClasses, FlowSchemas and ResourceClaims: small things of few fields.

use super::{at, fill, fill_zero, items, within};
use serde_json::{Value, json};

/// Fills in what a StorageClass leaves out.
// pkg/apis/storage/v1/defaults.go
pub fn default_class(class: &mut Value) {
    fill(class, "reclaimPolicy", "Delete");
    fill(class, "volumeBindingMode", "Immediate");
}

/// Fills in what a CSIDriver leaves out.
pub fn default_driver(driver: &mut Value) {
    let spec = at(driver, "spec");
    fill(spec, "attachRequired", true);
    fill(spec, "podInfoOnMount", false);
    fill(spec, "storageCapacity", false);
    fill(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
    fill(spec, "volumeLifecycleModes", json!(["Persistent"]));
    fill(spec, "requiresRepublish", false);
    fill(spec, "seLinuxMount", false);
}

/// Fills in what a PriorityClass leaves out.
pub fn default_priority(class: &mut Value) {
    fill(class, "preemptionPolicy", "PreemptLowerPriority");
}

/// Fills in what a FlowSchema leaves out.
pub fn default_flow(flow: &mut Value) {
    fill_zero(at(flow, "spec"), "matchingPrecedence", 1000);
}

/// Fills in what a PriorityLevelConfiguration leaves out.
// pkg/apis/flowcontrol/v1/defaults.go
pub fn default_level(level: &mut Value) {
    if let Some(limited) = within(at(level, "spec"), "limited") {
        fill(limited, "nominalConcurrencyShares", 30);
        fill(limited, "lendablePercent", 0);
    }
}

/// Writes that a CSINode has no drivers, or a driver no topology, as Go does.
pub fn default_node(node: &mut Value) {
    let spec = at(node, "spec");
    fill(spec, "drivers", Value::Null);
    items(spec, "drivers").for_each(|driver| fill(driver, "topologyKeys", Value::Null));
}

/// No drivers are nothing once they are stored.
pub fn prepare_node(node: &mut Value, _live: Option<&Value>) {
    let spec = at(node, "spec");
    if spec["drivers"].as_array().is_some_and(Vec::is_empty) {
        spec["drivers"] = Value::Null;
    }
}

/// Fills in what a ResourceClaim leaves out: one device of each.
// pkg/apis/resource/v1/defaults.go
pub fn default_claim(claim: &mut Value) {
    let Some(devices) = within(at(claim, "spec"), "devices") else {
        return;
    };
    fill(devices, "requests", Value::Null);
    for request in items(devices, "requests") {
        items(request, "firstAvailable").for_each(default_request);
        within(request, "exactly").into_iter().for_each(default_request);
    }
}

fn default_request(request: &mut Value) {
    fill_zero(request, "allocationMode", "ExactCount");
    if request["allocationMode"] == "ExactCount" {
        fill_zero(request, "count", 1);
    }
}
