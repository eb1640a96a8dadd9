//! How real servers print versions and schemas in messages: as their internal types, every field, in Go's names.
// apiextensions-apiserver/pkg/apis/apiextensions/{types,types_jsonschema}.go

use super::version::Hoisted;
use super::{items, text};
use crate::go_text;
use crate::violation::{Reason, Violation};
use serde_json::Value;

/// How a field is printed.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    Flag,
    /// As JSON, `null` where there is none.
    Raw,
    Schema,
    Schemas,
    SchemaMap,
    SchemaOrList,
    SchemaOrFlag,
    Rules,
}

/// The fields of a schema, in the order of their declaration.
const FIELDS: [(&str, &str, Kind); 44] = [
    ("ID", "id", Kind::Text),
    ("Schema", "$schema", Kind::Text),
    ("Ref", "$ref", Kind::Raw),
    ("Description", "description", Kind::Text),
    ("Type", "type", Kind::Text),
    ("Nullable", "nullable", Kind::Flag),
    ("Format", "format", Kind::Text),
    ("Title", "title", Kind::Text),
    ("Default", "default", Kind::Raw),
    ("Maximum", "maximum", Kind::Raw),
    ("ExclusiveMaximum", "exclusiveMaximum", Kind::Flag),
    ("Minimum", "minimum", Kind::Raw),
    ("ExclusiveMinimum", "exclusiveMinimum", Kind::Flag),
    ("MaxLength", "maxLength", Kind::Raw),
    ("MinLength", "minLength", Kind::Raw),
    ("Pattern", "pattern", Kind::Text),
    ("MaxItems", "maxItems", Kind::Raw),
    ("MinItems", "minItems", Kind::Raw),
    ("UniqueItems", "uniqueItems", Kind::Flag),
    ("MultipleOf", "multipleOf", Kind::Raw),
    ("Enum", "enum", Kind::Raw),
    ("MaxProperties", "maxProperties", Kind::Raw),
    ("MinProperties", "minProperties", Kind::Raw),
    ("Required", "required", Kind::Raw),
    ("Items", "items", Kind::SchemaOrList),
    ("AllOf", "allOf", Kind::Schemas),
    ("OneOf", "oneOf", Kind::Schemas),
    ("AnyOf", "anyOf", Kind::Schemas),
    ("Not", "not", Kind::Schema),
    ("Properties", "properties", Kind::SchemaMap),
    ("AdditionalProperties", "additionalProperties", Kind::SchemaOrFlag),
    ("PatternProperties", "patternProperties", Kind::SchemaMap),
    ("Dependencies", "dependencies", Kind::Raw),
    ("AdditionalItems", "additionalItems", Kind::SchemaOrFlag),
    ("Definitions", "definitions", Kind::SchemaMap),
    ("ExternalDocs", "externalDocs", Kind::Raw),
    ("Example", "example", Kind::Raw),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields", Kind::Raw),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource", Kind::Flag),
    ("XIntOrString", "x-kubernetes-int-or-string", Kind::Flag),
    ("XListMapKeys", "x-kubernetes-list-map-keys", Kind::Raw),
    ("XListType", "x-kubernetes-list-type", Kind::Raw),
    ("XMapType", "x-kubernetes-map-type", Kind::Raw),
    ("XValidations", "x-kubernetes-validations", Kind::Rules),
];

/// A schema, printed whole.
pub(crate) fn schema(schema: &Value) -> String {
    let fields: Vec<_> = FIELDS
        .iter()
        .map(|(name, key, kind)| format!("\"{name}\":{}", field(&schema[*key], *kind)))
        .collect();
    format!("{{{}}}", fields.join(","))
}

/// A validation rule, printed whole.
pub(crate) fn rule(rule: &Value) -> String {
    let text = |name: &str| go_text::json(&rule[name].as_str().unwrap_or_default().into());
    format!(
        "{{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":{},\"FieldPath\":{},\"OptionalOldSelf\":{}}}",
        text("rule"),
        text("message"),
        text("messageExpression"),
        go_text::json(&rule["reason"]),
        text("fieldPath"),
        go_text::json(&rule["optionalOldSelf"]),
    )
}

