//! Resources inside a resource (`x-kubernetes-embedded-resource`): they say what they are, and their metadata is valid.
// apiextensions-apiserver/pkg/apiserver/schema/objectmeta/validation.go

use crate::decode;
use crate::kinds;
use crate::metadata;
use crate::names::{self, NameRule};
use crate::place::Place;
use crate::schema::{Form, Node};
use crate::violation::Violation;
use serde_json::{Map, Value};

/// What is wrong with every embedded resource in a value; paths begin with `base`.
pub(super) fn check(node: Node<'_>, value: &Value, place: &Place<'_>, base: &str) -> Vec<Violation> {
    match value {
        Value::Object(fields) => {
            let mut found = Vec::new();
            if node.embedded_resource {
                found.extend(check_resource(fields, &under(base, place)));
            }
            let declares = !matches!(node.form, Form::Map(_));
            for (name, field) in fields {
                let Some(inner) = node.field(name) else { continue };
                let place = if declares { place.field(name) } else { place.key(name) };
                found.extend(check(inner, field, &place, base));
            }
            found
        }
        Value::Array(items) => {
            let Some(inner) = node.items() else { return Vec::new() };
            let inside = items.iter().enumerate();
            inside.flat_map(|(index, item)| check(inner, item, &place.index(index), base)).collect()
        }
        _ => Vec::new(),
    }
}

fn under(base: &str, place: &Place<'_>) -> String {
    match (base, place.subscripted()) {
        ("", path) => path,
        (base, path) if path.is_empty() => base.to_owned(),
        (base, path) => format!("{base}.{path}"),
    }
}

fn check_resource(fields: &Map<String, Value>, path: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    for name in ["apiVersion", "kind"] {
        if !fields.contains_key(name) {
            found.push(Violation::required(format!("{path}.{name}"), ""));
        }
    }
    for (name, value) in fields {
        let path = format!("{path}.{name}");
        match name.as_str() {
            "apiVersion" => found.extend(check_text(value, &path, wrong_api_version)),
            "kind" => found.extend(check_text(value, &path, wrong_kind)),
            "metadata" => found.extend(check_metadata(value, &path)),
            _ => {}
        }
    }
    found
}

fn check_text(value: &Value, path: &str, wrong: impl Fn(&str) -> Option<String>) -> Option<Violation> {
    let detail = match value {
        Value::String(text) if text.is_empty() => "must not be empty".to_owned(),
        Value::String(text) => wrong(text)?,
        _ => "must be a string".to_owned(),
    };
    Some(Violation::invalid(path, value.clone(), &detail))
}

fn wrong_api_version(text: &str) -> Option<String> {
    (text.matches('/').count() > 1).then(|| format!("unexpected GroupVersion string: {text}"))
}

fn wrong_kind(text: &str) -> Option<String> {
    let wrong = names::dns1035_label(&text.to_lowercase());
    let rule = "may have mixed case, but should otherwise match: ";
    (!wrong.is_empty()).then(|| format!("{rule}{}", wrong.join(",")))
}

fn check_metadata(value: &Value, path: &str) -> Vec<Violation> {
    let mut metadata = value.clone();
    let object_meta = kinds::builtin().schema("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
    if let Some(Err(error)) = object_meta.map(|node| decode::coerce(&mut metadata, node)) {
        return vec![Violation::invalid(path, value.clone(), &error.to_string())];
    }
    let namespaced = metadata["namespace"].as_str().is_some_and(|namespace| !namespace.is_empty());
    if let Value::Object(fields) = &mut metadata {
        fields.entry("name").or_insert_with(|| "fakename".into());
    }
    metadata::validate(&metadata, namespaced, NameRule::PathSegment, path)
}
