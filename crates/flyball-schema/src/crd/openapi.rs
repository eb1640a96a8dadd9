//! Which keywords a schema may use, and with which others.
// apiextensions-apiserver/pkg/apis/apiextensions/validation, ValidateCustomResourceDefinitionOpenAPISchema

mod lists;

use super::cel;
use super::props::{Additional, Props};
use crate::validate::is_supported_format;
use crate::violation::{Reason, Violation};
use serde_json::Value;

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
/// Keywords that nobody supports, in the order in which they are complained about.
const UNSUPPORTED: [&str; 6] = [
    "id",
    "additionalItems",
    "patternProperties",
    "definitions",
    "dependencies",
    "$ref",
];

/// What holds for a schema because of where it is.
#[derive(Clone, Copy, Default)]
struct Inside<'a> {
    /// It describes the metadata of a resource.
    metadata: bool,
    /// Why it must not have a default, if it must not.
    no_default: Option<&'a str>,
    root: bool,
}

/// Whether a schema has nothing that would keep it from being judged structural or not.
pub(super) fn is_supported(props: Props<'_>) -> bool {
    let unsupported = UNSUPPORTED.iter().any(|keyword| is_used(props, keyword)) || !props.text("$schema").is_empty();
    let refuses = props.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false));
    let listed = props.get("items").is_some_and(Value::is_array);
    !unsupported && !refuses && !listed && children(props).all(|(_, child)| is_supported(child))
}

fn is_used(props: Props<'_>, keyword: &str) -> bool {
    match (keyword, props.get(keyword)) {
        ("patternProperties" | "definitions", Some(Value::Object(map))) => !map.is_empty(),
        (_, Some(Value::String(text))) => keyword != "id" || !text.is_empty(),
        (_, value) => value.is_some(),
    }
}

/// Every complaint about keywords, in the order of a real server; the expressions of rules are left to `cel`.
pub(super) fn check(props: Props<'_>, path: &str) -> Vec<Violation> {
    let mut found = Found::default();
    found.schema(props, path, Inside { root: true, ..Inside::default() });
    found.violations
}

#[derive(Default)]
struct Found {
    violations: Vec<Violation>,
}

impl Found {
    fn schema(&mut self, props: Props<'_>, path: &str, inside: Inside<'_>) {
        self.standard(props, path, inside);
        if props.flag("uniqueItems") {
            let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
            self.violations.push(Violation::forbidden(format!("{path}.uniqueItems"), detail));
        }
        self.additional(props, path, inside);
        self.properties(props, path, inside);
        for (place, child) in children(props).filter(|(place, _)| !is_property(place)) {
            let no_default = inside.no_default;
            self.schema(
                child,
                &format!("{path}.{place}"),
                Inside { metadata: inside.metadata, no_default, root: false },
            );
        }
        if let Some(Value::Bool(false)) = props.get("x-kubernetes-preserve-unknown-fields") {
            let path = format!("{path}.x-kubernetes-preserve-unknown-fields");
            self.violations.push(Violation::invalid(path, false, "must be true or undefined"));
        }
        self.violations.extend(lists::check(props, path));
        self.violations.extend(cel::check_form(props, path));
    }

    fn additional(&mut self, props: Props<'_>, path: &str, inside: Inside<'_>) {
        let path = format!("{path}.additionalProperties");
        let additional = props.additional();
        let exclusive = !matches!(additional, None | Some(Additional::Allowed(true)));
        if exclusive && !props.properties().is_empty() {
            let detail = "additionalProperties and properties are mutual exclusive";
            self.violations.push(Violation::forbidden(&path, detail));
        }
        if let Some(Additional::Schema(schema)) = additional {
            let forbidden = "inside additionalProperties applying to object metadata";
            let no_default = if inside.metadata {
                Some(forbidden)
            } else {
                inside.no_default
            };
            self.schema(schema, &path, Inside { metadata: inside.metadata, no_default, root: false });
        }
    }

    fn properties(&mut self, props: Props<'_>, path: &str, inside: Inside<'_>) {
        for (name, property) in props.properties() {
            let meta = (inside.root || props.embeds_resource()) && crate::prune::is_meta(name);
            let reason = format!("in top-level {name}");
            let no_default = if meta && inside.root {
                Some(reason.as_str())
            } else {
                inside.no_default
            };
            let inside = Inside { metadata: inside.metadata || meta, no_default, root: false };
            self.schema(property, &format!("{path}.properties[{name}]"), inside);
        }
    }

