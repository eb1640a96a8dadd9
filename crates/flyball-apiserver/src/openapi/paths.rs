//! The paths of a kind: its collection, one object, and each subresource.

use super::operation::{Operation, Scope};
use super::schema::{Components, Names};
use crate::registry::Kind;
use flyball_schema::resource::Subresource;
use serde_json::{Map, Value, json};

/// Adds the paths of a kind.
pub fn of(kind: &Kind, names: &Names, components: &mut Components, paths: &mut Map<String, Value>) {
    let resource = &kind.resource;
    let base = format!("/{}", super::key(&resource.group, &resource.version));
    let collection = match resource.namespaced {
        true => format!("{base}/namespaces/{{namespace}}/{}", resource.plural),
        false => format!("{base}/{}", resource.plural),
    };
    let can = |verb: &str| resource.verbs.iter().any(|known| &**known == verb);
    if resource.namespaced && can("list") {
        let list = Operation::new(kind, "list", Scope::AllNamespaces).answers(&names.list);
        paths.insert(format!("{base}/{}", resource.plural), json!({"get": list.describe(components)}));
    }
    let scope = if resource.namespaced {
        Scope::Namespaced
    } else {
        Scope::Cluster
    };
    let operation = |action| Operation::new(kind, action, scope);
    let mut item = Map::new();
    if can("list") {
        item.insert("get".into(), operation("list").answers(&names.list).describe(components));
    }
    if can("create") {
        item.insert("post".into(), operation("post").carries(&names.object).describe(components));
    }
    if can("deletecollection") {
        item.insert("delete".into(), operation("deletecollection").describe(components));
    }
    place(paths, collection.clone(), item, parameters(resource.namespaced, false));
    let mut item = Map::new();
    for (verb, method, action) in OBJECT_VERBS {
        if can(verb) {
            item.insert(method.into(), operation(action).carries(&names.object).describe(components));
        }
    }
    let object = format!("{collection}/{{name}}");
    place(paths, object.clone(), item, parameters(resource.namespaced, true));
    for subresource in &resource.subresources {
        of_subresource(kind, subresource, scope, &object, components, paths);
    }
}

const OBJECT_VERBS: [(&str, &str, &str); 4] = [
    ("get", "get", "get"),
    ("update", "put", "put"),
    ("patch", "patch", "patch"),
    ("delete", "delete", "delete"),
];

fn of_subresource(
    kind: &Kind,
    subresource: &Subresource,
    scope: Scope,
    object: &str,
    components: &mut Components,
    paths: &mut Map<String, Value>,
) {
    let Some(name) = type_name(kind, subresource, components) else {
        return;
    };
    let mut item = Map::new();
    let verbs = OBJECT_VERBS.iter().copied().chain([("create", "post", "post")]);
    for (verb, method, action) in verbs {
        if subresource.verbs.iter().any(|known| &**known == verb) {
            let operation = Operation::new(kind, action, scope).of_subresource(subresource).carries(&name);
            item.insert(method.into(), operation.describe(components));
        }
    }
    let path = format!("{object}/{}", subresource.name);
    place(paths, path, item, parameters(kind.resource.namespaced, true));
}

/// What the type of a subresource is called; none if it is a stream of bytes.
fn type_name(kind: &Kind, subresource: &Subresource, components: &mut Components) -> Option<String> {
    if subresource.kind == kind.resource.kind {
        return Some(components.kind(kind).object);
    }
    let built_in = flyball_schema::kinds::builtin();
    let name = match subresource.schema {
        Some(id) if kind.custom.is_none() => built_in.schemas.node(id).schema().name.as_deref()?.to_owned(),
        _ if &*subresource.kind == "Scale" => "io.k8s.api.autoscaling.v1.Scale".to_owned(),
        _ => return None,
    };
    components.refer_kind(&name, &subresource.group, &subresource.version, &subresource.kind);
    Some(name)
}

fn parameters(namespaced: bool, named: bool) -> Vec<Value> {
    let path = |name: &str| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string", "uniqueItems": true}});
    let mut parameters = vec![];
    if named {
        parameters.push(path("name"));
    }
    if namespaced {
        parameters.push(path("namespace"));
    }
    parameters.push(json!({"name": "pretty", "in": "query", "schema": {"type": "string", "uniqueItems": true}}));
    parameters
}

fn place(paths: &mut Map<String, Value>, path: String, mut item: Map<String, Value>, parameters: Vec<Value>) {
    if !item.is_empty() {
        item.insert("parameters".into(), Value::Array(parameters));
        paths.insert(path, Value::Object(item));
    }
}
