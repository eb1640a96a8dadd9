//! What makes a schema structural: types outside, mere restrictions inside `allOf`, `anyOf`, `oneOf` and `not`.
// apiextensions-apiserver/pkg/apiserver/schema/{validation,complete}.go

mod complete;
mod nested;

use super::props::{Additional, Props};
use crate::pattern::Pattern;
use crate::violation::Violation;
use serde_json::json;

/// Where a schema stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// Everything that is not structural, sorted as a real server sorts it.
pub(super) fn check(props: Props<'_>, path: &str) -> Vec<Violation> {
    let mut found = invariants(props, Level::Root, path);
    found.extend(complete::check(props, path));
    found.sort_by_key(ToString::to_string);
    found
}

fn invariants(props: Props<'_>, level: Level, path: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    match props.items() {
        None if props.kind() == "array" => {
            found.push(Violation::required(format!("{path}.items"), "must be specified"))
        }
        None => {}
        Some(items) => found.extend(invariants(items, Level::Item, &format!("{path}.items"))),
    }
    for (name, property) in props.properties() {
        found.extend(invariants(property, Level::Field, &format!("{path}.properties[{name}]")));
    }
    if let Some(additional) = props.additional() {
        let path = format!("{path}.additionalProperties");
        if level == Level::Root {
            found.push(Violation::forbidden(&path, "must not be used at the root"));
        }
        if let Additional::Schema(schema) = additional {
            found.extend(invariants(schema, Level::Field, &path));
        }
        if props.embeds_resource() {
            let detail = "must not be used if x-kubernetes-embedded-resource is set";
            found.push(Violation::forbidden(&path, detail));
        }
    }
    found.extend(extensions(props, path));
    found.extend(nested::check_values(props, int_or_string_skip(props), path));
    found.extend(kind(props, level, path));
    found.extend(metadata(props, level, path));
    if props.embeds_resource() && !props.preserves_unknown() && props.properties().is_empty() {
        let detail = "must not be empty if x-kubernetes-embedded-resource is true without \
                      x-kubernetes-preserve-unknown-fields";
        found.push(Violation::required(format!("{path}.properties"), detail));
    }
    found
}

fn extensions(props: Props<'_>, path: &str) -> Vec<Violation> {
    let detail = "must be false if x-kubernetes-int-or-string is true";
    let names = ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"];
    let contradicting = names.into_iter().filter(|name| props.int_or_string() && props.flag(name));
    contradicting
        .map(|name| Violation::invalid(format!("{path}.{name}"), true, detail))
        .collect()
}

fn kind(props: Props<'_>, level: Level, path: &str) -> Vec<Violation> {
    let (kind, path) = (props.kind(), format!("{path}.type"));
    let mut found = Vec::new();
    if props.embeds_resource() && kind != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        found.push(match kind {
            "" => Violation::required(&path, detail),
            _ => Violation::invalid(&path, kind, detail),
        });
    } else if kind.is_empty() && !props.int_or_string() && !props.preserves_unknown() {
        let detail = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        found.push(Violation::required(&path, detail));
    }
    if level == Level::Root && !kind.is_empty() && kind != "object" {
        found.push(Violation::invalid(&path, kind, "must be object at the root"));
    }
    found
}

/// `apiVersion`, `kind` and `metadata` of a resource are what they always are.
fn metadata(props: Props<'_>, level: Level, path: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    let resource = level == Level::Root || props.embeds_resource();
    for name in ["kind", "apiVersion"] {
        let wrong = props.property(name).filter(|property| resource && property.kind() != "string");
        if let Some(property) = wrong {
            let path = format!("{path}.properties[{name}].type");
            found.push(Violation::invalid(path, property.kind(), "must be string"));
        }
    }
    let Some(metadata) = props.property("metadata") else {
        return found;
    };
    let path = format!("{path}.properties[metadata]");
    if resource && metadata.kind() != "object" {
        found.push(Violation::invalid(format!("{path}.type"), metadata.kind(), "must be object"));
    }
    if level == Level::Root && !restricts_names_only(metadata) {
        let detail = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        found.push(Violation::forbidden(path, detail));
    }
    found
}

fn restricts_names_only(metadata: Props<'_>) -> bool {
    let properties = metadata.properties();
    let names_only = properties.iter().all(|(name, _)| matches!(*name, "name" | "generateName"));
    let keywords = metadata.keywords();
    names_only && keywords.iter().all(|keyword| matches!(*keyword, "type" | "properties" | "default"))
}

/// Which alternatives may name types after all, because they spell out `x-kubernetes-int-or-string`.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Skip {
    any_of: bool,
    first_all_of: bool,
}

fn int_or_string_skip(props: Props<'_>) -> Skip {
    let first = props.schemas("allOf").next();
    Skip {
        any_of: is_int_or_string(props),
        first_all_of: first.is_some_and(is_int_or_string),
    }
}

fn is_int_or_string(props: Props<'_>) -> bool {
    props.list("anyOf") == [json!({"type": "integer"}), json!({"type": "string"})]
}

fn pattern(props: Props<'_>, path: &str) -> Option<Violation> {
    let text = props.text("pattern");
    if text.is_empty() {
        return None;
    }
    let error = Pattern::new(text).err()?;
    let detail = format!("must be a valid regular expression, but isn't: {error}");
    Some(Violation::invalid(format!("{path}.pattern"), text, &detail))
}
