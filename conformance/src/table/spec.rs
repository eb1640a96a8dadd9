//! Writes the types of the table from OpenAPI v3, starting at the types of what is served.

use super::proto::{Messages, folded};
use super::synthesis::synthesise;
use super::{Documents, GenerateError, Result};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const INT_OR_STRING: &str = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";
const RAW_EXTENSION: &str = "io.k8s.apimachinery.pkg.runtime.RawExtension";

/// The types of the served versions, as OpenAPI says them.
#[derive(Default)]
pub(super) struct Definitions<'a> {
    types: BTreeMap<&'a str, &'a Value>,
    /// By `apiVersion` and kind.
    kinds: BTreeMap<(String, String), &'a str>,
}

impl<'a> Definitions<'a> {
    /// Reads the OpenAPI documents of the served versions.
    pub(super) fn read(documents: &'a Documents) -> Definitions<'a> {
        let mut definitions = Definitions::default();
        let documents = documents.served.iter().map(|served| &served.openapi["components"]["schemas"]);
        for (name, schema) in documents.filter_map(Value::as_object).flatten() {
            definitions.index(name, schema);
            definitions.types.insert(name, schema);
        }
        definitions
    }

    fn index(&mut self, name: &'a str, schema: &Value) {
        for kind in schema["x-kubernetes-group-version-kind"].as_array().into_iter().flatten() {
            let [group, version, kind] = ["group", "version", "kind"].map(|key| kind[key].as_str().unwrap_or_default());
            let api_version = if group.is_empty() {
                version.to_string()
            } else {
                format!("{group}/{version}")
            };
            self.kinds.insert((api_version, kind.to_string()), name);
        }
    }

    /// The name of a kind's type.
    pub(super) fn of_kind(&self, api_version: &str, kind: &str) -> Option<&str> {
        self.kinds.get(&(api_version.to_string(), kind.to_string())).copied()
    }
}

/// Writes types, and remembers the types that they refer to.
pub(super) struct Writer<'a> {
    definitions: &'a Definitions<'a>,
    messages: &'a Messages,
}

/// A type in the course of being written.
struct Writing<'a> {
    name: &'a str,
    package: &'a str,
    refers_to: &'a mut Vec<String>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(definitions: &'a Definitions<'a>, messages: &'a Messages) -> Writer<'a> {
        Writer { definitions, messages }
    }

    /// Writes the types of these names and all that they refer to, sorted by package and name.
    pub(super) fn write(&self, mut todo: Vec<String>) -> Result<String> {
        let roots: BTreeSet<String> = todo.iter().cloned().collect();
        let mut packages: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
        while let Some(full) = todo.pop() {
            let (package, name) = full
                .rsplit_once('.')
                .ok_or_else(|| GenerateError::Unexpected(format!("type name {full}")))?;
            let written = packages.entry(package.to_string()).or_default();
            if !written.contains_key(name) {
                let mut writing = Writing { name: &full, package, refers_to: &mut todo };
                let text = self.named(name, &mut writing, roots.contains(&full))?;
                written.insert(name.to_string(), text);
            }
        }
        let mut text = String::new();
        for (package, types) in packages {
            text += &format!("package {package}\n");
            text.extend(types.into_values());
        }
        Ok(text)
    }

    fn named(&self, name: &str, writing: &mut Writing<'_>, is_root: bool) -> Result<String> {
        let synthesised;
        let schema = match self.definitions.types.get(writing.name) {
            Some(schema) => *schema,
            None => {
                synthesised = synthesise(writing.name, is_root, self.messages)?;
                &synthesised
            }
        };
        match writing.name {
            QUANTITY => Ok(format!("type {name} quantity\n")),
            INT_OR_STRING => Ok(format!("type {name} int-or-string\n")),
            _ if schema["type"] == "object" => self.object(name, schema, writing),
            _ => Ok(format!("type {name} {}\n", form(schema, writing)?)),
        }
    }

    fn object(&self, name: &str, schema: &Value, writing: &mut Writing<'_>) -> Result<String> {
        let mut text = format!("object {name}");
        if schema["x-kubernetes-map-type"] == "atomic" || writing.name == RAW_EXTENSION {
            text += " atomic";
        }
        let Some(properties) = schema["properties"].as_object() else {
            // Without fields in protobuf it is an empty struct; with them it keeps whatever it is given.
            let is_free = self.messages.get(writing.name).is_some_and(|members| !members.is_empty());
            return Ok(text + if is_free { " free\n" } else { "\n" });
        };
        text += "\n";
        let declared: BTreeSet<String> = properties.keys().map(|field| folded(field)).collect();
        let sorted: BTreeMap<&String, &Value> = properties.iter().collect();
        for (field, property) in sorted {
            let place = self.messages.place(writing.name, field, &declared);
            let required = schema["required"]
                .as_array()
                .is_some_and(|required| required.iter().any(|it| it == field));
            let mut words = vec![field.clone(), place.unwrap_or_else(|| "-".to_string())];
            let is_zero = |default: &Value| default == "" || default == false || default == 0;
            if property.get("default").is_some_and(is_zero) && self.messages.omits_zero(writing.name, field) {
                words[1].push('-');
            }
            words.extend(required.then(|| "!".to_string()));
            words.extend(patch(property));
            words.extend(property.get("default").map(|default| format!("={}", json(default))));
            words.push(expression(property, writing)?);
            text += &format!(" {}\n", words.join(" "));
        }
        Ok(text)
    }
}