    fn standard(&mut self, props: Props<'_>, path: &str, inside: Inside<'_>) {
        let kind = props.kind();
        if !kind.is_empty() && !TYPES.contains(&kind) {
            self.violations.push(Violation::not_supported(format!("{path}.type"), kind, &TYPES));
        }
        let mut forbid = |keyword: &str, detail: &str| {
            self.violations.push(Violation::forbidden(format!("{path}.{keyword}"), detail));
        };
        if let Some(reason) = inside.no_default.filter(|_| props.get("default").is_some()) {
            forbid("default", &format!("must not be set {reason}"));
        }
        for keyword in UNSUPPORTED.into_iter().filter(|keyword| is_used(props, keyword)) {
            forbid(keyword, &format!("{keyword} is not supported"));
        }
        if kind == "null" {
            forbid("type", "type cannot be set to null, use nullable as an alternative");
        }
        if props.get("items").is_some_and(Value::is_array) {
            forbid("items", "items must be a schema object and not an array");
        }
        if inside.metadata && props.embeds_resource() {
            forbid("x-kubernetes-embedded-resource", "must not be used inside of resource meta");
        }
    }
}

fn is_property(place: &str) -> bool {
    place.starts_with("properties[") || place == "additionalProperties"
}

/// Every schema directly inside a schema, with the place where it is.
fn children<'a>(props: Props<'a>) -> impl Iterator<Item = (String, Props<'a>)> {
    let additional = match props.additional() {
        Some(Additional::Schema(schema)) => Some(("additionalProperties".to_owned(), schema)),
        _ => None,
    };
    let properties = props
        .properties()
        .into_iter()
        .map(|(name, schema)| (format!("properties[{name}]"), schema));
    let not = props.schema("not").map(|schema| ("not".to_owned(), schema));
    let alternatives = ["allOf", "oneOf", "anyOf"].into_iter().flat_map(move |keyword| {
        props
            .schemas(keyword)
            .enumerate()
            .map(move |(index, schema)| (format!("{keyword}[{index}]"), schema))
    });
    let items = props.items().map(|schema| ("items".to_owned(), schema));
    additional.into_iter().chain(properties).chain(not).chain(alternatives).chain(items)
}

const AT_ROOT: [(&str, &str); 22] = [
    ("Description", "description"),
    ("Type", "type"),
    ("Format", "format"),
    ("Title", "title"),
    ("Maximum", "maximum"),
    ("ExclusiveMaximum", "exclusiveMaximum"),
    ("Minimum", "minimum"),
    ("ExclusiveMinimum", "exclusiveMinimum"),
    ("MaxLength", "maxLength"),
    ("MinLength", "minLength"),
    ("Pattern", "pattern"),
    ("MaxItems", "maxItems"),
    ("MinItems", "minItems"),
    ("UniqueItems", "uniqueItems"),
    ("MultipleOf", "multipleOf"),
    ("Required", "required"),
    ("Items", "items"),
    ("Properties", "properties"),
    ("ExternalDocs", "externalDocs"),
    ("Example", "example"),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields"),
    ("XValidations", "x-kubernetes-validations"),
];

/// With a status subresource, `status` is cut out of the root's schema; other keywords there would be lost.
pub(super) fn check_root(props: Props<'_>, path: &str) -> Option<Violation> {
    let kind = props.kind();
    if !kind.is_empty() && kind != "object" {
        let detail =
            "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
        return Some(Violation::invalid(format!("{path}.type"), kind, detail));
    }
    let keywords = props.keywords();
    if keywords.iter().all(|keyword| AT_ROOT.iter().any(|(_, allowed)| allowed == keyword)) {
        return None;
    }
    let names: Vec<_> = AT_ROOT.iter().map(|(name, _)| *name).collect();
    let rule = "fields are allowed at the root of the schema if the status subresource is enabled";
    let detail = format!("only [{}] {rule}", names.join(" "));
    let shown = crate::definition::internal_schema(&props.to_value());
    Some(Violation::with_text(path, Reason::Invalid, &shown, &detail))
}

pub(super) fn collect_formats(props: Props<'_>, formats: &mut Vec<String>) {
    let format = props.text("format");
    let kind = if props.int_or_string() { "object" } else { props.kind() };
    if !format.is_empty() && !is_supported_format(format, kind) && !formats.iter().any(|known| known == format) {
        formats.push(format.to_owned());
    }
    children(props).for_each(|(_, child)| collect_formats(child, formats));
}
