//! What is wrong with an object's `metadata`, on creation and on update.
//! Filling it in (names, uids, timestamps) is left to the API server.

use crate::go_text;
use crate::names::{self, NameRule};
use crate::violation::{Reason, Violation};
use serde_json::Value;
use std::collections::BTreeSet;

const MOST_ANNOTATION_BYTES: usize = 256 * 1024;
const MOST_MANAGER_BYTES: usize = 128;
/// Each wrong character of a manager's name is told with the whole name; not of a name that would fill memory that way.
const MOST_MANAGER_TEXT: usize = 1 << 20;
const MOST_SUBRESOURCE_BYTES: usize = 256;
const IMMUTABLE: [&str; 6] = [
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
];

/// What is wrong with the metadata of an object that is being created; its name has been generated already.
// apimachinery/pkg/api/validation/objectmeta.go, ValidateObjectMetaAccessor
pub fn validate(metadata: &Value, namespaced: bool, rule: NameRule, path: &str) -> Vec<Violation> {
    let mut found = validate_name(metadata, rule, path);
    found.extend(validate_namespace(metadata, namespaced, path));
    let generation = integer(metadata, "generation");
    if generation < 0 {
        let detail = "must be greater than or equal to 0";
        found.push(Violation::invalid(format!("{path}.generation"), generation, detail));
    }
    found.extend(validate_labels(&metadata["labels"], &format!("{path}.labels")));
    found.extend(validate_annotations(&metadata["annotations"], &format!("{path}.annotations")));
    found.extend(validate_owner_references(metadata, &format!("{path}.ownerReferences")));
    found.extend(validate_finalizers(metadata, &format!("{path}.finalizers")));
    found.extend(validate_managed_fields(metadata, &format!("{path}.managedFields")));
    found
}

/// What is wrong with the metadata of an object that is being updated.
// apimachinery/pkg/api/validation/objectmeta.go, ValidateObjectMetaAccessorUpdate
pub fn validate_update(new: &Value, old: &Value, path: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    if !old["deletionTimestamp"].is_null() {
        found.extend(no_new_finalizers(new, old, path));
    }
    if text(new, "resourceVersion").is_empty() {
        let detail = "must be specified for an update";
        found.push(Violation::invalid(format!("{path}.resourceVersion"), "", detail));
    }
    let generation = integer(new, "generation");
    if generation < integer(old, "generation") {
        found.push(Violation::invalid(format!("{path}.generation"), generation, "must not be decremented"));
    }
    for field in IMMUTABLE {
        if comparable(new, field) != comparable(old, field) {
            let value = comparable(new, field);
            found.push(Violation::invalid(format!("{path}.{field}"), value, "field is immutable"));
        }
    }
    found.extend(validate_labels(&new["labels"], &format!("{path}.labels")));
    found.extend(validate_annotations(&new["annotations"], &format!("{path}.annotations")));
    found.extend(validate_owner_references(new, &format!("{path}.ownerReferences")));
    found.extend(validate_managed_fields(new, &format!("{path}.managedFields")));
    found
}

/// What is wrong with a set of labels.
pub fn validate_labels(labels: &Value, path: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    for (key, value) in texts_by_key(labels) {
        found.extend(names::qualified_name(key).iter().map(|detail| Violation::invalid(path, key, detail)));
        found.extend(names::label_value(value).iter().map(|detail| Violation::invalid(path, value, detail)));
    }
    found
}

/// What is wrong with a set of annotations.
pub fn validate_annotations(annotations: &Value, path: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut size = 0;
    for (key, value) in texts_by_key(annotations) {
        let wrong = names::qualified_name(&key.to_lowercase());
        found.extend(wrong.iter().map(|detail| Violation::invalid(path, key, detail)));
        size += key.len() + value.len();
    }
    if size > MOST_ANNOTATION_BYTES {
        found.push(Violation::too_long(path, MOST_ANNOTATION_BYTES as u64));
    }
    found
}

/// What is wrong with the name of a field manager.
// apimachinery/pkg/apis/meta/v1/validation/validation.go, ValidateFieldManager
pub fn validate_field_manager(manager: &str, path: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    if manager.len() > MOST_MANAGER_BYTES {
        found.push(Violation::too_long(path, MOST_MANAGER_BYTES as u64));
    }
    let most = (MOST_MANAGER_TEXT / manager.len().max(1)).max(1);
    let wrong = manager.char_indices().filter(|(_, character)| !go_text::is_print(*character));
    for (position, character) in wrong.take(most) {
        let detail = format!("invalid character U+{:04X} (at position {position})", u32::from(character));
        found.push(Violation::invalid(path, manager, &detail));
    }
    found
}

fn validate_name(metadata: &Value, rule: NameRule, path: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    let prefix = text(metadata, "generateName");
    if !prefix.is_empty() {
        let path = format!("{path}.generateName");
        found.extend(rule.prefix(prefix).iter().map(|detail| Violation::invalid(&path, prefix, detail)));
    }
    let name = text(metadata, "name");
    let path = format!("{path}.name");
    if name.is_empty() {
        found.push(Violation::required(path, "name or generateName is required"));
    } else {
        found.extend(rule.name(name).iter().map(|detail| Violation::invalid(&path, name, detail)));
    }
    found
}

fn validate_namespace(metadata: &Value, namespaced: bool, path: &str) -> Vec<Violation> {
    let namespace = text(metadata, "namespace");
    let path = format!("{path}.namespace");
    match (namespaced, namespace.is_empty()) {
        (true, true) => vec![Violation::required(path, "")],
        (true, false) => {
            let wrong = names::dns1123_label(namespace);
            wrong.iter().map(|detail| Violation::invalid(&path, namespace, detail)).collect()
        }
        (false, true) => Vec::new(),
        (false, false) => vec![Violation::forbidden(path, "not allowed on this type")],
    }
}

