//! The types of a document: built-in ones from the table of kinds, custom ones as their authors wrote them.

use crate::registry::{CrdVersion, Kind};
use flyball_schema::kinds;
use flyball_schema::schema::{Field, Form, ListKind, Node, Patch};
use serde_json::{Map, Value, json};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// The types that a document refers to.
pub struct Components {
    group: String,
    version: String,
    schemas: Map<String, Value>,
}

/// The names of the types of one kind.
pub struct Names {
    /// One object.
    pub object: String,
    /// A list of them.
    pub list: String,
}

impl Components {
    /// No types yet, for a document of that group and version.
    pub fn new(group: &str, version: &str) -> Components {
        Components {
            group: group.to_owned(),
            version: version.to_owned(),
            schemas: Map::new(),
        }
    }

    /// Adds the types of a kind, and returns their names.
    pub fn kind(&mut self, kind: &Kind) -> Names {
        let resource = &kind.resource;
        let object = match &kind.custom {
            Some(custom) => self.custom(kind, custom),
            None => self.built_in(kind),
        };
        self.mark(&object, &resource.group, &resource.version, &resource.kind);
        let prefix = object.strip_suffix(&*resource.kind).unwrap_or_default();
        let list = format!("{prefix}{}", resource.list_kind);
        if !resource.list_kind.is_empty() {
            let mut metadata = self.refer(&format!("{META}.ListMeta"));
            let mut items = json!({"type": "array", "items": reference(&object)});
            if kind.custom.is_none() {
                metadata["default"] = json!({});
                items["items"] = json!({"allOf": [reference(&object)], "default": {}});
            }
            let text = json!({"type": "string"});
            let properties = json!({"apiVersion": text, "items": items, "kind": text, "metadata": metadata});
            let schema = json!({"type": "object", "required": ["items"], "properties": properties});
            self.schemas.insert(list.clone(), schema);
            self.mark(&list, &resource.group, &resource.version, &resource.list_kind);
        }
        Names { object, list }
    }

    /// Adds a built-in type with everything it refers to, and returns a reference to it.
    pub fn refer(&mut self, name: &str) -> Value {
        self.add(name);
        json!({"allOf": [reference(name)]})
    }

    /// Adds a built-in type with its group, version and kind.
    pub fn refer_kind(&mut self, name: &str, group: &str, version: &str, kind: &str) {
        self.add(name);
        self.mark(name, group, version, kind);
    }

    /// Adds the type of watch events, which is a kind of every group.
    pub fn refer_watch_event(&mut self, name: &str) {
        let (group, version) = (self.group.clone(), self.version.clone());
        self.refer_kind(name, "", "v1", "WatchEvent");
        self.mark(name, &group, &version, "WatchEvent");
    }

    /// The types, by name.
    pub fn finish(mut self) -> Map<String, Value> {
        let (group, version) = (self.group.clone(), self.version.clone());
        for kind in ["DeleteOptions", "Status"] {
            let name = format!("{META}.{kind}");
            self.mark(&name, "", "v1", kind);
            if kind == "DeleteOptions" && !group.is_empty() {
                self.mark(&name, &group, &version, kind);
            }
        }
        self.schemas
    }

    fn built_in(&mut self, kind: &Kind) -> String {
        let name = kind.node().and_then(|node| node.schema().name.as_deref());
        let name = name.unwrap_or(&kind.resource.kind).to_owned();
        self.add(&name);
        name
    }

    fn add(&mut self, name: &str) {
        if self.schemas.contains_key(name) {
            return;
        }
        self.schemas.insert(name.to_owned(), Value::Null);
        let schema = match kinds::builtin().schema(name) {
            Some(node) => self.form(node),
            None => json!({"type": "object"}),
        };
        self.schemas.insert(name.to_owned(), schema);
    }

    /// Adds `x-kubernetes-group-version-kind` to a type.
    fn mark(&mut self, name: &str, group: &str, version: &str, kind: &str) {
        let Some(schema) = self.schemas.get_mut(name) else {
            return;
        };
        let entry = json!({"group": group, "kind": kind, "version": version});
        match schema.get_mut("x-kubernetes-group-version-kind").and_then(Value::as_array_mut) {
            Some(kinds) if kinds.contains(&entry) => {}
            Some(kinds) => kinds.push(entry),
            None => schema["x-kubernetes-group-version-kind"] = json!([entry]),
        }
    }

    /// The schema of a use of a type: a reference if the type has a name.
    fn value(&mut self, node: Node<'_>) -> Value {
        let mut schema = match node.schema().name.as_deref() {
            None => self.form(node),
            Some(name) if node.default.is_some() => self.refer(name),
            Some(name) => {
                self.add(name);
                reference(name)
            }
        };
        if let Some(default) = &node.default {
            schema["default"] = default.clone();
        }
        schema
    }

    /// The schema of the items of a list or map: where Go has no pointer, the zero value is the default.
    fn element(&mut self, node: Node<'_>) -> Value {
        let zero = match (&node.schema().form, &node.schema().name) {
            (Form::String, None) if node.format.is_none() => json!(""),
            (Form::Integer | Form::Number, None) => json!(0),
            (Form::Boolean, None) => json!(false),
            (Form::Object(object), Some(_)) if !object.fields.is_empty() => json!({}),
            _ => return self.value(node),
        };
        let mut schema = match node.schema().name.as_deref() {
            Some(name) => self.refer(name),
            None => self.form(node),
        };
        schema["default"] = node.default.clone().unwrap_or(zero);
        schema
    }

