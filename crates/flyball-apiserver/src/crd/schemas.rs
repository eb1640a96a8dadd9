//! The schemas of a definition's versions, compiled when they are first needed.

use bytes::Bytes;
use flyball_schema::crd::{self, Structural};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// The schemas of all versions of a definition, served or not.
#[derive(Debug, Default)]
pub struct CrdSchemas {
    /// The definition as it is stored.
    definition: Bytes,
    compiled: OnceLock<Result<BTreeMap<String, Structural>, String>>,
}

impl CrdSchemas {
    /// The schemas of a definition as it is stored.
    pub(crate) fn new(definition: Bytes) -> CrdSchemas {
        CrdSchemas { definition, compiled: OnceLock::new() }
    }

    /// The schema of a version; none if there is no such version, or if [`CrdSchemas::check`] fails.
    pub(crate) fn version(&self, version: &str) -> Option<&Structural> {
        self.check().ok()?.get(version)
    }

    /// Compiles the schemas, or says which of them this server cannot enforce.
    pub(crate) fn check(&self) -> Result<&BTreeMap<String, Structural>, &str> {
        let compiled = self.compiled.get_or_init(|| {
            let compiled = compile(&decode(&self.definition));
            self.report(&compiled);
            compiled
        });
        compiled.as_ref().map_err(String::as_str)
    }

    /// Logs what is wrong with the schemas and with their rules.
    fn report(&self, compiled: &Result<BTreeMap<String, Structural>, String>) {
        let name = || crate::registry::object::peek(&self.definition).metadata.name;
        let versions = match compiled {
            Ok(versions) => versions,
            Err(error) => {
                tracing::error!(%error, definition = %name(), "the schema of a definition is invalid; requests are refused");
                return;
            }
        };
        let validators = versions
            .iter()
            .filter_map(|(version, schema)| Some((version, schema.validator.as_ref()?)));
        for (version, validator) in validators {
            for error in validator.errors() {
                let name = name();
                tracing::error!(%error, definition = %name, %version, "a validation rule does not compile; objects under it are refused");
            }
        }
    }

    /// The schema of a version as its author wrote it; null if there is none.
    pub(crate) fn open_api_v3(&self, version: &str) -> Value {
        let mut definition = decode(&self.definition);
        let versions = definition["spec"]["versions"].as_array_mut();
        let found = versions.into_iter().flatten().find(|known| known["name"] == version);
        found.map(|version| version["schema"]["openAPIV3Schema"].take()).unwrap_or_default()
    }
}

fn decode(definition: &Bytes) -> Value {
    serde_json::from_slice(definition).unwrap_or_default()
}

fn compile(definition: &Value) -> Result<BTreeMap<String, Structural>, String> {
    let versions = definition["spec"]["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let compile = |(index, version): (usize, &Value)| {
        let path = format!("spec.versions[{index}].schema.openAPIV3Schema");
        let status = match version["subresources"]["status"].is_object() {
            true => crd::Status::Subresource,
            false => crd::Status::Plain,
        };
        match crd::read_stored(&version["schema"]["openAPIV3Schema"], &path, status) {
            Ok(structural) => Ok((version["name"].as_str().unwrap_or_default().to_owned(), structural)),
            Err(violations) => Err(violations.first().map(ToString::to_string).unwrap_or(path)),
        }
    };
    versions.iter().enumerate().map(compile).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_stored_definition_is_served_though_its_rule_does_not_compile() {
        let rules = json!([{"rule": "self.gone == 1"}, {"rule": "self.n > 0"}]);
        let spec =
            json!({"type": "object", "properties": {"n": {"type": "integer"}}, "x-kubernetes-validations": rules});
        let schema = json!({"type": "object", "properties": {"spec": spec}});
        let definition = json!({"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]}});
        let schemas = CrdSchemas::new(definition.to_string().into());

        let version = schemas.version("v1").expect("the version is served");
        let validator = version.validator.as_ref().expect("it has rules");

        let errors = validator.errors();
        assert!(errors.len() == 1 && errors[0].contains("undefined field 'gone'"), "{errors:?}");
        let found = validator.validate(&json!({"spec": {"n": 0}}), None).violations;
        let messages: Vec<&str> = found.iter().map(|violation| violation.message.as_str()).collect();
        assert!(
            messages[0].starts_with("Invalid value: \"object\": rule compile error: compilation failed"),
            "{messages:?}"
        );
        assert_eq!(messages[1], "Invalid value: failed rule: self.n > 0");
        assert!(validator.validate(&json!({"metadata": {}}), None).violations.is_empty());
    }
}