fn field(value: &Value, kind: Kind) -> String {
    match (kind, value) {
        (Kind::Text, _) => go_text::json(&value.as_str().unwrap_or_default().into()),
        (Kind::Flag, _) => value.as_bool().unwrap_or_default().to_string(),
        (_, Value::Null) | (Kind::Raw, _) => go_text::json(value),
        (Kind::Rules, _) => {
            let rules: Vec<_> = value.as_array().into_iter().flatten().map(rule).collect();
            format!("[{}]", rules.join(","))
        }
        (Kind::Schema, _) => schema(value),
        (Kind::Schemas, _) => list(value),
        (Kind::SchemaMap, _) => {
            let mut fields: Vec<_> = value.as_object().into_iter().flatten().collect();
            fields.sort_by_key(|(name, _)| *name);
            let fields: Vec<_> = fields
                .iter()
                .map(|(name, one)| format!("{}:{}", go_text::json(&name.as_str().into()), schema(one)))
                .collect();
            format!("{{{}}}", fields.join(","))
        }
        (Kind::SchemaOrList, Value::Array(_)) => format!("{{\"Schema\":null,\"JSONSchemas\":{}}}", list(value)),
        (Kind::SchemaOrList, _) => format!("{{\"Schema\":{},\"JSONSchemas\":null}}", schema(value)),
        (Kind::SchemaOrFlag, Value::Bool(flag)) => format!("{{\"Allows\":{flag},\"Schema\":null}}"),
        (Kind::SchemaOrFlag, _) => format!("{{\"Allows\":true,\"Schema\":{}}}", schema(value)),
    }
}

fn list(value: &Value) -> String {
    let schemas: Vec<_> = value.as_array().into_iter().flatten().map(schema).collect();
    format!("[{}]", schemas.join(","))
}

/// A complaint about all versions, which are printed without what they share.
pub(super) fn invalid_versions(versions: &Value, hoisted: &Hoisted<'_>, detail: &str) -> Violation {
    let shown = match versions.as_array() {
        Some(versions) => {
            let shown: Vec<_> = versions.iter().map(|one| version(one, hoisted)).collect();
            format!("[{}]", shown.join(","))
        }
        None => "null".to_owned(),
    };
    Violation::with_text("spec.versions", Reason::Invalid, &shown, detail)
}

fn version(version: &Value, hoisted: &Hoisted<'_>) -> String {
    let flag = |name: &str| version[name].as_bool().unwrap_or_default();
    let schema = match &version["schema"]["openAPIV3Schema"] {
        _ if hoisted.schema.is_some() || version["schema"].is_null() => "null".to_owned(),
        Value::Null => "{\"OpenAPIV3Schema\":null}".to_owned(),
        schema => format!("{{\"OpenAPIV3Schema\":{}}}", self::schema(schema)),
    };
    let subresources = if hoisted.subresources.is_some() {
        "null".to_owned()
    } else {
        subresources(&version["subresources"])
    };
    let columns = if hoisted.columns.is_some() {
        "null".to_owned()
    } else {
        columns(version)
    };
    let selectable = if hoisted.selectable.is_some() {
        "null".to_owned()
    } else {
        selectable(version)
    };
    format!(
        "{{\"Name\":{},\"Served\":{},\"Storage\":{},\"Deprecated\":{},\"DeprecationWarning\":{},\"Schema\":{schema},\
         \"Subresources\":{subresources},\"AdditionalPrinterColumns\":{columns},\"SelectableFields\":{selectable}}}",
        go_text::json(&text(version, "name").into()),
        flag("served"),
        flag("storage"),
        flag("deprecated"),
        go_text::json(&version["deprecationWarning"]),
    )
}

fn subresources(subresources: &Value) -> String {
    if subresources.is_null() {
        return "null".to_owned();
    }
    let status = if subresources["status"].is_null() { "null" } else { "{}" };
    let scale = match &subresources["scale"] {
        Value::Null => "null".to_owned(),
        scale => format!(
            "{{\"SpecReplicasPath\":{},\"StatusReplicasPath\":{},\"LabelSelectorPath\":{}}}",
            go_text::json(&text(scale, "specReplicasPath").into()),
            go_text::json(&text(scale, "statusReplicasPath").into()),
            go_text::json(&scale["labelSelectorPath"]),
        ),
    };
    format!("{{\"Status\":{status},\"Scale\":{scale}}}")
}

fn columns(version: &Value) -> String {
    let column = |column: &Value| {
        let fields = ["Name", "Type", "Format", "Description"].map(|name| {
            let value = text(column, &name.to_lowercase());
            format!("\"{name}\":{}", go_text::json(&value.into()))
        });
        let priority = column["priority"].as_i64().unwrap_or_default();
        let path = go_text::json(&text(column, "jsonPath").into());
        format!("{{{},\"Priority\":{priority},\"JSONPath\":{path}}}", fields.join(","))
    };
    listed(items(version, "additionalPrinterColumns").iter().map(column).collect())
}

fn selectable(version: &Value) -> String {
    let path = |field: &Value| format!("{{\"JSONPath\":{}}}", go_text::json(&text(field, "jsonPath").into()));
    listed(items(version, "selectableFields").iter().map(path).collect())
}

fn listed(items: Vec<String>) -> String {
    if items.is_empty() {
        "null".to_owned()
    } else {
        format!("[{}]", items.join(","))
    }
}