/// How many violations of owner references are listed before further controllers are left out: each of those repeats
/// the whole list.
const MAX_OWNER_VIOLATIONS: usize = 16;

fn validate_owner_references(metadata: &Value, path: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    let references = items(metadata, "ownerReferences");
    let mut controller: Option<String> = None;
    let mut shown = None;
    for reference in references {
        found.extend(validate_owner_reference(reference, path));
        if reference["controller"] != true {
            continue;
        }
        let name = format!("{}/{}", text(reference, "kind"), text(reference, "name"));
        match &controller {
            None => controller = Some(name),
            Some(_) if found.len() >= MAX_OWNER_VIOLATIONS => break,
            Some(first) => {
                let detail = format!(
                    "Only one reference can have Controller set to true. \
                     Found \"true\" in references for {first} and {name}"
                );
                let shown = shown.get_or_insert_with(|| {
                    let all: Vec<_> = references.iter().map(owner_json).collect();
                    format!("[{}]", all.join(","))
                });
                found.push(Violation::with_text(path, Reason::Invalid, shown, &detail));
            }
        }
    }
    found
}

fn validate_owner_reference(reference: &Value, path: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    let api_version = text(reference, "apiVersion");
    if api_version.is_empty() || api_version.ends_with('/') || api_version.matches('/').count() > 1 {
        let detail = "version must not be empty";
        found.push(Violation::invalid(format!("{path}.apiVersion"), api_version, detail));
    }
    for field in ["kind", "name", "uid"] {
        if text(reference, field).is_empty() {
            found.push(Violation::invalid(format!("{path}.{field}"), "", "must not be empty"));
        }
    }
    if api_version == "v1" && text(reference, "kind") == "Event" {
        let detail = "/v1, Kind=Event is disallowed from being an owner";
        found.push(Violation::with_text(path, Reason::Invalid, &owner_json(reference), detail));
    }
    found
}

/// An owner reference as Go encodes it: in the order of its declaration.
fn owner_json(reference: &Value) -> String {
    let required = ["apiVersion", "kind", "name", "uid"].into_iter();
    let mut fields: Vec<_> = required
        .map(|field| format!("\"{field}\":{}", go_text::json(&text(reference, field).into())))
        .collect();
    for field in ["controller", "blockOwnerDeletion"] {
        if let Some(flag) = reference[field].as_bool() {
            fields.push(format!("\"{field}\":{flag}"));
        }
    }
    format!("{{{}}}", fields.join(","))
}

fn validate_finalizers(metadata: &Value, path: &str) -> Vec<Violation> {
    let finalizers: Vec<_> = items(metadata, "finalizers").iter().filter_map(Value::as_str).collect();
    let mut found = Vec::new();
    for finalizer in &finalizers {
        let wrong = names::qualified_name(finalizer);
        found.extend(wrong.iter().map(|detail| Violation::invalid(path, *finalizer, detail)));
    }
    if finalizers.contains(&"orphan") && finalizers.contains(&"foregroundDeletion") {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        found.push(Violation::invalid(path, finalizers, detail));
    }
    found
}

fn no_new_finalizers(new: &Value, old: &Value, path: &str) -> Option<Violation> {
    let set = |metadata| items(metadata, "finalizers").iter().filter_map(Value::as_str).collect::<BTreeSet<_>>();
    let extra: Vec<_> = set(new).difference(&set(old)).map(|finalizer| go_text::quote(finalizer)).collect();
    if extra.is_empty() {
        return None;
    }
    let rule = "no new finalizers can be added if the object is being deleted, found new finalizers";
    let detail = format!("{rule} []string{{{}}}", extra.join(", "));
    Some(Violation::forbidden(format!("{path}.finalizers"), &detail))
}

fn validate_managed_fields(metadata: &Value, path: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    for (index, entry) in items(metadata, "managedFields").iter().enumerate() {
        let path = format!("{path}[{index}]");
        let operation = text(entry, "operation");
        if operation != "Apply" && operation != "Update" {
            let detail = "must be `Apply` or `Update`";
            found.push(Violation::invalid(format!("{path}.operation"), operation, detail));
        }
        let fields_type = text(entry, "fieldsType");
        if !fields_type.is_empty() && fields_type != "FieldsV1" {
            found.push(Violation::invalid(format!("{path}.fieldsType"), fields_type, "must be `FieldsV1`"));
        }
        found.extend(validate_field_manager(text(entry, "manager"), &format!("{path}.manager")));
        if text(entry, "subresource").len() > MOST_SUBRESOURCE_BYTES {
            found.push(Violation::too_long(format!("{path}.subresource"), MOST_SUBRESOURCE_BYTES as u64));
        }
    }
    found
}

/// An immutable field's value; strings have no absence in Go, timestamps and numbers do.
fn comparable(metadata: &Value, field: &str) -> Value {
    match field {
        "name" | "namespace" | "uid" => text(metadata, field).into(),
        _ => metadata[field].clone(),
    }
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

fn integer(value: &Value, field: &str) -> i64 {
    value[field].as_i64().unwrap_or_default()
}

fn items<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value[field].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The strings of a map, sorted by key; Go's own order is random.
fn texts_by_key(value: &Value) -> Vec<(&str, &str)> {
    let fields = value.as_object().into_iter().flatten();
    let mut texts: Vec<_> = fields.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?))).collect();
    texts.sort_unstable();
    texts
}
