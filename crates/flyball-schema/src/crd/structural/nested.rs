//! Schemas inside `allOf`, `anyOf`, `oneOf` and `not` restrict values; they declare nothing.

use super::{Skip, pattern};
use crate::crd::props::{Additional, Props};
use crate::violation::Violation;

/// What a nested schema must not have, and how that is said.
const FORBIDDEN: [(&str, &str); 12] = [
    ("type", "must be empty to be structural"),
    ("additionalProperties", "must be undefined to be structural"),
    ("default", "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
    ("x-kubernetes-embedded-resource", "must be false to be structural"),
    ("x-kubernetes-int-or-string", "must be false to be structural"),
    ("x-kubernetes-list-map-keys", "must be empty to be structural"),
    ("x-kubernetes-list-type", "must be undefined to be structural"),
    ("x-kubernetes-map-type", "must be undefined to be structural"),
];

/// Checks the restrictions of a schema: its alternatives and its pattern.
pub(super) fn check_values(props: Props<'_>, skip: Skip, path: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    for keyword in ["anyOf", "allOf", "oneOf"] {
        if keyword == "anyOf" && skip.any_of {
            continue;
        }
        for (index, nested) in props.schemas(keyword).enumerate() {
            let any_of = keyword == "allOf" && index == 0 && skip.first_all_of;
            let skip = Skip { any_of, first_all_of: false };
            found.extend(check(nested, skip, &format!("{path}.{keyword}[{index}]")));
        }
    }
    if let Some(not) = props.schema("not") {
        found.extend(check(not, Skip::default(), &format!("{path}.not")));
    }
    found.extend(pattern(props, path));
    found
}

fn check(props: Props<'_>, skip: Skip, path: &str) -> Vec<Violation> {
    let mut found = check_values(props, skip, path);
    if let Some(items) = props.items() {
        found.extend(check(items, Skip::default(), &format!("{path}.items")));
    }
    for (name, property) in props.properties() {
        found.extend(check(property, Skip::default(), &format!("{path}.properties[{name}]")));
    }
    let forbidden = FORBIDDEN.into_iter().filter(|(keyword, _)| is_set(props, keyword));
    found.extend(forbidden.map(|(keyword, detail)| Violation::forbidden(format!("{path}.{keyword}"), detail)));
    if !props.list("x-kubernetes-validations").is_empty() {
        let path = format!("{path}.x-kubernetes-validations");
        found.push(Violation::forbidden(path, "must be empty to be structural"));
    }
    if props.property("metadata").is_some() {
        let path = format!("{path}.properties[metadata]");
        found.push(Violation::forbidden(path, "must not be specified in a nested context"));
    }
    found
}

fn is_set(props: Props<'_>, keyword: &str) -> bool {
    match keyword {
        "additionalProperties" => !matches!(props.additional(), None | Some(Additional::Allowed(false))),
        "default" | "x-kubernetes-list-type" | "x-kubernetes-map-type" => props.get(keyword).is_some(),
        "x-kubernetes-list-map-keys" => !props.list(keyword).is_empty(),
        "type" | "title" | "description" => !props.text(keyword).is_empty(),
        _ => props.flag(keyword),
    }
}
