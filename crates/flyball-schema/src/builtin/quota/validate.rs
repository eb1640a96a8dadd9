//! Validation of ResourceQuotas.
// pkg/apis/core/validation/validation.go, ValidateResourceQuota

use crate::builtin::resources::{amount, known_name};
use crate::builtin::rules::{IMMUTABLE, quantity};
use crate::builtin::spot::{Found, Spot};
use crate::violation::Violation;
use serde_json::Value;
use std::collections::BTreeSet;

const POD_COMPUTE: [&str; 6] = [
    "cpu",
    "memory",
    "limits.cpu",
    "limits.memory",
    "requests.cpu",
    "requests.memory",
];
const COUNTED: [&str; 9] = [
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];
const OTHERS: [&str; 4] = [
    "ephemeral-storage",
    "requests.storage",
    "requests.ephemeral-storage",
    "limits.ephemeral-storage",
];
const EXISTING: [&str; 5] = [
    "BestEffort",
    "NotBestEffort",
    "Terminating",
    "NotTerminating",
    "CrossNamespacePodAffinity",
];
const CONFLICTING: [[&str; 2]; 2] = [["BestEffort", "NotBestEffort"], ["Terminating", "NotTerminating"]];

/// Validates a quota.
pub fn validate(quota: &Value, live: Option<&Value>) -> Vec<Violation> {
    let mut found = Vec::new();
    let root = Spot::root(quota);
    let spec = root.field("spec");
    amounts(&spec.field("hard"), &mut found);
    scopes(&spec, &mut found);
    if spec.field("scopeSelector").is_set() {
        selector(&spec, &mut found);
    }
    if let Some(live) = live {
        let set = |quota: &Value| -> BTreeSet<String> { texts(&quota["spec"]["scopes"]).into_iter().collect() };
        if set(quota) != set(live) {
            spec.field("scopes").invalid(&mut found, IMMUTABLE);
        }
    }
    found
}

/// Validates the status of a quota.
// ValidateResourceQuotaStatusUpdate
pub fn validate_status(quota: &Value, _live: &Value) -> Vec<Violation> {
    let mut found = Vec::new();
    let root = Spot::root(quota);
    let status = root.field("status");
    amounts(&status.field("hard"), &mut found);
    amounts(&status.field("used"), &mut found);
    found
}

fn is_standard(name: &str) -> bool {
    let is_huge = name.starts_with("hugepages-") || name.starts_with("requests.hugepages-");
    [&POD_COMPUTE[..], &COUNTED, &OTHERS].iter().any(|names| names.contains(&name)) || is_huge
}

fn amounts(hard: &Spot<'_>, found: &mut Found) {
    for (name, spot) in hard.entries() {
        known_name(name, &spot, found);
        if !name.contains('/') && !is_standard(name) {
            spot.invalid_as(found, name, "must be a standard resource for quota");
        }
        amount(name, &spot, found);
        let is_broken = quantity(spot.value).filter(|amount| !amount.is_whole());
        if let (true, Some(amount)) = (COUNTED.contains(&name), is_broken) {
            spot.invalid_as(found, amount.to_string(), "must be an integer");
        }
    }
}

/// Whether a quota of that resource may have that scope.
// IsResourceQuotaScopeValidForResource
fn is_applicable(scope: &str, name: &str) -> bool {
    match scope {
        "BestEffort" => name == "pods",
        "VolumeAttributesClass" => matches!(name, "persistentvolumeclaims" | "requests.storage"),
        scope if is_known(scope) => name == "pods" || POD_COMPUTE.contains(&name),
        _ => true,
    }
}

fn is_known(scope: &str) -> bool {
    EXISTING.contains(&scope) || matches!(scope, "PriorityClass" | "VolumeAttributesClass")
}

fn inapplicable(spec: &Spot<'_>, scope: &str) -> usize {
    let hard = spec.value["hard"].as_object().into_iter().flatten();
    hard.filter(|(name, _)| is_standard(name) && !is_applicable(scope, name)).count()
}

fn scopes(spec: &Spot<'_>, found: &mut Found) {
    let scopes = spec.field("scopes");
    let all = texts(scopes.value);
    for scope in &all {
        if !is_known(scope) {
            scopes.invalid(found, "unsupported scope");
        }
        for _ in 0..inapplicable(spec, scope) {
            scopes.invalid(found, "unsupported scope applied to resource");
        }
    }
    conflicts(&scopes, &all, scopes.value, found);
}

fn conflicts(spot: &Spot<'_>, all: &[String], shown: &Value, found: &mut Found) {
    for pair in CONFLICTING {
        if pair.iter().all(|scope| all.iter().any(|one| one == scope)) {
            spot.invalid_as(found, shown.clone(), "conflicting scopes");
        }
    }
}

// validateScopedResourceSelectorRequirement
fn selector(spec: &Spot<'_>, found: &mut Found) {
    let selector = spec.field("scopeSelector");
    let expressions = selector.field("matchExpressions");
    let mut all = Vec::new();
    for requirement in expressions.value.as_array().into_iter().flatten() {
        let text = |field: &str| requirement[field].as_str().unwrap_or_default();
        let (scope, operator) = (text("scopeName"), text("operator"));
        if !is_known(scope) {
            expressions
                .with("scopeName", &requirement["scopeName"])
                .invalid(found, "unsupported scope");
        }
        for _ in 0..inapplicable(spec, scope) {
            expressions.invalid_as(found, selector.value.clone(), "unsupported scope applied to resource");
        }
        let spot = expressions.with("operator", &requirement["operator"]);
        if EXISTING.contains(&scope) && operator != "Exists" {
            let why = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, \
                ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or \
                ResourceQuotaScopeCrossNamespacePodAffinity";
            spot.invalid(found, why);
        }
        let values = expressions.with("values", &requirement["values"]);
        match operator {
            "In" | "NotIn" if values.len() == 0 => {
                let why = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
                values.required(found, why);
            }
            "Exists" | "DoesNotExist" if values.len() > 0 => {
                let why = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
                values.invalid(found, why);
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => spot.invalid(found, "not a valid selector operator"),
        }
        all.push(scope.to_owned());
    }
    conflicts(&expressions, &all, &spec.value["scopes"], found);
}

fn texts(list: &Value) -> Vec<String> {
    let texts = list.as_array().into_iter().flatten().filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}
