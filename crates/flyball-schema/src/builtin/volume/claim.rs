//! Validation of PersistentVolumeClaims.
// pkg/apis/core/validation/validation.go, ValidatePersistentVolumeClaimSpec and ValidatePersistentVolumeClaimUpdate

use crate::builtin::rules::{empty, label, maybe_one_of, one_of, optional, quantity, selector, subdomain};
use crate::builtin::spot::{Found, Spot};
use crate::violation::Violation;
use serde_json::Value;

const MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

/// Validates a claim.
pub fn validate_claim(object: &Value, live: Option<&Value>) -> Vec<Violation> {
    let mut found = Vec::new();
    let root = Spot::root(object);
    validate_claim_spec(&root.field("spec"), &mut found);
    if let Some(live) = live {
        fixed(&root, live, &mut found);
    }
    found
}

/// A claim's spec, in a claim, a StatefulSet or a pod.
pub(in crate::builtin) fn validate_claim_spec(spec: &Spot<'_>, found: &mut Found) {
    let modes = spec.field("accessModes");
    if modes.len() == 0 {
        modes.required(found, "at least 1 access mode is required");
    }
    selector(&spec.field("selector"), found);
    access_modes(spec, found);
    storage(&spec.field("resources"), found);
    optional(&spec.field("storageClassName"), subdomain, found);
    maybe_one_of(&spec.field("volumeMode"), &["Block", "Filesystem"], found);
    source(&spec.field("dataSource"), found);
    source(&spec.field("dataSourceRef"), found);
    optional(&spec.field("dataSourceRef").field("namespace"), label, found);
    optional(&spec.field("volumeAttributesClassName"), subdomain, found);
}

fn access_modes(spec: &Spot<'_>, found: &mut Found) {
    let modes: Vec<&Value> = spec.value["accessModes"].as_array().into_iter().flatten().collect();
    modes.iter().for_each(|mode| one_of(&spec.with("accessModes", mode), &MODES, found));
    let is_single = |mode: &&&Value| ***mode == "ReadWriteOncePod";
    let is_other = |mode: &&Value| mode.as_str().is_some_and(|mode| MODES[..3].contains(&mode));
    if modes.iter().any(|mode| is_single(&mode)) && modes.iter().any(is_other) {
        spec.field("accessModes")
            .forbidden(found, "may not use ReadWriteOncePod with other access modes");
    }
}

/// The requested storage; upstream reports violations at `resources`.
fn storage(resources: &Spot<'_>, found: &mut Found) {
    let told = resources.key("storage");
    match quantity(&resources.value["requests"]["storage"]) {
        None => told.required(found, ""),
        Some(size) if size.is_negative() || size.is_zero() => {
            told.invalid_as(found, size.to_string(), "must be greater than zero");
        }
        Some(_) => {}
    }
}

fn source(source: &Spot<'_>, found: &mut Found) {
    if !source.is_set() {
        return;
    }
    empty(&source.field("name"), found);
    empty(&source.field("kind"), found);
    let (group, kind) = (source.field("apiGroup"), source.field("kind"));
    if group.text().is_empty() && kind.text() != "PersistentVolumeClaim" {
        let why = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
        source.invalid_as(found, kind.text(), why);
    }
    optional(&group, subdomain, found);
}

fn fixed(new: &Spot<'_>, old: &Value, found: &mut Found) {
    let spec = new.field("spec");
    let is_bound = new.value["status"]["phase"] == "Bound";
    let kept = |spec: &Value| {
        let mut spec = spec.clone();
        if let Some(members) = spec.as_object_mut() {
            if old["spec"]["volumeName"].as_str().unwrap_or_default().is_empty() {
                members.remove("volumeName");
            }
            if is_bound {
                members.remove("resources");
                members.remove("volumeAttributesClassName");
            }
            if old["spec"]["storageClassName"].is_null() {
                members.remove("storageClassName");
            }
        }
        spec
    };
    if kept(spec.value) != kept(&old["spec"]) {
        let why = "spec is immutable after creation except resources.requests and volumeAttributesClassName \
            for bound claims";
        spec.forbidden(found, why);
    }
    not_below_capacity(&spec, old, found);
}

fn not_below_capacity(spec: &Spot<'_>, old: &Value, found: &mut Found) {
    let size = |value: &Value| quantity(value);
    let capacity = size(&old["status"]["capacity"]["storage"]);
    let (new, before) = (
        size(&spec.value["resources"]["requests"]["storage"]),
        size(&old["spec"]["resources"]["requests"]["storage"]),
    );
    if let (Some(new), Some(before)) = (new, before)
        && new < before
        && capacity.is_some_and(|capacity| new <= capacity)
    {
        let resources = spec.field("resources");
        let requests = resources.field("requests");
        requests.field("storage").forbidden(found, "field can not be less than status.capacity");
    }
}

/// Validates the status of a claim.
pub fn validate_claim_status(object: &Value, _live: &Value) -> Vec<Violation> {
    let mut found = Vec::new();
    let root = Spot::root(object);
    for (_, amount) in root.field("status").field("capacity").entries() {
        if let Some(quantity) = quantity(amount.value).filter(|quantity| quantity.is_negative()) {
            let whole: Value = quantity.to_string().parse::<i64>().map_or(Value::Null, Value::from);
            amount.invalid_as(&mut found, whole, "must be a valid resource quantity");
        }
    }
    found
}
