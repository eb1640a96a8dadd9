//! One operation of a path: its id, parameters, request body and responses.

use crate::openapi::schema::{Components, reference};
use crate::registry::Kind;
use flyball_schema::resource::Subresource;
use serde_json::{Map, Value, json};

/// The scope of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The kind has no namespaces.
    Cluster,
    /// In one namespace.
    Namespaced,
    /// In every namespace.
    AllNamespaces,
}

/// One operation, named by its `x-kubernetes-action`.
pub struct Operation<'a> {
    kind: &'a Kind,
    action: &'static str,
    scope: Scope,
    subresource: Option<&'a Subresource>,
    body: Option<&'a str>,
    answer: Option<&'a str>,
}

impl<'a> Operation<'a> {
    /// An operation on a kind.
    pub fn new(kind: &'a Kind, action: &'static str, scope: Scope) -> Operation<'a> {
        Operation {
            kind,
            action,
            scope,
            subresource: None,
            body: None,
            answer: None,
        }
    }

    /// The operation that lists the resources of a version, given one of its kinds.
    pub fn discovery(kind: &'a Kind) -> Operation<'a> {
        Operation::new(kind, "discovery", Scope::Cluster)
    }

    /// The same on a subresource.
    pub fn of_subresource(self, subresource: &'a Subresource) -> Operation<'a> {
        Operation { subresource: Some(subresource), ..self }
    }

    /// Sets the type of the response.
    pub fn answers(self, name: &'a str) -> Operation<'a> {
        Operation { answer: Some(name), ..self }
    }

    /// Sets the type of the request body and of the response.
    pub fn carries(self, name: &'a str) -> Operation<'a> {
        Operation { body: Some(name), answer: Some(name), ..self }
    }

    /// The OpenAPI operation object.
    pub fn describe(&self, components: &mut Components) -> Value {
        let mut operation =
            json!({"tags": [self.tag()], "operationId": self.id(), "responses": self.responses(components)});
        if self.action != "discovery" {
            let (group, version, kind) = self.group_version_kind();
            operation["x-kubernetes-action"] = json!(self.action);
            operation["x-kubernetes-group-version-kind"] = json!({"group": group, "version": version, "kind": kind});
        }
        let parameters = self.parameters();
        if !parameters.is_empty() {
            operation["parameters"] = Value::Array(parameters);
        }
        if let Some(body) = self.request_body(components) {
            operation["requestBody"] = body;
        }
        operation
    }

    fn group_version_kind(&self) -> (&str, &str, &str) {
        let resource = &self.kind.resource;
        match self.subresource {
            Some(subresource) if self.kind.custom.is_none() => {
                (&subresource.group, &subresource.version, &subresource.kind)
            }
            _ => (&resource.group, &resource.version, &resource.kind),
        }
    }

    fn tag(&self) -> String {
        let mut tag = camel(&self.kind.resource.group);
        if let Some(first) = tag.get_mut(..1) {
            first.make_ascii_lowercase();
        }
        format!("{}_{}", if tag.is_empty() { "core" } else { &tag }, self.kind.resource.version)
    }

    fn id(&self) -> String {
        let resource = &self.kind.resource;
        let (verb, collection) = match self.action {
            "discovery" => return format!("get{}APIResources", self.prefix()),
            "watchlist" => ("watch", ""),
            "post" => ("create", ""),
            "put" => ("replace", ""),
            "get" => ("read", ""),
            "deletecollection" => ("delete", "Collection"),
            other => (other, ""),
        };
        let prefix = self.prefix();
        let list = if self.action == "watchlist" { "List" } else { "" };
        let (scope, all) = match self.scope {
            Scope::Cluster => ("", ""),
            Scope::Namespaced => ("Namespaced", ""),
            Scope::AllNamespaces => ("", "ForAllNamespaces"),
        };
        let subresource = self.subresource.map(|subresource| camel(&subresource.name)).unwrap_or_default();
        format!("{verb}{prefix}{collection}{scope}{}{list}{subresource}{all}", resource.kind)
    }

    /// `AppsV1`
    fn prefix(&self) -> String {
        let group = match &*self.kind.resource.group {
            "" => "Core".to_owned(),
            group => camel(group),
        };
        format!("{group}{}", camel(&self.kind.resource.version))
    }

    /// The query parameters.
    pub fn parameters(&self) -> Vec<Value> {
        let names: &[(&str, &str)] = match self.action {
            "list" | "watchlist" | "watch" => LIST,
            // kube-apiserver documents the generic parameters for custom resources.
            "get" if self.kind.custom.is_some() => GET,
            "deletecollection" if self.kind.custom.is_some() => LIST,
            "post" | "put" => WRITE,
            "patch" => PATCH,
            "delete" => DELETE,
            "deletecollection" => DELETE_COLLECTION,
            _ => &[],
        };
        let parameter = |(name, kind): &(&str, &str)| json!({"name": name, "in": "query", "schema": {"type": kind, "uniqueItems": true}});
        names.iter().map(parameter).collect()
    }

    fn request_body(&self, components: &mut Components) -> Option<Value> {
        let name = match self.action {
            "post" | "put" => return Some(json!({"content": self.contents(self.body?), "required": true})),
            "patch" => {
                let schema = json!({"schema": reference(PATCH_TYPE)});
                components.refer(PATCH_TYPE);
                // A strategic merge patch needs merge keys, which custom resources do not have.
                let offered = &PATCH_TYPES[usize::from(self.kind.custom.is_some())..];
                let content: Map<String, Value> =
                    offered.iter().map(|media_type| ((*media_type).to_owned(), schema.clone())).collect();
                return Some(json!({"content": content, "required": true}));
            }
            "deletecollection" if self.kind.custom.is_some() => return None,
            "delete" | "deletecollection" => "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
            _ => return None,
        };
        components.refer(name);
        Some(json!({"content": self.contents(name)}))
    }

    /// A request body: of any media type for built-in kinds, of the supported ones for custom kinds.
    fn contents(&self, name: &str) -> Value {
        match self.kind.custom {
            None => json!({"*/*": {"schema": reference(name)}}),
            Some(_) => answers(name, &[]),
        }
    }

    fn responses(&self, components: &mut Components) -> Value {
        let status = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";
        let (name, codes): (&str, &[(&str, &str)]) = match self.action {
            "delete" => (status, &[("200", "OK"), ("202", "Accepted")]),
            "deletecollection" => (status, &[("200", "OK")]),
            "post" => (self.answer.unwrap_or(status), &[("200", "OK"), ("201", "Created"), ("202", "Accepted")]),
            "patch" if self.kind.custom.is_some() => (self.answer.unwrap_or(status), &[("200", "OK")]),
            "put" | "patch" => (self.answer.unwrap_or(status), &[("200", "OK"), ("201", "Created")]),
            _ => (self.answer.unwrap_or(status), &[("200", "OK")]),
        };
        if name == status {
            components.refer(status);
        }
        let besides: &[&str] = match self.action {
            "list" | "watchlist" | "watch" if self.kind.custom.is_none() => &[
                "application/json;stream=watch",
                "application/vnd.kubernetes.protobuf",
                "application/vnd.kubernetes.protobuf;stream=watch",
            ],
            _ if self.kind.custom.is_none() => &["application/vnd.kubernetes.protobuf"],
            _ => &[],
        };
        let mut responses = json!({"401": {"description": "Unauthorized"}});
        for (code, description) in codes {
            responses[code] = json!({"description": description, "content": answers(name, besides)});
        }
        responses
    }
}

const PATCH_TYPE: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";

/// The media types of patches; the first is for built-in kinds only.
const PATCH_TYPES: [&str; 4] = [
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
];

const GET: &[(&str, &str)] = &[("resourceVersion", "string")];

const LIST: &[(&str, &str)] = &[
    ("allowWatchBookmarks", "boolean"),
    ("continue", "string"),
    ("fieldSelector", "string"),
    ("labelSelector", "string"),
    ("limit", "integer"),
    ("resourceVersion", "string"),
    ("resourceVersionMatch", "string"),
    ("sendInitialEvents", "boolean"),
    ("timeoutSeconds", "integer"),
    ("watch", "boolean"),
];

const WRITE: &[(&str, &str)] = &[
    ("dryRun", "string"),
    ("fieldManager", "string"),
    ("fieldValidation", "string"),
];

const PATCH: &[(&str, &str)] = &[
    ("dryRun", "string"),
    ("fieldManager", "string"),
    ("fieldValidation", "string"),
    ("force", "boolean"),
];

const DELETE: &[(&str, &str)] = &[
    ("dryRun", "string"),
    ("gracePeriodSeconds", "integer"),
    ("orphanDependents", "boolean"),
    ("propagationPolicy", "string"),
];

const DELETE_COLLECTION: &[(&str, &str)] = &[
    ("continue", "string"),
    ("dryRun", "string"),
    ("fieldSelector", "string"),
    ("gracePeriodSeconds", "integer"),
    ("labelSelector", "string"),
    ("limit", "integer"),
    ("orphanDependents", "boolean"),
    ("propagationPolicy", "string"),
    ("resourceVersion", "string"),
    ("resourceVersionMatch", "string"),
    ("sendInitialEvents", "boolean"),
    ("timeoutSeconds", "integer"),
];

fn answers(name: &str, besides: &[&str]) -> Value {
    let media_types = ["application/json", "application/yaml"].iter().chain(besides);
    let content: Map<String, Value> = media_types
        .map(|media_type| ((*media_type).to_owned(), json!({"schema": reference(name)})))
        .collect();
    Value::Object(content)
}

/// `rbac.authorization.k8s.io` becomes `RbacAuthorization`.
fn camel(text: &str) -> String {
    let words = text.strip_suffix(".k8s.io").unwrap_or(text).split(['.', '-']);
    words
        .filter_map(|word| {
            let first = word.chars().next()?;
            Some(first.to_ascii_uppercase().to_string() + &word[first.len_utf8()..])
        })
        .collect()
}
