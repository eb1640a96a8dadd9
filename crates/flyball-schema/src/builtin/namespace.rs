//! Namespaces.

use super::at;
use super::meta::{self, metadata_mut};
use serde_json::{Value, json};

/// The label by which selectors find a namespace.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// Labels a namespace with its name.
// pkg/apis/core/v1/defaults.go, SetDefaults_Namespace
pub fn default(namespace: &mut Value) {
    let name = meta::name(namespace).to_owned();
    if name.is_empty() {
        return;
    }
    let labels = metadata_mut(namespace).entry("labels").or_insert_with(|| json!({}));
    if let Some(labels) = labels.as_object_mut() {
        labels.insert(NAME_LABEL.to_owned(), name.into());
    }
}

/// Gives a new namespace its finalizer and phase; an update changes neither.
// pkg/registry/core/namespace/strategy.go
pub fn prepare(namespace: &mut Value, live: Option<&Value>) {
    if let Some(live) = live {
        let finalizers = live["spec"]["finalizers"].clone();
        let spec = at(namespace, "spec");
        match finalizers {
            Value::Null => *spec = json!({}),
            finalizers => spec["finalizers"] = finalizers,
        }
        return;
    }
    default(namespace);
    let spec = at(namespace, "spec");
    match spec["finalizers"].as_array_mut() {
        Some(finalizers) if finalizers.iter().any(|name| name == "kubernetes") => {}
        Some(finalizers) => finalizers.push("kubernetes".into()),
        None => spec["finalizers"] = json!(["kubernetes"]),
    }
    namespace["status"] = json!({"phase": "Active"});
}

/// Whether something has still to happen before a namespace goes.
pub fn has_finalizers(namespace: &Value) -> bool {
    namespace["spec"]["finalizers"]
        .as_array()
        .is_some_and(|finalizers| !finalizers.is_empty())
}
