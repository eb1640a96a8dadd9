//! Validation of a Job's failure policy and success policy.
// pkg/apis/batch/validation/validation.go, validatePodFailurePolicy and validateSuccessPolicy

use super::indexes;
use crate::builtin::rules::{non_negative, one_of, qualified};
use crate::builtin::spot::{Found, Spot};
use crate::violation::{Reason, Violation};
use serde_json::{Value, json};
use std::collections::HashSet;

const ACTIONS: [&str; 4] = ["Count", "FailIndex", "FailJob", "Ignore"];

/// `podFailurePolicy`.
pub(super) fn failure(spec: &Spot<'_>, found: &mut Found) {
    let policy = spec.field("podFailurePolicy");
    let rules = policy.field("rules");
    if rules.len() > 20 {
        rules.too_many(found, 20);
    }
    for rule in rules.items() {
        action(&rule.field("action"), spec, found);
        if rule.field("onExitCodes").is_set() {
            exit_codes(&rule.field("onExitCodes"), spec, found);
        }
        conditions(&rule.field("onPodConditions"), found);
        let why = match (rule.field("onExitCodes").is_set(), rule.field("onPodConditions").len() > 0) {
            (true, true) => "specifying both OnExitCodes and OnPodConditions is not supported",
            (false, false) => "specifying one of OnExitCodes and OnPodConditions is required",
            _ => continue,
        };
        found.push(Violation::plain(rule.path(), Reason::Invalid, why));
    }
}

fn action(action: &Spot<'_>, spec: &Spot<'_>, found: &mut Found) {
    match action.text() {
        "" => action.required(found, "valid values: [\"Count\" \"FailIndex\" \"FailJob\" \"Ignore\"]"),
        "FailIndex" if !spec.field("backoffLimitPerIndex").is_set() => {
            action.invalid(found, "requires the backoffLimitPerIndex to be set");
        }
        _ => one_of(action, &ACTIONS, found),
    }
}

fn exit_codes(codes: &Spot<'_>, spec: &Spot<'_>, found: &mut Found) {
    let (operator, name, values) = (codes.field("operator"), codes.field("containerName"), codes.field("values"));
    match operator.text() {
        "" => operator.required(found, "valid values: [\"In\" \"NotIn\"]"),
        _ => one_of(&operator, &["In", "NotIn"], found),
    }
    if name.is_set() && !has_container(spec, name.text()) {
        name.invalid(found, "must be one of the container or initContainer names in the pod template");
    }
    if values.len() == 0 {
        let shown = if values.is_set() { json!([]) } else { Value::Null };
        values.invalid_as(found, shown, "at least one value is required");
    } else if values.len() > 255 {
        values.too_many(found, 255);
    }
    let (mut seen, mut last, mut ordered) = (HashSet::new(), i64::MIN, true);
    for value in values.items() {
        if operator.text() == "In" && value.int() == 0 {
            value.invalid(found, "must not be 0 for the In operator");
        }
        if !seen.insert(value.int()) {
            value.duplicate(found, value.int());
        }
        ordered &= last <= value.int();
        last = value.int();
    }
    if !ordered {
        values.invalid(found, "must be ordered");
    }
}

fn has_container(spec: &Spot<'_>, name: &str) -> bool {
    let pod = &spec.value["template"]["spec"];
    let lists =
        ["containers", "initContainers"].map(|list| pod[list].as_array().map(Vec::as_slice).unwrap_or_default());
    lists.into_iter().flatten().any(|container| container["name"] == name)
}

fn conditions(conditions: &Spot<'_>, found: &mut Found) {
    if conditions.len() > 20 {
        conditions.too_many(found, 20);
    }
    for condition in conditions.items() {
        qualified(&condition.field("type"), found);
        one_of(&condition.field("status"), &["False", "True", "Unknown"], found);
    }
}

/// `successPolicy`.
pub(super) fn success(spec: &Spot<'_>, found: &mut Found) {
    let policy = spec.field("successPolicy");
    if !policy.is_set() {
        return;
    }
    if spec.field("completionMode").text() != "Indexed" {
        return policy.invalid_as(found, shown(policy.value), "requires indexed completion mode");
    }
    let rules = policy.field("rules");
    if rules.len() == 0 {
        rules.required(found, "at least one rules must be specified when the successPolicy is specified");
    }
    if rules.len() > 20 {
        rules.too_many(found, 20);
    }
    for rule in rules.items() {
        let count = rule.field("succeededCount");
        if !count.is_set() && !rule.field("succeededIndexes").is_set() {
            rule.required(found, "at least one of succeededCount or succeededIndexes must be specified");
        }
        let completions = spec.field("completions").int();
        let total = succeeded_indexes(&rule.field("succeededIndexes"), completions, found);
        non_negative(&count, found);
        if count.int() > completions {
            let why = format!("must be less than or equal to {completions} (the number of specified completions)");
            count.invalid(found, &why);
        }
        if let Some(total) = total.filter(|total| count.int() > *total) {
            let what = "(the number of indexes in the specified succeededIndexes field)";
            count.invalid(found, &format!("must be less than or equal to {total} {what}"));
        }
    }
}

/// The number of indexes that must succeed, if they are listed.
fn succeeded_indexes(named: &Spot<'_>, completions: i64, found: &mut Found) -> Option<i64> {
    const LONGEST: usize = 64 << 10;
    if !named.is_set() {
        return None;
    }
    if named.len() > LONGEST {
        named.too_long(found, LONGEST as u64);
    }
    let total = indexes::count(named.text(), completions);
    if let Err(why) = &total {
        named.invalid(found, &format!("error parsing succeededIndexes: {why}"));
    }
    Some(total.unwrap_or(0))
}

/// A success policy as Go prints its internal type.
fn shown(policy: &Value) -> Value {
    let rules = policy["rules"].as_array().into_iter().flatten();
    let rule =
        |rule: &Value| json!({"SucceededIndexes": rule["succeededIndexes"], "SucceededCount": rule["succeededCount"]});
    json!({"Rules": rules.map(rule).collect::<Vec<_>>()})
}
