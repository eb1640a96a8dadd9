//! What clients are told of objects that are taken although something is odd about them.

use crate::kinds::spec::Enforcement;
use crate::registry::object::{self, metadata_mut};
use crate::request::context::ResourceRequest;
use serde_json::Value;
use std::collections::HashSet;

/// Removes duplicate owner references, with a warning.
// apiserver/pkg/endpoints/handlers/rest.go, dedupOwnerReferencesAndAddWarning
pub(crate) fn owners(request: &ResourceRequest, object: &mut Value) {
    let Some(owners) = metadata_mut(object).get_mut("ownerReferences").and_then(Value::as_array_mut) else {
        return;
    };
    let mut seen = HashSet::with_capacity(owners.len());
    let mut duplicates = Vec::new();
    owners.retain(|owner| {
        let is_new = seen.insert(owner.to_string());
        if !is_new {
            duplicates.push(owner["uid"].as_str().unwrap_or_default().to_owned());
        }
        is_new
    });
    if !duplicates.is_empty() {
        request.warn(format!(
            ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may \
             reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
            duplicates.join(", ")
        ));
    }
}

/// Warns of new finalizers of a custom resource that are not qualified by a domain.
// apiextensions-apiserver/pkg/registry/customresource/strategy.go, generateWarningsFromObj
pub(crate) fn finalizers(request: &ResourceRequest, object: &Value, live: Option<&Value>) {
    if request.kind.custom.is_none() {
        return;
    }
    const STANDARD: [&str; 2] = ["orphan", "foregroundDeletion"];
    let before = live.map(object::finalizers).unwrap_or_default();
    let new = object::finalizers(object).into_iter().filter(|name| !before.contains(name));
    for name in new.filter(|name| !name.contains('/') && !STANDARD.contains(name)) {
        request.warn(format!(
            "metadata.finalizers: {name:?}: prefer a domain-qualified finalizer name including a path (/) to avoid \
             accidental conflicts with other finalizer writers"
        ));
    }
}

/// Adds the warnings of an object's kind.
pub(crate) fn kind(request: &ResourceRequest, object: &Value) {
    (request.kind.spec.warnings)(object).into_iter().for_each(|text| request.warn(text));
}

/// Warns that an object is stored and nothing more.
pub(crate) fn unenforced(request: &ResourceRequest) {
    if request.kind.spec.enforcement == Enforcement::StoredOnly {
        request.warn(format!("{} is stored, but this server does not act on it", request.kind.resource.kind));
    }
}
