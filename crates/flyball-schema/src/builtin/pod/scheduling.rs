//! Validation of tolerations, readiness and scheduling gates, and topology spread constraints.
// pkg/apis/core/validation/validation.go, ValidateTolerations and validateTopologySpreadConstraints

use crate::builtin::rules::{maybe_one_of, one_of, qualified, selector};
use crate::builtin::spot::{Found, Spot};
use crate::names;
use std::collections::HashSet;

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// `tolerations`.
pub(super) fn tolerations(tolerations: &Spot<'_>, found: &mut Found) {
    tolerations.items().for_each(|one| toleration(&one, found));
}

fn toleration(toleration: &Spot<'_>, found: &mut Found) {
    let (key, operator) = (toleration.field("key"), toleration.field("operator"));
    let (value, effect) = (toleration.field("value"), toleration.field("effect"));
    if !key.text().is_empty() {
        qualified(&key, found);
    } else if operator.text() != "Exists" {
        let why = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
        operator.invalid_as(found, operator.text(), why);
    }
    if toleration.field("tolerationSeconds").is_set() && effect.text() != "NoExecute" {
        let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        effect.invalid_as(found, effect.text(), why);
    }
    match operator.text() {
        "Equal" | "" => {
            let wrong = names::label_value(value.text());
            if !wrong.is_empty() {
                operator.invalid_as(found, value.text(), &wrong.join(";"));
            }
        }
        "Exists" if !value.text().is_empty() => {
            operator.invalid_as(found, value.text(), "value must be empty when `operator` is 'Exists'");
        }
        "Exists" => {}
        "Lt" | "Gt" => operator.unsupported(found, &["Equal", "Exists", "Lt", "Gt"]),
        _ => operator.unsupported(found, &["Equal", "Exists"]),
    }
    if !effect.text().is_empty() {
        one_of(&effect, &EFFECTS, found);
    }
}

/// `readinessGates`.
pub(super) fn readiness_gates(gates: &Spot<'_>, found: &mut Found) {
    gates.items().for_each(|gate| qualified(&gate.field("conditionType"), found));
}

/// `schedulingGates`.
pub(super) fn gates(gates: &Spot<'_>, found: &mut Found) {
    let mut names = HashSet::new();
    for gate in gates.items() {
        let name = gate.field("name").text().to_owned();
        names::qualified_name(&name)
            .iter()
            .for_each(|why| gate.invalid_as(found, name.as_str(), why));
        if !names.insert(name.clone()) {
            gate.duplicate(found, name);
        }
    }
}

/// `topologySpreadConstraints`.
pub(super) fn spread(constraints: &Spot<'_>, found: &mut Found) {
    let all: Vec<Spot<'_>> = constraints.items().collect();
    for (index, constraint) in all.iter().enumerate() {
        above_zero(&constraint.field("maxSkew"), found);
        let (key, action) = (constraint.field("topologyKey"), constraint.field("whenUnsatisfiable"));
        if key.text().is_empty() {
            key.required(found, "can not be empty");
        }
        one_of(&action, &["DoNotSchedule", "ScheduleAnyway"], found);
        let same = |other: &Spot<'_>| {
            other.field("topologyKey").text() == key.text() && other.field("whenUnsatisfiable").text() == action.text()
        };
        if all[index + 1..].iter().any(same) {
            let pair = format!("{{{}, {}}}", key.text(), action.text());
            constraint.field("{topologyKey, whenUnsatisfiable}").duplicate(found, pair);
        }
        min_domains(&constraint.field("minDomains"), action.text(), found);
        maybe_one_of(&constraint.field("nodeAffinityPolicy"), &["Honor", "Ignore"], found);
        maybe_one_of(&constraint.field("nodeTaintsPolicy"), &["Honor", "Ignore"], found);
        selector(&constraint.field("labelSelector"), found);
    }
}

fn above_zero(spot: &Spot<'_>, found: &mut Found) {
    if spot.int() <= 0 {
        spot.invalid_as(found, spot.int(), "must be greater than zero");
    }
}

fn min_domains(domains: &Spot<'_>, action: &str, found: &mut Found) {
    if !domains.is_set() {
        return;
    }
    above_zero(domains, found);
    if action != "DoNotSchedule" {
        let why = format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
        domains.invalid(found, &why);
    }
}
