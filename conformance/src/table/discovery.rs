//! Writes the resources of a served version from its `APIResourceList`, in discovery's order.

use super::spec::Definitions;
use super::{GenerateError, Result, Served};
use serde_json::Value;
use std::fmt::Write;

/// Writes the resources of one version, and adds their types to `roots`.
pub(super) fn write(
    served: &Served,
    definitions: &Definitions<'_>,
    roots: &mut Vec<String>,
    body: &mut String,
) -> Result<()> {
    let api_version = &*served.api_version;
    put(body, format_args!("served {api_version}"));
    for resource in list(&served.resource_list["resources"]) {
        let (line, types) = match text(&resource["name"]).split_once('/') {
            None => resource_line(api_version, resource, definitions)?,
            Some((_, name)) => subresource_line(api_version, name, resource, definitions),
        };
        put(body, format_args!("{line}"));
        roots.extend(types);
    }
    Ok(())
}

/// The line of a resource, and the types that it names.
type Line = (String, Vec<String>);

fn resource_line(api_version: &str, resource: &Value, definitions: &Definitions<'_>) -> Result<Line> {
    let [plural, singular, kind] = ["name", "singularName", "kind"].map(|key| text(&resource[key]));
    let scope = if resource["namespaced"] == true {
        "namespaced"
    } else {
        "cluster"
    };
    let verbs = joined(&resource["verbs"]);
    let mut line = format!("resource {plural} {singular} {kind} {scope} {verbs}");
    let mut types = Vec::new();
    let list_kind = format!("{kind}List");
    if let Some(name) = definitions.of_kind(api_version, &list_kind) {
        line += &format!(" list={list_kind}");
        types.push(name.to_string());
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
        .of_kind(api_version, kind)
        .ok_or_else(|| GenerateError::Unexpected(format!("{api_version} {kind} has no type")))?;
    types.push(name.to_string());
    Ok((format!("{line} type={name}"), types))
}

fn subresource_line(api_version: &str, name: &str, resource: &Value, definitions: &Definitions<'_>) -> Line {
    let [kind, group, version] = ["kind", "group", "version"].map(|key| text(&resource[key]));
    let api_version = if version.is_empty() {
        api_version.to_string()
    } else {
        format!("{group}/{version}")
    };
    let mut line = format!("subresource {name} {api_version} {kind} {}", joined(&resource["verbs"]));
    // Options such as PodExecOptions come in the query, and OpenAPI has no type for them.
    let found = definitions.of_kind(&api_version, kind);
    if let Some(name) = found {
        line += &format!(" type={name}");
    }
    (line, found.map(str::to_string).into_iter().collect())
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

#[cfg(test)]
mod tests {
    use super::super::Documents;
    use super::*;
    use serde_json::json;

    fn documents(resources: Value) -> Documents {
        let kind = |kind: &str| json!([{ "group": "apps", "version": "v1", "kind": kind }]);
        let openapi = json!({ "components": { "schemas": {
            "a.Deployment": { "x-kubernetes-group-version-kind": kind("Deployment") },
            "a.DeploymentList": { "x-kubernetes-group-version-kind": kind("DeploymentList") },
        } } });
        let served = Served {
            api_version: "apps/v1".to_string(),
            resource_list: json!({ "resources": resources }),
            openapi,
        };
        Documents { version: "v1.36.4".to_string(), served: vec![served] }
    }

    fn written(resources: Value) -> Result<(String, Vec<String>)> {
        let documents = documents(resources);
        let (mut body, mut roots) = (String::new(), Vec::new());
        write(&documents.served[0], &Definitions::read(&documents), &mut roots, &mut body)?;
        Ok((body, roots))
    }

    #[test]
    fn a_resource_is_written_with_its_subresources() {
        let (body, roots) = written(json!([
            { "name": "deployments", "singularName": "deployment", "kind": "Deployment", "namespaced": true,
              "verbs": ["get", "list"], "shortNames": ["deploy"], "storageVersionHash": "8aSe=" },
            { "name": "deployments/scale", "group": "autoscaling", "version": "v1", "kind": "Scale", "verbs": ["get"] },
            { "name": "deployments/status", "kind": "Deployment", "verbs": ["get"] },
        ]))
        .unwrap();
        assert_eq!(
            body,
            "served apps/v1\n\
             resource deployments deployment Deployment namespaced get,list list=DeploymentList short=deploy hash=8aSe= \
             type=a.Deployment\n\
             subresource scale autoscaling/v1 Scale get\n\
             subresource status apps/v1 Deployment get type=a.Deployment\n"
        );
        assert_eq!(roots, ["a.DeploymentList", "a.Deployment", "a.Deployment"]);
    }

    #[test]
    fn a_resource_without_a_type_is_an_error() {
        let unknown = written(json!([{ "name": "jobs", "kind": "Job", "verbs": ["create"] }]));
        assert!(matches!(unknown, Err(GenerateError::Unexpected(_))));
        let unlisted = written(json!([{ "name": "jobs", "kind": "Job", "verbs": ["list"] }]));
        assert!(matches!(unlisted, Err(GenerateError::Unexpected(_))));
    }
}
