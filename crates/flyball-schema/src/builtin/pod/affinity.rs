//! Validation of the affinity of pods.
// pkg/apis/core/validation/validation.go, validateAffinity

use crate::builtin::rules::{label, named, qualified, selector, subdomain};
use crate::builtin::spot::{Found, Spot};
use crate::names;

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// `affinity`.
pub(super) fn validate(affinity: &Spot<'_>, found: &mut Found) {
    node(&affinity.field("nodeAffinity"), found);
    pods(&affinity.field("podAffinity"), found);
    pods(&affinity.field("podAntiAffinity"), found);
}

fn node(affinity: &Spot<'_>, found: &mut Found) {
    let required = affinity.field(REQUIRED);
    if required.is_set() {
        node_selector(&required, found);
    }
    for term in affinity.field(PREFERRED).items() {
        weight(&term.field("weight"), found);
        node_term(&term.field("preference"), false, found);
    }
}

fn weight(weight: &Spot<'_>, found: &mut Found) {
    if !(1..=100).contains(&weight.int()) {
        weight.invalid_as(found, weight.int(), "must be in the range 1-100");
    }
}

/// Node selector terms, of which a node must match at least one.
fn node_selector(selector: &Spot<'_>, found: &mut Found) {
    let terms = selector.field("nodeSelectorTerms");
    if terms.len() == 0 {
        terms.required(found, "must have at least one node selector term");
    }
    terms.items().for_each(|term| node_term(&term, true, found));
}

fn node_term(term: &Spot<'_>, values_are_checked: bool, found: &mut Found) {
    for requirement in term.field("matchExpressions").items() {
        node_requirement(&requirement, found);
        for value in requirement.field("values").items().filter(|_| values_are_checked) {
            named(&value, names::label_value, found);
        }
    }
    term.field("matchFields").items().for_each(|requirement| node_field(&requirement, found));
}

fn node_requirement(requirement: &Spot<'_>, found: &mut Found) {
    let (operator, values) = (requirement.field("operator"), requirement.field("values"));
    match operator.text() {
        "In" | "NotIn" if values.len() == 0 => {
            values.required(found, "must be specified when `operator` is 'In' or 'NotIn'");
        }
        "Exists" | "DoesNotExist" if values.len() > 0 => {
            values.forbidden(found, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
        }
        "Gt" | "Lt" if values.len() != 1 => {
            values.required(found, "must be specified single value when `operator` is 'Lt' or 'Gt'");
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
        other => operator.invalid_as(found, other, "not a valid selector operator"),
    }
    qualified(&requirement.field("key"), found);
}

fn node_field(requirement: &Spot<'_>, found: &mut Found) {
    let (operator, values) = (requirement.field("operator"), requirement.field("values"));
    match operator.text() {
        "In" | "NotIn" if values.len() != 1 => {
            let why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
            values.required(found, why);
        }
        "In" | "NotIn" => {}
        other => operator.invalid_as(found, other, "not a valid selector operator"),
    }
    match requirement.field("key").text() {
        "metadata.name" => values.items().for_each(|value| subdomain(&value, found)),
        other => requirement.field("key").invalid_as(found, other, "not a valid field selector key"),
    }
}

fn pods(affinity: &Spot<'_>, found: &mut Found) {
    affinity.field(REQUIRED).items().for_each(|term| pod_term(&term, found));
    for term in affinity.field(PREFERRED).items() {
        weight(&term.field("weight"), found);
        pod_term(&term.field("podAffinityTerm"), found);
    }
}

fn pod_term(term: &Spot<'_>, found: &mut Found) {
    selector(&term.field("labelSelector"), found);
    selector(&term.field("namespaceSelector"), found);
    for name in term.value["namespaces"].as_array().into_iter().flatten() {
        label(&term.with("namespace", name), found);
    }
    let key = term.field("topologyKey");
    if key.text().is_empty() {
        key.required(found, "can not be empty");
    }
    qualified(&key, found);
}
