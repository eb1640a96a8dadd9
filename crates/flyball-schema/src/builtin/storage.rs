//! StorageClasses, CSIDrivers, PriorityClasses and FlowSchemas: small things that the whole cluster shares.

use super::{at, fill, fill_zero, within};
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
