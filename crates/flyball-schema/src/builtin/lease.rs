//! Leases.

use crate::violation::Violation;
use serde_json::Value;

/// Finds what is wrong with a lease.
// pkg/apis/coordination/validation/validation.go, ValidateLeaseSpec
pub fn validate(lease: &Value, _live: Option<&Value>) -> Vec<Violation> {
    let spec = &lease["spec"];
    let mut violations = Vec::new();
    if let Some(seconds) = spec["leaseDurationSeconds"].as_i64().filter(|seconds| *seconds <= 0) {
        violations.push(Violation::invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0"));
    }
    if let Some(transitions) = spec["leaseTransitions"].as_i64().filter(|transitions| *transitions < 0) {
        let why = "must be greater than or equal to 0";
        violations.push(Violation::invalid("spec.leaseTransitions", transitions, why));
    }
    violations
}
