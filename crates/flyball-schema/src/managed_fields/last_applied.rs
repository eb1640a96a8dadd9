//! From client-side to server-side apply: what manager `kubectl` had in its annotation is no conflict for it.

use super::Request;
use super::check::{Duplicates, check};
use super::compare::compare;
use super::conflict::Conflicts;
use super::fields_of::fields_of;
use crate::go_text;
use serde_json::{Value, json};

/// The only manager that this is done for.
pub(super) const MANAGER: &str = "kubectl";

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
const MOST_ANNOTATION_BYTES: usize = 256 * 1024;

/// Says which conflicts remain once what the annotation says is so is left out; none may be forced.
// apimachinery, util/managedfields/internal/lastappliedmanager.go
pub(super) fn forgive(request: &Request<'_>, live: &Value, conflicts: Conflicts) -> Result<(), Conflicts> {
    let Some(allowed) = annotation(live).and_then(|text| allowed(request, live, text)) else {
        return Err(conflicts);
    };
    let left: Vec<_> = conflicts.0.into_iter().filter(|conflict| !allowed.contains(&conflict.field)).collect();
    if left.is_empty() { Ok(()) } else { Err(Conflicts(left)) }
}

/// The paths that the annotation and the live object agree on.
fn allowed(request: &Request<'_>, live: &Value, annotation: &str) -> Option<Vec<String>> {
    let last: Value = serde_json::from_str(annotation).ok()?;
    if last.get("apiVersion").and_then(Value::as_str) != Some(request.api_version) {
        return None;
    }
    check(request.ty(), live, Duplicates::Refused).ok()?;
    check(request.ty(), &last, Duplicates::Refused).ok()?;
    let comparison = compare(request.ty(), &last, live);
    let mut fields = fields_of(request.ty(), &last);
    for changed in [&comparison.modified, &comparison.added, &comparison.removed] {
        fields.subtract(changed);
    }
    let mut paths = Vec::new();
    fields.for_each(&mut |path| paths.push(path.iter().map(ToString::to_string).collect()));
    Some(paths)
}

fn annotation(object: &Value) -> Option<&str> {
    let text = object.get("metadata")?.get("annotations")?.get(ANNOTATION)?.as_str()?;
    (!text.is_empty()).then_some(text)
}

/// What the annotation becomes, if the object has one and it changes.
// apimachinery, util/managedfields/internal/lastappliedupdater.go
pub(super) fn renewed(request: &Request<'_>, object: &Value, config: &Value) -> Option<String> {
    if request.manager != MANAGER {
        return None;
    }
    let old = annotation(object)?;
    let mut config = config.clone();
    if let Some(Value::Object(annotations)) = config.pointer_mut("/metadata/annotations") {
        annotations.remove(ANNOTATION);
    }
    let new = go_text::json(&config) + "\n";
    (new != old).then_some(new)
}

/// Sets the annotation, or removes it where annotations would become too large.
pub(super) fn annotate(object: &mut Value, text: String) {
    let Some(metadata) = object.get_mut("metadata") else {
        return;
    };
    let Some(annotations) = metadata["annotations"].as_object_mut() else {
        return;
    };
    annotations.insert(ANNOTATION.into(), json!(text));
    let bytes: usize = annotations
        .iter()
        .map(|(name, value)| name.len() + value.as_str().map_or(0, str::len))
        .sum();
    if bytes > MOST_ANNOTATION_BYTES {
        annotations.remove(ANNOTATION);
    }
}
