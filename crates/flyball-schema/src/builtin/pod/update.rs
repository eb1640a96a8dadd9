//! The fields of a pod that an update must not change.
// pkg/apis/core/validation/validation.go, ValidatePodUpdate

use super::{container, scheduling};
use crate::builtin::items;
use crate::builtin::rules::{empty, within};
use crate::builtin::spot::{Found, Spot};
use serde_json::Value;
use std::collections::HashSet;

const CHANGEABLE: &str = "pod updates may not change fields other than `spec.containers[*].image`,\
    `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
    `spec.tolerations` (only additions to existing tolerations),\
    `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// Validates an update of a pod's spec.
pub(super) fn validate(new: &Spot<'_>, old: &Spot<'_>, found: &mut Found) {
    for list in ["containers", "initContainers"] {
        if !same_containers(&new.field(list), &old.field(list), found) {
            return;
        }
    }
    if !deadline(&new.field("activeDeadlineSeconds"), &old.field("activeDeadlineSeconds"), found) {
        return;
    }
    only_added(&new.field("tolerations"), &old.field("tolerations"), found);
    only_removed(&new.field("schedulingGates"), &old.field("schedulingGates"), found);
    if !is_same_but_for_what_may_change(new.value, old.value) {
        new.forbidden(found, CHANGEABLE);
    }
}

fn same_containers(new: &Spot<'_>, old: &Spot<'_>, found: &mut Found) -> bool {
    if new.len() != old.len() {
        new.forbidden(found, "pod updates may not add or remove containers");
        return false;
    }
    for one in new.items() {
        empty(&one.field("image"), found);
        container::trimmed_image(&one, found);
    }
    true
}

fn deadline(new: &Spot<'_>, old: &Spot<'_>, found: &mut Found) -> bool {
    let before = found.len();
    if !new.is_set() {
        if old.is_set() {
            new.invalid(found, "must not update from a positive integer to nil value");
        }
        return true;
    }
    within(new, 0, i64::from(i32::MAX), found);
    if found.len() == before && old.is_set() && old.int() < new.int() {
        new.invalid(found, "must be less than or equal to previous value");
    }
    found.len() == before
}

fn only_added(new: &Spot<'_>, old: &Spot<'_>, found: &mut Found) {
    let timeless = |toleration: &Value| {
        let mut members = toleration.as_object().cloned().unwrap_or_default();
        members.remove("tolerationSeconds");
        Value::Object(members).to_string()
    };
    let list = |spot: &Spot<'_>| -> HashSet<String> { spot.items().map(|one| timeless(one.value)).collect() };
    if !list(old).is_subset(&list(new)) {
        new.forbidden(found, "existing toleration can not be modified except its tolerationSeconds");
        return;
    }
    scheduling::tolerations(new, found);
}

fn only_removed(new: &Spot<'_>, old: &Spot<'_>, found: &mut Found) {
    let known: HashSet<String> = old.items().map(|gate| gate.field("name").text().to_owned()).collect();
    for gate in new.items() {
        let name = gate.field("name");
        if !known.contains(name.text()) {
            let why = format!("only deletion is allowed, but found new scheduling gate '{}'", name.text());
            name.forbidden(found, &why);
        }
    }
}

fn is_same_but_for_what_may_change(new: &Value, old: &Value) -> bool {
    let mut allowed = new.clone();
    for list in ["containers", "initContainers"] {
        let images = old[list].as_array().map(Vec::as_slice).unwrap_or_default();
        for (container, old) in items(&mut allowed, list).zip(images) {
            put(container, "image", &old["image"]);
        }
    }
    let mut free = vec!["activeDeadlineSeconds", "tolerations", "schedulingGates", "nodeName"];
    let grace = "terminationGracePeriodSeconds";
    if old[grace].as_i64().is_some_and(|seconds| seconds < 0) && new[grace] == 1 {
        free.push(grace);
    }
    if old["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty()) {
        free.extend(["nodeSelector", "affinity"]);
    }
    free.into_iter().for_each(|field| put(&mut allowed, field, &old[field]));
    allowed == *old
}

fn put(object: &mut Value, field: &str, value: &Value) {
    if let Some(members) = object.as_object_mut() {
        match value {
            Value::Null => members.remove(field),
            value => members.insert(field.to_owned(), value.clone()),
        };
    }
}