    /// The schema of a type's values.
    fn form(&mut self, node: Node<'_>) -> Value {
        let mut schema = match &node.schema().form {
            Form::Any => json!({}),
            Form::Boolean => json!({"type": "boolean"}),
            Form::Integer => json!({"type": "integer"}),
            Form::Number => json!({"type": "number"}),
            Form::String => json!({"type": "string"}),
            Form::IntOrString => json!({"oneOf": [{"type": "integer"}, {"type": "string"}], "format": "int-or-string"}),
            Form::Quantity => json!({"oneOf": [{"type": "string"}, {"type": "number"}]}),
            Form::List(list) => {
                let items = self.element(node.at(list.items));
                listed(json!({"type": "array", "items": items}), &list.kind)
            }
            Form::Map(map) => {
                let values = self.element(node.at(map.values));
                atomic(json!({"type": "object", "additionalProperties": values}), map.atomic)
            }
            Form::Object(object) => atomic(self.object(node, &object.fields), object.atomic && !node.preserve_unknown),
        };
        if let Some(format) = &node.format {
            schema["format"] = json!(format);
        }
        if !node.allowed.is_empty() {
            schema["enum"] = json!(node.allowed);
        }
        schema
    }

    fn object(&mut self, node: Node<'_>, fields: &[Field]) -> Value {
        let mut schema = json!({"type": "object"});
        let required: Vec<&str> = fields.iter().filter(|field| field.required).map(|field| &*field.name).collect();
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        if !fields.is_empty() {
            let property = |field: &Field| (field.name.to_string(), self.field(node, field));
            schema["properties"] = Value::Object(fields.iter().map(property).collect());
        }
        schema
    }

    fn field(&mut self, node: Node<'_>, field: &Field) -> Value {
        let mut schema = self.value(node.at(field.schema));
        // OpenAPI 3.0 ignores siblings of `$ref`.
        if let Some(name) = schema.get("$ref").cloned() {
            schema = json!({"allOf": [{"$ref": name}]});
        }
        let patch = field.patch.as_deref().cloned().unwrap_or_default();
        if let Some(key) = &patch.merge_key {
            schema["x-kubernetes-patch-merge-key"] = json!(key);
        }
        let strategy = strategy(&patch);
        if !strategy.is_empty() {
            schema["x-kubernetes-patch-strategy"] = json!(strategy);
        }
        schema
    }

    fn custom(&mut self, kind: &Kind, custom: &CrdVersion) -> String {
        let name = custom_name(kind);
        let mut schema = published(custom.schemas.open_api_v3(&kind.resource.version));
        if !schema.is_object() {
            schema = json!({});
        }
        schema["type"] = json!("object");
        let metadata = self.refer(&format!("{META}.ObjectMeta"));
        let text = json!({"type": "string"});
        schema["properties"]["apiVersion"] = text.clone();
        schema["properties"]["kind"] = text;
        schema["properties"]["metadata"] = metadata;
        if !custom.selectable_fields.is_empty() {
            let fields = custom.selectable_fields.iter();
            let fields: Vec<Value> = fields.map(|path| json!({"fieldPath": path.trim_start_matches('.')})).collect();
            schema["x-kubernetes-selectable-fields"] = json!(fields);
        }
        self.schemas.insert(name.clone(), schema);
        name
    }
}

/// A reference to a type.
pub fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// `dev.example.v1.Greeting`
fn custom_name(kind: &Kind) -> String {
    let group: Vec<&str> = kind.resource.group.split('.').rev().collect();
    format!("{}.{}.{}", group.join("."), kind.resource.version, kind.resource.kind)
}

/// A schema as its author wrote it, with the `anyOf` that `x-kubernetes-int-or-string` implies.
fn published(mut schema: Value) -> Value {
    if schema["x-kubernetes-int-or-string"] == true && schema.get("anyOf").is_none() && schema.get("allOf").is_none() {
        schema["anyOf"] = json!([{"type": "integer"}, {"type": "string"}]);
    }
    for keyword in ["properties", "patternProperties"] {
        if let Some(fields) = schema.get_mut(keyword).and_then(Value::as_object_mut) {
            fields.values_mut().for_each(|field| *field = published(field.take()));
        }
    }
    for keyword in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get_mut(keyword).filter(|inner| inner.is_object()) {
            *inner = published(inner.take());
        }
    }
    schema
}

fn listed(mut schema: Value, kind: &ListKind) -> Value {
    match kind {
        ListKind::Atomic => schema["x-kubernetes-list-type"] = json!("atomic"),
        ListKind::Set => schema["x-kubernetes-list-type"] = json!("set"),
        ListKind::Map(keys) => {
            schema["x-kubernetes-list-type"] = json!("map");
            schema["x-kubernetes-list-map-keys"] = json!(keys);
        }
    }
    schema
}

fn atomic(mut schema: Value, atomic: bool) -> Value {
    if atomic {
        schema["x-kubernetes-map-type"] = json!("atomic");
    }
    schema
}

fn strategy(patch: &Patch) -> String {
    let words = [
        (patch.merge, "merge"),
        (patch.replace, "replace"),
        (patch.retain_keys, "retainKeys"),
    ];
    words
        .iter()
        .filter(|(holds, _)| *holds)
        .map(|(_, word)| *word)
        .collect::<Vec<_>>()
        .join(",")
}
