//! What is wrong with a CustomResourceDefinition: its names, versions, schemas, columns, subresources, conversion.
// apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go

mod approval;
mod conversion;
mod internal;
mod names;
mod version;

pub(crate) use internal::{rule as internal_rule, schema as internal_schema};

use crate::metadata;
use crate::names::{NameRule, dns1035_label, dns1123_subdomain};
use crate::violation::Violation;
use serde_json::Value;
use std::collections::HashSet;
use version::Hoisted;

/// What is wrong with a definition that is being created; its defaults have been filled in.
pub fn validate(definition: &Value) -> Vec<Violation> {
    let mut found = metadata::validate(&definition["metadata"], false, NameRule::Subdomain, "metadata");
    let name = text(&definition["metadata"], "name");
    let required = format!("{}.{}", text(&definition["spec"]["names"], "plural"), text(&definition["spec"], "group"));
    if !name.is_empty() && name != required {
        let detail = "must be spec.names.plural+\".\"+spec.group";
        // Complaints about the name come before all others.
        let place = found.iter().take_while(|violation| violation.path == "metadata.name").count();
        found.insert(place, Violation::invalid("metadata.name", name, detail));
    }
    found.extend(validate_spec(&definition["spec"], None));
    found.extend(validate_rest(definition));
    found.extend(approval::check(definition, None));
    found.extend(preserves_unknown(definition));
    found
}

/// What is wrong with a definition that is being updated.
pub fn validate_update(definition: &Value, old: &Value) -> Vec<Violation> {
    let (spec, old_spec) = (&definition["spec"], &old["spec"]);
    let mut found = metadata::validate_update(&definition["metadata"], &old["metadata"], "metadata");
    found.extend(validate_spec(spec, Some(old_spec)));
    let mut immutable = |path: &str, new: &Value, old: &Value| {
        if new != old {
            found.push(Violation::invalid(path, new.clone(), "field is immutable"));
        }
    };
    if is_established(old) {
        immutable("spec.scope", &spec["scope"], &old_spec["scope"]);
        immutable("spec.names.kind", &spec["names"]["kind"], &old_spec["names"]["kind"]);
    }
    immutable("spec.group", &spec["group"], &old_spec["group"]);
    immutable("spec.names.plural", &spec["names"]["plural"], &old_spec["names"]["plural"]);
    found.extend(validate_rest(definition));
    found.extend(approval::check(definition, Some(old)));
    if old_spec["preserveUnknownFields"] != true {
        found.extend(preserves_unknown(definition));
    }
    found
}

fn is_established(definition: &Value) -> bool {
    let mut conditions = definition["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|condition| condition["type"] == "Established" && condition["status"] == "True")
}

fn validate_spec(spec: &Value, old: Option<&Value>) -> Vec<Violation> {
    let mut found: Vec<_> = group(spec).into_iter().chain(scope(spec)).collect();
    let versions = items(spec, "versions");
    let hoisted = Hoisted::of(versions);
    if hoisted.schema.is_none_or(|schema| schema["openAPIV3Schema"].is_null()) {
        for (index, version) in versions.iter().enumerate() {
            if version["schema"]["openAPIV3Schema"].is_null() {
                found.push(Violation::required(format!("spec.versions[{index}].schema.openAPIV3Schema"), ""));
            }
        }
    }
    for (index, version) in versions.iter().enumerate() {
        let name = text(version, "name");
        let wrong = dns1035_label(name);
        if !wrong.is_empty() {
            found.push(Violation::invalid(format!("spec.versions[{index}].name"), name, &wrong.join(",")));
        }
        found.extend(version::check(version, &hoisted, old, &format!("spec.versions[{index}]")));
    }
    found.extend(version_list(spec, &hoisted));
    found.extend(names::required(&spec["names"]));
    found.extend(names::check(&spec["names"], "spec.names"));
    found.extend(version::check_fields(hoisted.fields(spec, old), "spec"));
    found.extend(conversion::check(&spec["conversion"]));
    found
}

fn group(spec: &Value) -> Option<Violation> {
    let group = text(spec, "group");
    if group.is_empty() {
        return Some(Violation::required("spec.group", ""));
    }
    let wrong = dns1123_subdomain(group);
    if !wrong.is_empty() {
        return Some(Violation::invalid("spec.group", group, &wrong.join(",")));
    }
    (!group.contains('.')).then(|| Violation::invalid("spec.group", group, "should be a domain with at least one dot"))
}

fn scope(spec: &Value) -> Option<Violation> {
    match text(spec, "scope") {
        "" => Some(Violation::required("spec.scope", "")),
        "Cluster" | "Namespaced" => None,
        other => Some(Violation::not_supported("spec.scope", other, &["Cluster", "Namespaced"])),
    }
}

/// Names of versions are unique, and objects are stored in exactly one.
fn version_list(spec: &Value, hoisted: &Hoisted<'_>) -> Vec<Violation> {
    let versions = items(spec, "versions");
    let mut seen = HashSet::new();
    let unique = versions.iter().all(|version| seen.insert(text(version, "name")));
    let stored = versions.iter().filter(|version| version["storage"] == true).count();
    let mut found = Vec::new();
    let mut complain = |detail: &str| found.push(internal::invalid_versions(&spec["versions"], hoisted, detail));
    if !unique {
        complain("must contain unique version names");
    }
    if stored != 1 {
        complain("must have exactly one version marked as storage version");
    }
    // The first version is also known by the name it had when there was but one.
    let first = versions.first().map(|version| text(version, "name")).unwrap_or_default();
    let wrong = dns1035_label(first);
    if !first.is_empty() && !wrong.is_empty() {
        found.push(Violation::invalid("spec.version", first, &wrong.join(",")));
    }
    found
}

fn validate_rest(definition: &Value) -> Vec<Violation> {
    let status = &definition["status"];
    let mut found = names::check(&status["acceptedNames"], "status.acceptedNames");
    found.extend(stored_versions(items(status, "storedVersions"), items(&definition["spec"], "versions")));
    found
}

fn stored_versions(stored: &[Value], versions: &[Value]) -> Vec<Violation> {
    let path = "status.storedVersions";
    let stored: Vec<_> = stored.iter().filter_map(Value::as_str).collect();
    if stored.is_empty() {
        let none = Value::Null;
        return vec![Violation::invalid(path, none, "must have at least one stored version")];
    }
    let mut found = Vec::new();
    for version in versions.iter().filter(|version| version["storage"] == true) {
        let name = text(version, "name");
        if !stored.contains(&name) {
            found.push(Violation::invalid(path, stored.clone(), &format!("must have the storage version {name}")));
        }
    }
    for (index, name) in stored.iter().enumerate() {
        if versions.iter().all(|version| text(version, "name") != *name) {
            let detail = format!(
                "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions \
                 until a storage migration ensures no data remains persisted in {name} and removes {name} from \
                 status.storedVersions"
            );
            found.push(Violation::invalid(format!("{path}[{index}]"), *name, &detail));
        }
    }
    found
}

fn preserves_unknown(definition: &Value) -> Option<Violation> {
    let detail =
        "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
    let set = definition["spec"]["preserveUnknownFields"] == true;
    set.then(|| Violation::invalid("spec.preserveUnknownFields", true, detail))
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

fn items<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value[field].as_array().map(Vec::as_slice).unwrap_or_default()
}
