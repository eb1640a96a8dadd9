//! LimitRanges.

use super::{at, fill, items};
use serde_json::Value;

/// Sets the container limits that follow from each other.
// pkg/apis/core/v1/defaults.go, SetDefaults_LimitRangeItem
pub fn default(object: &mut Value) {
    for item in items(at(object, "spec"), "limits").filter(|item| item["type"] == "Container") {
        for (from, to) in [
            ("max", "default"),
            ("default", "defaultRequest"),
            ("min", "defaultRequest"),
        ] {
            let known = item[from].as_object().cloned().unwrap_or_default();
            if known.is_empty() {
                continue;
            }
            let limits = at(item, to);
            known.into_iter().for_each(|(name, amount)| fill(limits, &name, amount));
        }
    }
}
