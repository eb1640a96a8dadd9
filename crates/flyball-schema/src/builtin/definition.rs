//! CustomResourceDefinitions as objects. The kinds that they define are handled by `definition`.

use super::{at, fill, set, within};
use crate::definition;
use crate::metadata;
use crate::names::NameRule;
use crate::violation::Violation;
use serde_json::{Value, json};

/// Sets the names that follow from the kind, the conversion strategy `None`, and the port of a conversion webhook.
// apiextensions-apiserver/pkg/apis/apiextensions/v1/defaults.go
pub fn default(definition: &mut Value) {
    let spec = at(definition, "spec");
    let names = at(spec, "names");
    if let Some(kind) = names["kind"].as_str().map(str::to_owned).filter(|kind| !kind.is_empty()) {
        fill(names, "singular", kind.to_lowercase());
        fill(names, "listKind", format!("{kind}List"));
    }
    fill(spec, "conversion", json!({"strategy": "None"}));
    let webhook = within(at(spec, "conversion"), "webhook");
    let service = webhook
        .and_then(|webhook| within(webhook, "clientConfig"))
        .and_then(|it| within(it, "service"));
    if let Some(service) = service {
        fill(service, "port", 443);
    }
}

/// Sets the initial status of a new definition, and adds the storage version to `storedVersions`.
// apiextensions-apiserver/pkg/registry/customresourcedefinition/strategy.go
pub fn prepare(definition: &mut Value, live: Option<&Value>) {
    if live.is_none() {
        set(
            definition,
            "status",
            json!({"acceptedNames": {"kind": "", "plural": ""}, "conditions": null}),
        );
    }
    let versions = definition["spec"]["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let stored = versions.iter().find(|version| version["storage"] == true);
    let Some(name) = stored.and_then(|version| version["name"].as_str()).map(str::to_owned) else {
        return;
    };
    let status = at(definition, "status");
    fill(status, "storedVersions", json!([]));
    if let Some(versions) = status["storedVersions"].as_array_mut()
        && !versions.iter().any(|version| *version == name)
    {
        versions.push(name.into());
    }
}

/// Validates a definition.
pub fn validate(definition: &Value, live: Option<&Value>) -> Vec<Violation> {
    match live {
        Some(live) => definition::validate_update(definition, live),
        None => {
            // Metadata is validated for every kind alike.
            let known = metadata::validate(&definition["metadata"], false, NameRule::Subdomain, "metadata");
            let found = definition::validate(definition);
            found.into_iter().filter(|violation| !known.contains(violation)).collect()
        }
    }
}
