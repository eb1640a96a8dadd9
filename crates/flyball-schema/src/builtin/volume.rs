//! PersistentVolumes and their claims.

use super::meta::{self, metadata_mut};
use super::{at, fill, within};
use serde_json::{Value, json};

/// Fills in what a claim leaves out.
// pkg/apis/core/v1/defaults.go
pub fn default_claim(object: &mut Value) {
    fill(at(object, "spec"), "volumeMode", "Filesystem");
}

/// Fills in what a volume leaves out.
pub fn default_volume(object: &mut Value) {
    let spec = at(object, "spec");
    fill(spec, "persistentVolumeReclaimPolicy", "Retain");
    fill(spec, "volumeMode", "Filesystem");
    if let Some(path) = within(spec, "hostPath") {
        fill(path, "type", "");
    }
}

/// Gives a new claim its first phase, and the finalizer that keeps it while it is in use.
pub fn prepare_claim(object: &mut Value, live: Option<&Value>) {
    if live.is_none() {
        object["status"] = json!({"phase": "Pending"});
        protect(object, "kubernetes.io/pvc-protection");
    }
}

/// Gives a new volume its first phase, and the finalizer that keeps it while it is in use.
// pkg/registry/core/persistentvolume/strategy.go: the phase begins when the volume does
pub fn prepare_volume(object: &mut Value, live: Option<&Value>) {
    if live.is_none() {
        let since = meta::text(object, "creationTimestamp").to_owned();
        object["status"] = json!({"phase": "Pending", "lastPhaseTransitionTime": since});
        protect(object, "kubernetes.io/pv-protection");
    }
}

// plugin/pkg/admission/storage/storageobjectinuseprotection
fn protect(object: &mut Value, finalizer: &str) {
    if !meta::finalizers(object).contains(&finalizer) {
        let finalizers = metadata_mut(object).entry("finalizers").or_insert_with(|| json!([]));
        if let Some(finalizers) = finalizers.as_array_mut() {
            finalizers.push(finalizer.into());
        }
    }
}
