//! PersistentVolumes and their claims.

mod claim;

use super::meta::{self, metadata_mut};
use super::{at, fill, set, within};
use serde_json::{Value, json};

pub(super) use claim::validate_claim_spec;
pub use claim::{validate_claim, validate_claim_status};

/// Sets the defaults of a claim.
// pkg/apis/core/v1/defaults.go
pub fn default_claim(object: &mut Value) {
    fill(at(object, "spec"), "volumeMode", "Filesystem");
}

/// Sets the defaults of a volume.
pub fn default_volume(object: &mut Value) {
    let spec = at(object, "spec");
    fill(spec, "persistentVolumeReclaimPolicy", "Retain");
    fill(spec, "volumeMode", "Filesystem");
    if let Some(path) = within(spec, "hostPath") {
        fill(path, "type", "");
    }
}

/// The class of a claim: the annotation takes precedence over the field that replaced it.
// component-helpers/storage/volume/helpers.go, GetPersistentVolumeClaimClass
pub fn claim_class(claim: &Value) -> Option<&str> {
    let annotation = claim["metadata"]["annotations"].get("volume.beta.kubernetes.io/storage-class");
    annotation.or_else(|| claim["spec"].get("storageClassName"))?.as_str()
}

/// Sets the initial phase of a new claim.
pub fn prepare_claim(object: &mut Value, live: Option<&Value>) {
    if live.is_none() {
        drop_unknown_source(at(object, "spec"));
    }
    normalize_source(at(object, "spec"));
    if live.is_none() {
        object["status"] = json!({"phase": "Pending"});
    }
}

/// Drops a `dataSource` that is neither a claim nor a snapshot.
// pkg/api/persistentvolumeclaim/util.go, EnforceDataSourceBackwardsCompatibility
fn drop_unknown_source(spec: &mut Value) {
    let Some(source) = spec.get("dataSource").filter(|source| source.is_object()) else {
        return;
    };
    let group = source.get("apiGroup").and_then(Value::as_str).unwrap_or_default();
    let known = match source.get("kind").and_then(Value::as_str) {
        Some("PersistentVolumeClaim") => group.is_empty(),
        Some("VolumeSnapshot") => group == "snapshot.storage.k8s.io",
        _ => false,
    };
    let has_reference = spec.get("dataSourceRef").is_some_and(Value::is_object);
    if let Some(members) = spec.as_object_mut().filter(|_| !known && !has_reference) {
        members.remove("dataSource");
    }
}

/// Keeps `dataSource` and `dataSourceRef` of a claim equal.
// pkg/api/persistentvolumeclaim/util.go, NormalizeDataSources
fn normalize_source(spec: &mut Value) {
    let (source, reference) = (spec["dataSource"].take(), spec["dataSourceRef"].take());
    let has_namespace = reference["namespace"].as_str().is_some_and(|name| !name.is_empty());
    let (source, reference) = match (source.is_object(), reference.is_object()) {
        (true, false) => (source.clone(), source),
        (false, true) if !has_namespace => (reference.clone(), reference),
        _ => (source, reference),
    };
    for (field, mut value) in [("dataSource", source), ("dataSourceRef", reference)] {
        fill(&mut value, "apiGroup", Value::Null);
        match (value, spec.as_object_mut()) {
            (Value::Null, Some(members)) => drop(members.remove(field)),
            (value, Some(members)) => drop(members.insert(field.to_owned(), value)),
            _ => {}
        }
    }
}

/// Sets the initial phase of a new volume.
// pkg/registry/core/persistentvolume/strategy.go: the phase begins when the volume does
pub fn prepare_volume(object: &mut Value, live: Option<&Value>) {
    if live.is_none() {
        let since = meta::text(object, "creationTimestamp").to_owned();
        set(object, "status", json!({"phase": "Pending", "lastPhaseTransitionTime": since}));
    }
}

/// Adds a finalizer to an object that lacks it.
// plugin/pkg/admission/storage/storageobjectinuseprotection
pub fn protect(object: &mut Value, finalizer: &str) {
    if !meta::finalizers(object).contains(&finalizer) {
        let finalizers = metadata_mut(object).entry("finalizers").or_insert_with(|| json!([]));
        if let Some(finalizers) = finalizers.as_array_mut() {
            finalizers.push(finalizer.into());
        }
    }
}
