//! Validation of HorizontalPodAutoscalers.
// pkg/apis/autoscaling/validation/validation.go

use super::metric;
use crate::builtin::rules::{empty, maybe_one_of, named, none_negative, one_of};
use crate::builtin::spot::{Found, Spot};
use crate::names;
use crate::violation::Violation;
use serde_json::Value;

const MOST_WINDOW: i64 = 3600;
const MOST_PERIOD: i64 = 1800;

/// Validates an autoscaler.
pub fn validate(object: &Value, _live: Option<&Value>) -> Vec<Violation> {
    let mut found = Vec::new();
    let v2 = super::as_v2(object);
    let root = Spot::root(&v2);
    let spec = root.field("spec");
    replicas(&spec, &mut found);
    reference(&spec.field("scaleTargetRef"), &mut found);
    metric::validate_all(&spec, &mut found);
    for direction in ["scaleUp", "scaleDown"] {
        let behavior = spec.field("behavior");
        let rules = behavior.field(direction);
        if rules.is_set() {
            scaling(&rules, &mut found);
        }
    }
    found
}

fn replicas(spec: &Spot<'_>, found: &mut Found) {
    let (least, most) = (spec.field("minReplicas"), spec.field("maxReplicas"));
    if least.is_set() && least.int() < 1 {
        least.invalid(found, "must be greater than or equal to 1");
    }
    match most.int() {
        0 => most.required(found, "must be set and greater than 0"),
        number if number < 0 => most.invalid(found, "must be greater than or equal to 1"),
        _ => {}
    }
    if least.is_set() && most.int() < least.int() {
        most.invalid_as(found, most.int(), "must be greater than or equal to `minReplicas`");
    }
}

/// A reference to the scaled object or to the object of a metric.
pub(super) fn reference(reference: &Spot<'_>, found: &mut Found) {
    described(reference, found);
    let version = reference.field("apiVersion");
    match version.text() {
        "" => version.invalid_as(found, "", "apiVersion must specify API group"),
        text if text.matches('/').count() > 1 => {
            version.invalid(found, &format!("unexpected GroupVersion string: {text}"));
        }
        _ => {}
    }
}

/// The same with an optional API version.
pub(super) fn described(reference: &Spot<'_>, found: &mut Found) {
    for field in ["kind", "name"] {
        if !empty(&reference.field(field), found) {
            named(&reference.field(field), names::path_segment, found);
        }
    }
}

fn scaling(rules: &Spot<'_>, found: &mut Found) {
    let (window, policies) = (rules.field("stabilizationWindowSeconds"), rules.field("policies"));
    if window.int() < 0 {
        window.invalid(found, "must be greater than or equal to zero");
    }
    if window.int() > MOST_WINDOW {
        window.invalid(found, &format!("must be less than or equal to {MOST_WINDOW}"));
    }
    maybe_one_of(&rules.field("selectPolicy"), &["Disabled", "Max", "Min"], found);
    if policies.len() == 0 {
        policies.required(found, "must specify at least one Policy");
    }
    for policy in policies.items() {
        one_of(&policy.field("type"), &["Percent", "Pods"], found);
        for field in ["value", "periodSeconds"] {
            if policy.field(field).int() <= 0 {
                policy.field(field).invalid(found, "must be greater than zero");
            }
        }
        if policy.field("periodSeconds").int() > MOST_PERIOD {
            policy
                .field("periodSeconds")
                .invalid(found, &format!("must be less than or equal to {MOST_PERIOD}"));
        }
    }
}

/// Validates the status of an autoscaler.
pub fn validate_status(object: &Value, _live: &Value) -> Vec<Violation> {
    let mut found = Vec::new();
    let root = Spot::root(object);
    none_negative(&root.field("status"), &["currentReplicas", "desiredReplicas"], &mut found);
    found
}
