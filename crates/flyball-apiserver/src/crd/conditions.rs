//! The conditions in a definition's status.

use crate::crd::FINALIZER;
use crate::registry::object::{self, field_mut, metadata_mut};
use serde_json::{Value, json};

/// Sets a condition; its time changes only if its status does.
// apiextensions-apiserver/pkg/apihelpers/helpers.go, SetCRDCondition
pub(crate) fn set(definition: &mut Value, kind: &str, status: &str, reason: &str, message: &str, now: &str) {
    let conditions = field_mut(definition, "status").entry("conditions").or_insert_with(|| json!([]));
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let conditions = conditions.as_array_mut().expect("made an array above");
    let mut condition =
        json!({"type": kind, "status": status, "lastTransitionTime": now, "reason": reason, "message": message});
    match conditions.iter_mut().find(|condition| condition["type"] == kind) {
        Some(old) => {
            if old["status"] == status {
                condition["lastTransitionTime"] = old["lastTransitionTime"].clone();
            }
            *old = condition;
        }
        None => conditions.push(condition),
    }
}

/// Whether a condition is true.
pub(crate) fn is_true(definition: &Value, kind: &str) -> bool {
    find(definition, kind).is_some_and(|condition| condition["status"] == "True")
}

/// A condition.
pub(crate) fn find<'a>(definition: &'a Value, kind: &str) -> Option<&'a Value> {
    definition["status"]["conditions"]
        .as_array()?
        .iter()
        .find(|condition| condition["type"] == kind)
}

/// Marks a definition for deletion: adds the finalizer under which its objects are deleted first.
// apiextensions-apiserver/pkg/registry/customresourcedefinition/etcd.go, Delete
pub(crate) fn terminate(definition: &mut Value, now: &str) {
    if !object::finalizers(definition).contains(&FINALIZER) {
        let finalizers = metadata_mut(definition).entry("finalizers").or_insert_with(|| json!([]));
        if let Some(finalizers) = finalizers.as_array_mut() {
            finalizers.push(FINALIZER.into());
        }
    }
    let message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
    set(definition, "Terminating", "True", "InstanceDeletionPending", message, now);
}
