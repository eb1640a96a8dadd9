//! The paths of a kind: collection, object, subresources, and the deprecated watch paths.

use crate::openapi::operation::{Operation, Scope};
use crate::openapi::schema::{Components, Names};
use crate::registry::Kind;
use flyball_schema::resource::Subresource;
use serde_json::{Map, Value, json};

/// The paths of a document under construction.
pub struct Paths<'a> {
    base: String,
    components: &'a mut Components,
    paths: Map<String, Value>,
}

impl<'a> Paths<'a> {
    /// No paths yet, below `/apis/<group>/<version>`.
    pub fn new(base: String, components: &'a mut Components) -> Paths<'a> {
        Paths { base, components, paths: Map::new() }
    }

    /// The paths, by path.
    pub fn finish(self) -> Map<String, Value> {
        self.paths
    }

    /// Adds the path that lists the resources of the version.
    pub fn discovery(&mut self, kind: &Kind) {
        let list = "io.k8s.apimachinery.pkg.apis.meta.v1.APIResourceList";
        self.components.refer_kind(list, "", "v1", "APIResourceList");
        let get = Operation::discovery(kind).answers(list).describe(self.components);
        self.paths.insert(format!("{}/", self.base), json!({"get": get}));
    }

    /// Adds a kind: its types, and its paths.
    pub fn add(&mut self, kind: &Kind) {
        let names = self.components.kind(kind);
        self.kind(kind, &names);
    }

    fn kind(&mut self, kind: &Kind, names: &Names) {
        let resource = &kind.resource;
        let (plural, base) = (&resource.plural, self.base.clone());
        let (scope, within) = match resource.namespaced {
            true => (Scope::Namespaced, "namespaces/{namespace}/"),
            false => (Scope::Cluster, ""),
        };
        if resource.namespaced && can(kind, "list") {
            let list = Operation::new(kind, "list", Scope::AllNamespaces).answers(&names.list);
            self.place(format!("{base}/{plural}"), vec![("get", list)], parameters(false, false));
        }
        let collection = format!("{base}/{within}{plural}");
        self.collection(kind, names, scope, collection.clone());
        self.object(kind, names, scope, format!("{collection}/{{name}}"));
        for subresource in &resource.subresources {
            self.subresource(kind, subresource, scope, &format!("{collection}/{{name}}"));
        }
        if kind.custom.is_none() && can(kind, "watch") {
            self.watches(kind, scope, &format!("{within}{plural}"));
        }
    }

    fn collection(&mut self, kind: &Kind, names: &Names, scope: Scope, path: String) {
        let operation = |action| Operation::new(kind, action, scope);
        let mut operations = vec![];
        if can(kind, "list") {
            operations.push(("get", operation("list").answers(&names.list)));
        }
        if can(kind, "create") {
            operations.push(("post", operation("post").carries(&names.object)));
        }
        if can(kind, "deletecollection") {
            operations.push(("delete", operation("deletecollection")));
        }
        self.place(path, operations, parameters(kind.resource.namespaced, false));
    }

    fn object(&mut self, kind: &Kind, names: &Names, scope: Scope, path: String) {
        let verbs = OBJECT_VERBS.iter().filter(|(verb, ..)| can(kind, verb));
        let operation =
            |&(_, method, action): &Carried| (method, Operation::new(kind, action, scope).carries(&names.object));
        self.place(path, verbs.map(operation).collect(), parameters(kind.resource.namespaced, true));
    }

    fn subresource(&mut self, kind: &Kind, subresource: &Subresource, scope: Scope, object: &str) {
        let Some(name) = type_name(kind, subresource, self.components) else {
            return;
        };
        let verbs = OBJECT_VERBS.iter().chain(&[("create", "post", "post")]);
        let verbs = verbs.filter(|(verb, ..)| subresource.verbs.iter().any(|known| &**known == *verb));
        let operation = |&(_, method, action): &Carried| {
            let operation = Operation::new(kind, action, scope).of_subresource(subresource);
            (method, operation.carries(&name))
        };
        let path = format!("{object}/{}", subresource.name);
        self.place(path, verbs.map(operation).collect(), parameters(kind.resource.namespaced, true));
    }

    /// Adds the deprecated paths below `/watch/`.
    fn watches(&mut self, kind: &Kind, scope: Scope, below: &str) {
        let event = "io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent";
        self.components.refer_watch_event(event);
        let namespaced = kind.resource.namespaced;
        let base = format!("{}/watch", self.base);
        let mut place = |path, action, scope, parameters| {
            let operation = Operation::new(kind, action, scope).answers(event);
            self.place(path, vec![("get", operation)], parameters);
        };
        if namespaced {
            let path = format!("{base}/{}", kind.resource.plural);
            place(path, "watchlist", Scope::AllNamespaces, parameters(false, false));
        }
        place(format!("{base}/{below}"), "watchlist", scope, parameters(namespaced, false));
        if can(kind, "get") {
            place(format!("{base}/{below}/{{name}}"), "watch", scope, parameters(namespaced, true));
        }
    }

    /// Adds a path. Parameters that all its operations share are listed once, at the path.
    fn place(&mut self, path: String, operations: Vec<(&str, Operation<'_>)>, mut parameters: Vec<Value>) {
        let mut item = Map::new();
        if let [(_, operation)] = &operations[..] {
            parameters.extend(operation.parameters());
            parameters.sort_by_key(|parameter| parameter["name"].as_str().map(str::to_owned));
        }
        for (method, operation) in &operations {
            let mut described = operation.describe(self.components);
            if operations.len() == 1
                && let Some(described) = described.as_object_mut()
            {
                described.remove("parameters");
            }
            item.insert((*method).to_owned(), described);
        }
        if !item.is_empty() {
            item.insert("parameters".into(), Value::Array(parameters));
            self.paths.insert(path, Value::Object(item));
        }
    }
}

/// A verb of discovery, the method that carries it, and its `x-kubernetes-action`.
type Carried = (&'static str, &'static str, &'static str);

const OBJECT_VERBS: [Carried; 4] = [
    ("get", "get", "get"),
    ("update", "put", "put"),
    ("patch", "patch", "patch"),
    ("delete", "delete", "delete"),
];

fn can(kind: &Kind, verb: &str) -> bool {
    kind.resource.verbs.iter().any(|known| &**known == verb)
}

/// The name of a subresource's type; none for a stream of bytes.
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
    let text = json!({"type": "string", "uniqueItems": true});
    let path = |name: &str| json!({"name": name, "in": "path", "required": true, "schema": text});
    let mut parameters = vec![];
    if named {
        parameters.push(path("name"));
    }
    if namespaced {
        parameters.push(path("namespace"));
    }
    parameters.push(json!({"name": "pretty", "in": "query", "schema": text}));
    parameters
}
