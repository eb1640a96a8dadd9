//! Reads enums from the Go source that Kubernetes makes its OpenAPI from: the published documents are made without them,
//! while a running kube-apiserver shows them.

use super::sources::Sources;
use super::{GenerateError, Result};
use serde_json::Value;
use std::collections::BTreeMap;

/// The allowed values of fields, by type, field and depth.
pub(super) struct Enums(BTreeMap<(String, String, Depth), Vec<Value>>);

/// Whether the values are those of the field or of its items.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Depth {
    Field,
    Items,
}

impl Enums {
    /// Reads every enum of the generated source.
    pub(super) fn read(sources: &Sources) -> Result<Enums> {
        let mut enums = BTreeMap::new();
        let (mut of, mut field) = (String::new(), String::new());
        for line in sources.openapi_source()?.lines() {
            let tabs = line.bytes().take_while(|byte| *byte == b'\t').count();
            let text = &line[tabs..];
            if let Some(name) = line.strip_prefix("func schema_").and_then(|rest| rest.split('(').next()) {
                of = type_name(name);
            } else if tabs == 5 && text.starts_with('"') {
                field = text.split('"').nth(1).unwrap_or_default().to_string();
            } else if let Some(values) = text.strip_prefix("Enum:") {
                let depth = match tabs {
                    7 => Depth::Field,
                    10 => Depth::Items,
                    _ => return Err(GenerateError::Unexpected(format!("enum within {of}.{field}, too deep"))),
                };
                enums.insert((of.clone(), field.clone(), depth), literal(values, &of)?);
            }
        }
        Ok(Enums(enums))
    }

    /// The allowed values, or none if any value is.
    pub(super) fn get(&self, of: &str, field: &str, depth: Depth) -> &[Value] {
        // Go leaves the module out of the names of packages under `pkg`.
        let of = of.find(".pkg.").map_or(of, |at| &of[at + 1..]);
        self.0
            .get(&(of.to_string(), field.to_string(), depth))
            .map(Vec::as_slice)
            .unwrap_or_default()
    }
}

/// `k8sio_api_core_v1_Pod` is `io.k8s.api.core.v1.Pod`.
fn type_name(function: &str) -> String {
    function.replacen("k8sio_", "io.k8s.", 1).replace('_', ".")
}

/// Reads `[]interface{}{"SCTP", "TCP", "UDP"},`: between the braces it is JSON.
fn literal(text: &str, of: &str) -> Result<Vec<Value>> {
    let inner = text.trim().strip_prefix("[]interface{}{").and_then(|rest| rest.strip_suffix("},"));
    inner
        .and_then(|inner| serde_json::from_str(&format!("[{inner}]")).ok())
        .ok_or_else(|| GenerateError::Unexpected(format!("enum `{text}` in {of}")))
}
