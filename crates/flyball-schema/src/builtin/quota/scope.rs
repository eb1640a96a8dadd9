//! The scopes of a quota: which objects it measures.
// pkg/quota/v1/evaluator/core/{pods,persistent_volume_claims}.go

use super::{Resource, items};
use crate::builtin::pod;
use crate::selector::{LabelOperator, LabelRequirement};
use serde_json::Value;

/// Whether an object is in all scopes of a quota; only pods and claims have scopes.
// generic.Matches
pub fn includes(resource: Resource<'_>, quota: &Value, object: &Value) -> bool {
    let spec = &quota["spec"];
    let named = items(&spec["scopes"]).filter_map(Value::as_str);
    let mut named = named.map(|scope| (scope, LabelOperator::Exists, Vec::new()));
    let mut selected = items(&spec["scopeSelector"]["matchExpressions"]).map(|requirement| {
        let operator = match requirement["operator"].as_str() {
            Some("In") => LabelOperator::In,
            Some("NotIn") => LabelOperator::NotIn,
            Some("Exists") => LabelOperator::Exists,
            _ => LabelOperator::DoesNotExist,
        };
        let values = items(&requirement["values"]).filter_map(Value::as_str).map(str::to_owned).collect();
        (requirement["scopeName"].as_str().unwrap_or_default(), operator, values)
    });
    let is_in = |(scope, operator, values): (&str, LabelOperator, Vec<String>)| {
        let requirement = LabelRequirement { key: scope.to_owned(), operator, values };
        match (resource.group, resource.plural) {
            ("", "pods") => includes_pod(&requirement, object),
            ("", "persistentvolumeclaims") => includes_claim(&requirement, object),
            _ => false,
        }
    };
    named.all(is_in) && selected.all(is_in)
}

// podMatchesScopeFunc
fn includes_pod(scope: &LabelRequirement, pod: &Value) -> bool {
    match scope.key.as_str() {
        "Terminating" => is_terminating(pod),
        "NotTerminating" => !is_terminating(pod),
        "BestEffort" => pod::is_best_effort(pod),
        "NotBestEffort" => !pod::is_best_effort(pod),
        "PriorityClass" => scope.matches(named(&pod["spec"]["priorityClassName"])),
        "CrossNamespacePodAffinity" => is_across_namespaces(&pod["spec"]["affinity"]),
        _ => false,
    }
}

/// Whether a pod ends by itself.
pub(super) fn is_terminating(pod: &Value) -> bool {
    pod["spec"]["activeDeadlineSeconds"].as_i64().is_some_and(|seconds| seconds >= 0)
}

// usesCrossNamespacePodAffinity
fn is_across_namespaces(affinity: &Value) -> bool {
    let is_across = |term: &Value| {
        let namespaces = term["namespaces"].as_array();
        namespaces.is_some_and(|all| !all.is_empty()) || term["namespaceSelector"].is_object()
    };
    ["podAffinity", "podAntiAffinity"].iter().any(|kind| {
        let preferred = items(&affinity[kind]["preferredDuringSchedulingIgnoredDuringExecution"]);
        let mut required = items(&affinity[kind]["requiredDuringSchedulingIgnoredDuringExecution"]);
        required.any(is_across) || preferred.map(|term| &term["podAffinityTerm"]).any(is_across)
    })
}

// pvcMatchesScopeFunc
fn includes_claim(scope: &LabelRequirement, claim: &Value) -> bool {
    if scope.key != "VolumeAttributesClass" {
        return false;
    }
    let status = &claim["status"];
    let classes = [
        &claim["spec"]["volumeAttributesClassName"],
        &status["currentVolumeAttributesClassName"],
        &status["modifyVolumeStatus"]["targetVolumeAttributesClassName"],
    ];
    let classes: Vec<&str> = classes.into_iter().filter_map(named).collect();
    match classes.is_empty() {
        true => scope.matches(None),
        false => classes.into_iter().any(|class| scope.matches(Some(class))),
    }
}

fn named(name: &Value) -> Option<&str> {
    name.as_str().filter(|name| !name.is_empty())
}
