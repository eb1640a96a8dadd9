//! Reads enums from the Go source that Kubernetes makes its OpenAPI from: the published documents are made without them,
//! while a running kube-apiserver shows them.

use super::{GenerateError, Result};
use serde_json::Value;
use std::collections::BTreeMap;

/// The allowed values of fields, by type, then field.
pub(super) struct Enums(BTreeMap<String, BTreeMap<String, Allowed>>);

/// The allowed values of one field, or of its items.
struct Allowed {
    of_items: bool,
    values: Value,
}

impl Enums {
    /// Reads every enum of the generated source.
    pub(super) fn read(source: &str) -> Result<Enums> {
        let mut enums: BTreeMap<String, BTreeMap<String, Allowed>> = BTreeMap::new();
        let (mut of, mut field) = (String::new(), String::new());
        for line in source.lines() {
            let tabs = line.bytes().take_while(|byte| *byte == b'\t').count();
            let text = &line[tabs..];
            if let Some(name) = line.strip_prefix("func schema_").and_then(|rest| rest.split('(').next()) {
                of = type_name(name);
            } else if tabs == 5 && text.starts_with('"') {
                field = text.split('"').nth(1).unwrap_or_default().to_string();
            } else if let Some(values) = text.strip_prefix("Enum:") {
                let of_items = match tabs {
                    7 => false,
                    10 => true,
                    _ => return Err(GenerateError::Unexpected(format!("an enum deep within {of}.{field}"))),
                };
                let allowed = Allowed { of_items, values: literal(values, &of)? };
                enums.entry(of.clone()).or_default().insert(field.clone(), allowed);
            }
        }
        Ok(Enums(enums))
    }

    /// Adds the enums to an OpenAPI document, where a running server would show them.
    pub(super) fn add_to(&self, openapi: &mut Value) {
        let schemas = openapi["components"]["schemas"].as_object_mut().into_iter().flatten();
        for (name, schema) in schemas {
            // Go leaves the module out of the names of packages under `pkg`.
            let name = name.find(".pkg.").map_or(&**name, |at| &name[at + 1..]);
            for (field, allowed) in self.0.get(name).into_iter().flatten() {
                let Some(property) = schema["properties"].get_mut(field) else {
                    continue;
                };
                let items = if property["type"] == "array" {
                    "items"
                } else {
                    "additionalProperties"
                };
                let place = if allowed.of_items {
                    &mut property[items]
                } else {
                    property
                };
                place["enum"] = allowed.values.clone();
            }
        }
    }
}

/// `k8sio_api_core_v1_Pod` is `io.k8s.api.core.v1.Pod`.
fn type_name(function: &str) -> String {
    function.replacen("k8sio_", "io.k8s.", 1).replace('_', ".")
}

/// Reads `[]interface{}{"SCTP", "TCP", "UDP"},`: between the braces it is JSON.
fn literal(text: &str, of: &str) -> Result<Value> {
    let inner = text.trim().strip_prefix("[]interface{}{").and_then(|rest| rest.strip_suffix("},"));
    inner
        .and_then(|inner| serde_json::from_str(&format!("[{inner}]")).ok())
        .ok_or_else(|| GenerateError::Unexpected(format!("the enum `{text}` of {of}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const SOURCE: &str = "
func schema_k8sio_api_core_v1_Port(ref common.ReferenceCallback) common.OpenAPIDefinition {
\t\t\t\t\t\"protocol\": {
\t\t\t\t\t\t\tEnum:        []interface{}{\"TCP\", \"UDP\"},
\t\t\t\t\t\"actions\": {
\t\t\t\t\t\t\t\t\t\tEnum:    []interface{}{\"Deny\"},
func schema_pkg_apis_example_v1_Rule(ref common.ReferenceCallback) common.OpenAPIDefinition {
\t\t\t\t\t\"scope\": {
\t\t\t\t\t\t\tEnum:        []interface{}{\"*\"},
";

    #[test]
    fn enums_go_where_a_running_server_shows_them() {
        let mut openapi = json!({ "components": { "schemas": {
            "io.k8s.api.core.v1.Port": { "properties": {
                "protocol": { "type": "string" },
                "actions": { "type": "array", "items": { "type": "string" } },
            } },
            "io.k8s.apimachinery.pkg.apis.example.v1.Rule": { "properties": { "scope": { "type": "string" } } },
        } } });
        Enums::read(SOURCE).unwrap().add_to(&mut openapi);
        let schemas = &openapi["components"]["schemas"];
        let port = &schemas["io.k8s.api.core.v1.Port"]["properties"];
        assert_eq!(port["protocol"]["enum"], json!(["TCP", "UDP"]));
        assert_eq!(port["actions"]["items"]["enum"], json!(["Deny"]));
        assert_eq!(
            schemas["io.k8s.apimachinery.pkg.apis.example.v1.Rule"]["properties"]["scope"]["enum"],
            json!(["*"])
        );
    }

    #[test]
    fn an_enum_in_an_unknown_place_is_not_passed_over() {
        let deeper = SOURCE.replace("\t\t\tEnum:    ", "\t\t\t\tEnum:    ");
        assert!(matches!(Enums::read(&deeper), Err(GenerateError::Unexpected(_))));
    }
}
