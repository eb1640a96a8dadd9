//! A structural schema into the one model of types; what is not structural has been refused before.

use super::Structural;
use super::props::{Additional, Props};
use crate::kinds;
use crate::pattern::Pattern;
use crate::schema::{Field, Form, List, ListKind, Map, Object, Rules, Schema, SchemaId, Schemas};
use crate::validate::is_supported_format;
use serde_json::Value;
use std::sync::Arc;

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

pub(super) fn convert(props: Props<'_>) -> Structural {
    let mut conversion = Conversion { schemas: Schemas::default() };
    let root = conversion.resource(props);
    Structural { schemas: conversion.schemas, root, validator: None }
}

struct Conversion {
    schemas: Schemas,
}

impl Conversion {
    /// The object itself: `apiVersion`, `kind` and `metadata` are what they always are.
    fn resource(&mut self, props: Props<'_>) -> SchemaId {
        let mut schema = self.schema(props);
        let mut object = match &schema.form {
            Form::Object(object) => Object::clone(object),
            _ => Object::default(),
        };
        for name in ["apiVersion", "kind"] {
            if object.fields.iter().all(|field| &*field.name != name) {
                let text = self.schemas.add(Schema { form: Form::String, ..Schema::default() });
                object.fields.push(field(name, text, false));
            }
        }
        let required = object.fields.iter().any(|field| &*field.name == "metadata" && field.required);
        object.fields.retain(|field| &*field.name != "metadata");
        let metadata = self.metadata(props.property("metadata").unwrap_or_default());
        object.fields.push(field("metadata", metadata, required));
        object.fields.sort_by(|one, other| one.name.cmp(&other.name));
        schema.form = Form::Object(Arc::new(object));
        schema.any_type = false;
        self.schemas.add(schema)
    }

    /// The type of all metadata, with what a schema asks of names.
    fn metadata(&mut self, props: Props<'_>) -> SchemaId {
        let table = kinds::builtin();
        let id = table.schema_id(OBJECT_META).expect("the table of kinds has ObjectMeta");
        let id = self.schemas.import(&table.schemas, id);
        for (name, property) in props.properties() {
            let restricted = self.add(property);
            let mut schema = Schema::clone(&self.schemas.node(id));
            let Form::Object(object) = &mut schema.form else {
                continue;
            };
            let mut fields = Object::clone(object);
            for field in fields.fields.iter_mut().filter(|field| &*field.name == name) {
                field.schema = restricted;
            }
            schema.form = Form::Object(Arc::new(fields));
            self.schemas.set(id, schema);
        }
        id
    }

    fn add(&mut self, props: Props<'_>) -> SchemaId {
        let schema = self.schema(props);
        self.schemas.add(schema)
    }

    fn schema(&mut self, props: Props<'_>) -> Schema {
        let kind = if props.int_or_string() { "" } else { props.kind() };
        let form = self.form(props);
        let format = props.text("format");
        let of = if props.int_or_string() { "none" } else { kind };
        Schema {
            any_type: props.kind().is_empty() && !props.int_or_string(),
            format: (!format.is_empty() && is_supported_format(format, of)).then(|| format.into()),
            nullable: props.flag("nullable"),
            default: props.get("default").cloned(),
            allowed: props.list("enum").to_vec(),
            preserve_unknown: props.preserves_unknown(),
            open: is_open(props),
            embedded_resource: props.embeds_resource(),
            rules: self.rules(props).map(Box::new),
            form,
            ..Schema::default()
        }
    }

    fn form(&mut self, props: Props<'_>) -> Form {
        if props.int_or_string() {
            return Form::IntOrString;
        }
        let properties = props.get("properties").is_some();
        match (props.kind(), props.additional(), props.items()) {
            ("boolean", ..) => Form::Boolean,
            ("integer", ..) => Form::Integer,
            ("number", ..) => Form::Number,
            ("string", ..) => Form::String,
            ("array" | "", _, Some(items)) if !properties => Form::List(self.list(props, items)),
            ("object" | "", Some(additional), _) if !properties => Form::Map(self.map(props, additional)),
            ("object", ..) => Form::Object(Arc::new(self.object(props))),
            ("", ..) if properties => Form::Object(Arc::new(self.object(props))),
            _ => Form::Any,
        }
    }

    fn list(&mut self, props: Props<'_>, items: Props<'_>) -> List {
        let kind = match props.text("x-kubernetes-list-type") {
            "set" => ListKind::Set,
            "map" => ListKind::Map(props.texts("x-kubernetes-list-map-keys").into_iter().map(Box::from).collect()),
            _ => ListKind::Atomic,
        };
        List { items: self.add(items), kind }
    }

    fn map(&mut self, props: Props<'_>, additional: Additional<'_>) -> Map {
        let values = match additional {
            Additional::Schema(schema) => self.add(schema),
            Additional::Allowed(_) => self.schemas.add(Schema::default()),
        };
        Map { values, atomic: is_atomic(props) }
    }

    fn object(&mut self, props: Props<'_>) -> Object {
        let required = props.texts("required");
        let declared = props.properties().into_iter();
        let fields = declared.map(|(name, property)| field(name, self.add(property), required.contains(&name)));
        Object {
            fields: fields.collect(),
            atomic: is_atomic(props),
            ..Object::default()
        }
    }

    fn rules(&mut self, props: Props<'_>) -> Option<Rules> {
        const KEYWORDS: [&str; 15] = [
            "minimum",
            "maximum",
            "multipleOf",
            "minLength",
            "maxLength",
            "pattern",
            "minItems",
            "maxItems",
            "minProperties",
            "maxProperties",
            "required",
            "allOf",
            "anyOf",
            "oneOf",
            "not",
        ];
        let closed = matches!(props.additional(), Some(Additional::Allowed(false)));
        if !closed && KEYWORDS.iter().all(|keyword| props.get(keyword).is_none()) {
            return None;
        }
        let number = |keyword: &str| props.get(keyword).and_then(Value::as_number).cloned();
        let mut alternatives =
            |keyword: &str| -> Vec<SchemaId> { props.schemas(keyword).map(|nested| self.add(nested)).collect() };
        let (all_of, any_of, one_of) = (alternatives("allOf"), alternatives("anyOf"), alternatives("oneOf"));
        let not = props.schema("not").map(|nested| self.add(nested));
        Some(Rules {
            minimum: number("minimum"),
            exclusive_minimum: props.flag("exclusiveMinimum"),
            maximum: number("maximum"),
            exclusive_maximum: props.flag("exclusiveMaximum"),
            multiple_of: number("multipleOf"),
            min_length: props.count("minLength"),
            max_length: props.count("maxLength"),
            pattern: props.get("pattern").and_then(Value::as_str).map(Pattern::checked),
            min_items: props.count("minItems"),
            max_items: props.count("maxItems"),
            unique_items: false,
            min_properties: props.count("minProperties"),
            max_properties: props.count("maxProperties"),
            closed,
            required: props.texts("required").into_iter().map(Box::from).collect(),
            all_of,
            any_of,
            one_of,
            not,
        })
    }
}

/// `additionalProperties: true` beside properties.
fn is_open(props: Props<'_>) -> bool {
    props.get("properties").is_some() && matches!(props.additional(), Some(Additional::Allowed(true)))
}

fn is_atomic(props: Props<'_>) -> bool {
    props.text("x-kubernetes-map-type") == "atomic"
}

fn field(name: &str, schema: SchemaId, required: bool) -> Field {
    Field {
        name: name.into(),
        schema,
        required,
        patch: None,
        protobuf: None,
    }
}
