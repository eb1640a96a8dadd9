//! Which resources the reference serves, read from Kubernetes' published discovery documents.
//! The documents list what could be served; a kube-apiserver without flags serves the stable versions, and only those.

use super::sources::Sources;
use super::spec::Definitions;
use super::{GenerateError, Result};
use serde_json::Value;
use std::fmt::Write;

/// One group and version that is served.
pub(super) struct Served {
    /// `v1`, or `apps/v1`.
    pub(super) api_version: String,
    resources: Vec<Value>,
}

/// The served versions: the core group first, then discovery's own order.
pub(super) fn served(sources: &Sources) -> Result<Vec<Served>> {
    let mut api_versions = vec!["v1".to_string()];
    let groups = sources.group_list()?;
    for group in list(&groups["items"]) {
        let name = text(&group["metadata"]["name"]);
        let versions = list(&group["versions"]).iter().map(|version| text(&version["version"]));
        api_versions.extend(versions.filter(|version| is_stable(version)).map(|version| format!("{name}/{version}")));
    }
    let read = |api_version: String| {
        let document = sources.resource_list(&api_version)?;
        Ok(Served {
            api_version,
            resources: list(&document["resources"]).to_vec(),
        })
    };
    api_versions.into_iter().map(read).collect()
}

/// `v1` and `v2`, but not `v1beta1`. KEP-3136: "Beta APIs are off by default"; alphas always were.
fn is_stable(version: &str) -> bool {
    version
        .strip_prefix('v')
        .is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}

impl Served {
    /// Writes its resources, and adds their types to `roots`.
    pub(super) fn write(&self, definitions: &Definitions, roots: &mut Vec<String>, body: &mut String) -> Result<()> {
        put(body, format_args!("served {}", self.api_version));
        for resource in &self.resources {
            match text(&resource["name"]).split_once('/') {
                None => self.write_resource(resource, definitions, roots, body)?,
                Some((_, name)) => self.write_subresource(name, resource, definitions, roots, body),
            }
        }
        Ok(())
    }

    fn write_resource(
        &self,
        resource: &Value,
        definitions: &Definitions,
        roots: &mut Vec<String>,
        body: &mut String,
    ) -> Result<()> {
        let [plural, singular, kind] = ["name", "singularName", "kind"].map(|key| text(&resource[key]));
        let scope = if resource["namespaced"] == true {
            "namespaced"
        } else {
            "cluster"
        };
        let verbs = joined(&resource["verbs"]);
        let mut line = format!("resource {plural} {singular} {kind} {scope} {verbs}");
        let list_kind = format!("{kind}List");
        let listed = definitions.of_kind(&self.api_version, &list_kind);
        if let Some(listed) = listed {
            line += &format!(" list={list_kind}");
            roots.push(listed.to_string());
        } else if verbs.split(',').any(|verb| verb == "list") {
            return Err(GenerateError::Unexpected(format!("{plural} can be listed, but {list_kind} has no type")));
        }
        for (word, key) in [("short", "shortNames"), ("categories", "categories")] {
            if !list(&resource[key]).is_empty() {
                line += &format!(" {word}={}", joined(&resource[key]));
            }
        }
        if let Some(hash) = resource["storageVersionHash"].as_str() {
            line += &format!(" hash={hash}");
        }
        let name = definitions
            .of_kind(&self.api_version, kind)
            .ok_or_else(|| GenerateError::Unexpected(format!("{} {kind} has no type", self.api_version)))?;
        roots.push(name.to_string());
        put(body, format_args!("{line} type={name}"));
        Ok(())
    }

    fn write_subresource(
        &self,
        name: &str,
        resource: &Value,
        definitions: &Definitions,
        roots: &mut Vec<String>,
        body: &mut String,
    ) {
        let [kind, group, version] = ["kind", "group", "version"].map(|key| text(&resource[key]));
        let api_version = if version.is_empty() {
            self.api_version.clone()
        } else {
            format!("{group}/{version}")
        };
        let verbs = joined(&resource["verbs"]);
        let mut line = format!("subresource {name} {api_version} {kind} {verbs}");
        // Options such as PodExecOptions come in the query, and OpenAPI has no type for them.
        if let Some(name) = definitions.of_kind(&api_version, kind) {
            line += &format!(" type={name}");
            roots.push(name.to_string());
        }
        put(body, format_args!("{line}"));
    }
}

fn put(body: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(body, "{line}").expect("a string takes any text");
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn joined(value: &Value) -> String {
    list(value).iter().map(text).collect::<Vec<_>>().join(",")
}
