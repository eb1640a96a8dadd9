//! PodDisruptionBudgets.

use super::rules::{amount_or_share, at_most_all, maybe_one_of, none_negative, selector};
use super::spot::Spot;
use crate::violation::Violation;
use serde_json::{Value, json};

/// Validates a budget.
// pkg/apis/policy/validation/validation.go, ValidatePodDisruptionBudgetSpec
pub fn validate(object: &Value, _live: Option<&Value>) -> Vec<Violation> {
    let mut found = Vec::new();
    let root = Spot::root(object);
    let spec = root.field("spec");
    let (available, unavailable) = (spec.field("minAvailable"), spec.field("maxUnavailable"));
    if available.is_set() && unavailable.is_set() {
        spec.invalid_as(&mut found, shown(spec.value), "minAvailable and maxUnavailable cannot be both set");
    }
    for amount in [available, unavailable].iter().filter(|amount| amount.is_set()) {
        amount_or_share(amount, &mut found);
        at_most_all(amount, &mut found);
    }
    selector(&spec.field("selector"), &mut found);
    maybe_one_of(&spec.field("unhealthyPodEvictionPolicy"), &["AlwaysAllow", "IfHealthyBudget"], &mut found);
    found
}

/// A budget's spec as Go prints its internal type.
fn shown(spec: &Value) -> Value {
    json!({
        "MinAvailable": spec["minAvailable"],
        "Selector": spec["selector"],
        "MaxUnavailable": spec["maxUnavailable"],
        "UnhealthyPodEvictionPolicy": spec["unhealthyPodEvictionPolicy"],
    })
}

/// Validates the status of a budget.
pub fn validate_status(object: &Value, _live: &Value) -> Vec<Violation> {
    const COUNTS: [&str; 4] = ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"];
    let mut found = Vec::new();
    let root = Spot::root(object);
    none_negative(&root.field("status"), &COUNTS, &mut found);
    found
}
