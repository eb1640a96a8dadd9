//! Defaults of kinds with few fields: StorageClass, CSIDriver, CSINode, ResourceClaim.

use super::{at, fill, fill_zero, items, within};
use serde_json::{Value, json};

/// Sets the defaults of a StorageClass.
// pkg/apis/storage/v1/defaults.go
pub fn default_class(class: &mut Value) {
    fill(class, "reclaimPolicy", "Delete");
    fill(class, "volumeBindingMode", "Immediate");
}

/// Sets the defaults of a CSIDriver.
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

/// Writes absent drivers and topology keys of a CSINode as `null`, as Go does.
pub fn default_node(node: &mut Value) {
    let spec = at(node, "spec");
    fill(spec, "drivers", Value::Null);
    items(spec, "drivers").for_each(|driver| fill(driver, "topologyKeys", Value::Null));
}

/// Writes an empty list of drivers as `null`.
pub fn prepare_node(node: &mut Value, _live: Option<&Value>) {
    let spec = at(node, "spec");
    if spec["drivers"].as_array().is_some_and(Vec::is_empty) {
        spec["drivers"] = Value::Null;
    }
}

/// Sets the defaults of a ResourceClaim: one device per request.
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
