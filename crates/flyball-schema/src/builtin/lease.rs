//! Leases.

use super::rules::non_negative;
use super::spot::Spot;
use super::within;
use crate::violation::Violation;
use serde_json::Value;

/// Validates a lease.
// pkg/apis/coordination/validation/validation.go, ValidateLeaseSpec
pub fn validate(lease: &Value, _live: Option<&Value>) -> Vec<Violation> {
    let mut found = Vec::new();
    let root = Spot::root(lease);
    let spec = root.field("spec");
    let duration = spec.field("leaseDurationSeconds");
    if duration.is_set() && duration.int() <= 0 {
        duration.invalid(&mut found, "must be greater than 0");
    }
    non_negative(&spec.field("leaseTransitions"), &mut found);
    found
}

/// Drops the fields of a feature gate that is off by default: coordinated leader election.
// pkg/registry/coordination/lease/strategy.go, dropDisabledFields
pub fn prepare(lease: &mut Value, _live: Option<&Value>) {
    if let Some(spec) = within(lease, "spec").and_then(Value::as_object_mut) {
        spec.remove("strategy");
        spec.remove("preferredHolder");
    }
}
