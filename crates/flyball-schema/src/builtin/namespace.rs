//! Namespaces.

use super::at;
use super::meta::{self, metadata_mut};
use super::rules::qualified;
use super::spot::Spot;
use crate::violation::Violation;
use serde_json::{Value, json};

/// The label with the name of a namespace, for selectors.
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

/// Validates a namespace.
// pkg/apis/core/validation/validation.go, ValidateNamespace
pub fn validate(namespace: &Value, live: Option<&Value>) -> Vec<Violation> {
    const STANDARD: [&str; 3] = ["kubernetes", "orphan", "foregroundDeletion"];
    let mut found = Vec::new();
    let root = Spot::root(namespace);
    let spec = root.field("spec");
    for finalizer in namespace["spec"]["finalizers"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|_| live.is_none())
    {
        let told = spec.with("finalizers", finalizer);
        qualified(&told, &mut found);
        if !told.text().contains('/') && !STANDARD.contains(&told.text()) {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            told.invalid(&mut found, why);
        }
    }
    found
}

/// Sets the finalizer and the phase of a new namespace; an update changes neither.
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

/// Whether a namespace still has finalizers in `spec.finalizers`.
pub fn has_finalizers(namespace: &Value) -> bool {
    namespace["spec"]["finalizers"]
        .as_array()
        .is_some_and(|finalizers| !finalizers.is_empty())
}
