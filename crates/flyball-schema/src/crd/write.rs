//! A type of a custom resource as the schema it could have been read from: the inverse of `convert`.
//! Prose and formats that no value is checked against are not kept, and so do not come back.

use crate::schema::{Form, ListKind, Node, Rules};
use serde_json::{Map, Value, json};

const NAMES: [&str; 2] = ["name", "generateName"];

/// The object itself: of `metadata` only what is asked of names is written.
pub(super) fn resource(node: Node<'_>) -> Value {
    let mut schema = value(node);
    if let Some(metadata) = node.field("metadata") {
        let asked = |name: &str| metadata.field(name).filter(|field| field.type_name().is_none() && asks(*field));
        let written = |name: &&str| Some(((*name).to_owned(), value(asked(name)?)));
        let names: Map<String, Value> = NAMES.iter().filter_map(written).collect();
        schema["properties"]["metadata"] = json!({"type": "object"});
        if !names.is_empty() {
            schema["properties"]["metadata"]["properties"] = names.into();
        }
    }
    schema
}

/// Whether a name has to be more than text.
fn asks(node: Node<'_>) -> bool {
    node.rules.is_some() || node.format.is_some() || !node.allowed.is_empty() || node.default.is_some() || node.nullable
}

fn value(node: Node<'_>) -> Value {
    let mut schema = form(node);
    let mut set = |keyword: &str, value: Value| {
        schema.insert(keyword.to_owned(), value);
    };
    if let Some(format) = &node.format {
        set("format", json!(format));
    }
    if let Some(default) = &node.default {
        set("default", default.clone());
    }
    if !node.allowed.is_empty() {
        set("enum", json!(node.allowed));
    }
    for (holds, keyword) in [
        (node.nullable, "nullable"),
        (node.preserve_unknown, "x-kubernetes-preserve-unknown-fields"),
        (node.embedded_resource, "x-kubernetes-embedded-resource"),
    ] {
        if holds {
            set(keyword, json!(true));
        }
    }
    if let Some(asked) = &node.rules {
        schema.extend(rules(node, asked));
    }
    Value::Object(schema)
}

/// The type, and the types inside it.
fn form(node: Node<'_>) -> Map<String, Value> {
    let typed = |kind: &str| match node.any_type {
        true => Map::new(),
        false => Map::from_iter([("type".to_owned(), json!(kind))]),
    };
    match &node.form {
        Form::Any => Map::new(),
        Form::Boolean => typed("boolean"),
        Form::Integer => typed("integer"),
        Form::Number => typed("number"),
        Form::String | Form::Quantity => typed("string"),
        Form::IntOrString => Map::from_iter([("x-kubernetes-int-or-string".to_owned(), json!(true))]),
        Form::List(list) => {
            let mut schema = typed("array");
            schema.insert("items".to_owned(), value(node.at(list.items)));
            list_kind(&mut schema, &list.kind);
            schema
        }
        Form::Map(map) => {
            let values = node.at(map.values);
            let anything = matches!(values.form, Form::Any) && !values.any_type && !values.preserve_unknown;
            let mut schema = typed("object");
            let additional = match &node.rules {
                Some(rules) if rules.closed => json!(false),
                _ if anything => json!(true),
                _ => value(values),
            };
            schema.insert("additionalProperties".to_owned(), additional);
            map_kind(&mut schema, map.atomic);
            schema
        }
        Form::Object(object) => {
            let mut schema = typed("object");
            let fields = object.fields.iter();
            let properties: Map<String, Value> =
                fields.map(|field| (field.name.to_string(), value(node.at(field.schema)))).collect();
            let closed = node.rules.as_ref().is_some_and(|rules| rules.closed);
            if !properties.is_empty() || node.open || closed || node.any_type {
                schema.insert("properties".to_owned(), properties.into());
            }
            if node.open || closed {
                schema.insert("additionalProperties".to_owned(), json!(node.open));
            }
            map_kind(&mut schema, object.atomic);
            schema
        }
    }
}

fn list_kind(schema: &mut Map<String, Value>, kind: &ListKind) {
    match kind {
        ListKind::Atomic => {}
        ListKind::Set => drop(schema.insert("x-kubernetes-list-type".to_owned(), json!("set"))),
        ListKind::Map(keys) => {
            schema.insert("x-kubernetes-list-type".to_owned(), json!("map"));
            schema.insert("x-kubernetes-list-map-keys".to_owned(), json!(keys));
        }
    }
}

fn map_kind(schema: &mut Map<String, Value>, atomic: bool) {
    if atomic {
        schema.insert("x-kubernetes-map-type".to_owned(), json!("atomic"));
    }
}

fn rules(node: Node<'_>, rules: &Rules) -> Map<String, Value> {
    let alternatives = |ids: &[_]| match ids {
        [] => Value::Null,
        ids => ids.iter().map(|id| value(node.at(*id))).collect(),
    };
    let flag = |holds: bool| if holds { json!(true) } else { Value::Null };
    let all = [
        ("minimum", json!(rules.minimum)),
        ("exclusiveMinimum", flag(rules.exclusive_minimum)),
        ("maximum", json!(rules.maximum)),
        ("exclusiveMaximum", flag(rules.exclusive_maximum)),
        ("multipleOf", json!(rules.multiple_of)),
        ("minLength", json!(rules.min_length)),
        ("maxLength", json!(rules.max_length)),
        ("pattern", json!(rules.pattern.as_ref().map(|pattern| pattern.as_str()))),
        ("minItems", json!(rules.min_items)),
        ("maxItems", json!(rules.max_items)),
        ("minProperties", json!(rules.min_properties)),
        ("maxProperties", json!(rules.max_properties)),
        (
            "required",
            if rules.required.is_empty() {
                Value::Null
            } else {
                json!(rules.required)
            },
        ),
        ("allOf", alternatives(&rules.all_of)),
        ("anyOf", alternatives(&rules.any_of)),
        ("oneOf", alternatives(&rules.one_of)),
        ("not", rules.not.map(|id| value(node.at(id))).unwrap_or_default()),
    ];
    let said = all.into_iter().filter(|(_, value)| !value.is_null());
    said.map(|(keyword, value)| (keyword.to_owned(), value)).collect()
}