/// What the table writes for the type of a field, of items or of values. The default of items and values is left out:
/// it is Go's zero value of their type, which null turns into.
fn expression(schema: &Value, writing: &mut Writing<'_>) -> Result<String> {
    let allowed = schema["enum"].as_array().into_iter().flatten();
    let mut words: Vec<String> = allowed.map(|value| format!("|{}", json(value))).collect();
    words.extend((schema["nullable"] == true).then(|| "?".to_string()));
    words.extend(schema["x-kubernetes-map-type"].as_str().map(str::to_string));
    words.push(form(schema, writing)?);
    Ok(words.join(" "))
}

fn form(schema: &Value, writing: &mut Writing<'_>) -> Result<String> {
    if let Some(target) = reference(schema) {
        writing.refers_to.push(target.to_string());
        let local = target.strip_prefix(writing.package).and_then(|rest| rest.strip_prefix('.'));
        return Ok(local.filter(|name| !name.contains('.')).unwrap_or(target).to_string());
    }
    let unexpected = || GenerateError::Unexpected(format!("a form within {}: {schema}", writing.name));
    match schema.get("type").map_or(Some("any"), Value::as_str).ok_or_else(unexpected)? {
        "array" => {
            let kind = list_kind(schema).ok_or_else(unexpected)?;
            Ok(format!("{kind} {}", expression(&schema["items"], writing)?))
        }
        "object" => {
            let values = schema.get("additionalProperties").ok_or_else(unexpected)?;
            Ok(format!("map {}", expression(values, writing)?))
        }
        scalar => Ok(match schema["format"].as_str() {
            Some(format) => format!("{scalar}:{format}"),
            None => scalar.to_string(),
        }),
    }
}

/// The name in `$ref`, or in the `allOf` that OpenAPI v3 puts around a `$ref` with siblings.
fn reference(schema: &Value) -> Option<&str> {
    let reference = schema.get("$ref").or_else(|| schema.get("allOf")?.get(0)?.get("$ref"))?;
    reference.as_str()?.rsplit('/').next()
}

/// How two lists merge in server-side apply: `getListElementRelationship` in kube-openapi's `schemaconv/smd.go`.
fn list_kind(schema: &Value) -> Option<String> {
    let text = |key: &str| schema[key].as_str();
    match (text("x-kubernetes-list-type"), text("x-kubernetes-patch-strategy")) {
        (Some("set"), _) => Some("set".to_string()),
        (Some("map"), _) => {
            let keys = schema["x-kubernetes-list-map-keys"].as_array()?;
            let keys: Vec<&str> = keys.iter().filter_map(Value::as_str).collect();
            Some(format!("list:{}", keys.join(",")))
        }
        (None, Some("merge" | "merge,retainKeys")) => match text("x-kubernetes-patch-merge-key") {
            Some(key) => Some(format!("list:{key}")),
            None => Some("set".to_string()),
        },
        (Some("atomic"), _) | (None, Some("retainKeys") | None) => Some("list".to_string()),
        _ => None,
    }
}

/// `~merge:name`, or nothing.
fn patch(schema: &Value) -> Option<String> {
    let strategy = schema["x-kubernetes-patch-strategy"].as_str()?;
    Some(match schema["x-kubernetes-patch-merge-key"].as_str() {
        Some(key) => format!("~{strategy}:{key}"),
        None => format!("~{strategy}"),
    })
}

/// JSON without a space in it: the table separates words by spaces.
fn json(value: &Value) -> String {
    value.to_string().replace(' ', "\\u0020")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn merged(list_type: Value, strategy: Value, key: Value) -> Option<String> {
        list_kind(&json!({
            "x-kubernetes-list-type": list_type,
            "x-kubernetes-list-map-keys": ["port", "protocol"],
            "x-kubernetes-patch-strategy": strategy,
            "x-kubernetes-patch-merge-key": key,
        }))
    }

    #[test]
    fn a_list_type_goes_before_a_patch_strategy() {
        assert_eq!(merged("map".into(), "merge".into(), "port".into()).as_deref(), Some("list:port,protocol"));
        assert_eq!(merged("atomic".into(), "merge".into(), "port".into()).as_deref(), Some("list"));
        assert_eq!(merged("set".into(), Value::Null, Value::Null).as_deref(), Some("set"));
    }

    #[test]
    fn a_patch_strategy_stands_in_for_a_list_type() {
        assert_eq!(
            merged(Value::Null, "merge,retainKeys".into(), "name".into()).as_deref(),
            Some("list:name")
        );
        assert_eq!(merged(Value::Null, "merge".into(), Value::Null).as_deref(), Some("set"));
        assert_eq!(merged(Value::Null, "retainKeys".into(), "name".into()).as_deref(), Some("list"));
        assert_eq!(merged(Value::Null, Value::Null, Value::Null).as_deref(), Some("list"));
    }

    #[test]
    fn a_list_type_nobody_knows_is_not_taken_for_another() {
        assert_eq!(merged("heap".into(), Value::Null, Value::Null), None);
        assert_eq!(merged(Value::Null, "append".into(), Value::Null), None);
    }

    #[test]
    fn values_are_written_without_spaces() {
        assert_eq!(json(&json!({ "a b": ["c d"] })), r#"{"a\u0020b":["c\u0020d"]}"#);
    }
}
