//! `x-kubernetes-map-type`, `x-kubernetes-list-type` and `x-kubernetes-list-map-keys`.

use crate::crd::props::Props;
use crate::violation::Violation;
use serde_json::Value;
use std::collections::HashSet;

const LIST: &str = "x-kubernetes-list-type";
const MAP: &str = "x-kubernetes-map-type";
const KEYS: &str = "x-kubernetes-list-map-keys";
/// Each complaint shows all keys: how many are shown together.
const MOST_SHOWN: usize = 100_000;

/// What is wrong with how lists and maps are to merge.
pub(super) fn check(props: Props<'_>, path: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    let (list, map) = (props.get(LIST).map(|_| props.text(LIST)), props.get(MAP).map(|_| props.text(MAP)));
    if map.is_some() && props.kind() != "object" {
        found.push(wrong_type(props, path, "must be object if x-kubernetes-map-type is specified"));
    }
    if let Some(map) = map.filter(|map| !["atomic", "granular"].contains(map)) {
        found.push(Violation::not_supported(format!("{path}.{MAP}"), map, &["atomic", "granular"]));
    }
    if list.is_some() && props.kind() != "array" {
        found.push(wrong_type(props, path, "must be array if x-kubernetes-list-type is specified"));
    } else if list == Some("set") {
        found.extend(set_items(props, path));
    }
    if let Some(list) = list.filter(|list| !["atomic", "set", "map"].contains(list)) {
        found.push(Violation::not_supported(format!("{path}.{LIST}"), list, &["atomic", "set", "map"]));
    }
    if !props.list(KEYS).is_empty() && list != Some("map") {
        let (path, detail) = (format!("{path}.{LIST}"), "must be map if x-kubernetes-list-map-keys is non-empty");
        found.push(match list {
            None => Violation::required(path, detail),
            Some(list) => Violation::invalid(path, list, detail),
        });
    }
    if list == Some("map") {
        found.extend(map_items(props, path));
    }
    found.extend(items_of(props, list, path));
    found
}

fn wrong_type(props: Props<'_>, path: &str, detail: &str) -> Violation {
    match props.kind() {
        "" => Violation::required(format!("{path}.type"), detail),
        kind => Violation::invalid(format!("{path}.type"), kind, detail),
    }
}

/// The items of a set are compared as a whole.
fn set_items(props: Props<'_>, path: &str) -> Option<Violation> {
    let items = props.items()?;
    let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
    let list = items.get(LIST).cloned().unwrap_or_default();
    match items.kind() {
        "array" if items.get(LIST).is_some() && items.text(LIST) != "atomic" => {
            Some(Violation::invalid(format!("{path}.items.{LIST}"), list, detail))
        }
        // The list type is what a real server shows here.
        "object" if items.text(MAP) != "atomic" => {
            Some(Violation::invalid(format!("{path}.items.{MAP}"), list, detail))
        }
        _ => None,
    }
}

fn map_items(props: Props<'_>, path: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    let keys = props.texts(KEYS);
    let keys_path = format!("{path}.{KEYS}");
    if keys.is_empty() {
        found.push(Violation::required(&keys_path, "must not be empty if x-kubernetes-list-type is map"));
    }
    let Some(items) = props.items() else {
        let detail = "must have a schema if x-kubernetes-list-type is map";
        found.push(Violation::required(format!("{path}.items"), detail));
        return found;
    };
    if items.kind() != "object" {
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        found.push(Violation::invalid(format!("{path}.items.type"), items.kind(), detail));
        return found;
    }
    let mut seen = HashSet::new();
    let all = || Value::from(keys.clone());
    for key in &keys {
        if found.len() * keys.len() > MOST_SHOWN {
            break;
        }
        match items.property(key) {
            Some(property) if matches!(property.kind(), "array" | "object") => {
                let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                found.push(Violation::invalid(format!("{path}.items.properties[{key}].type"), items.kind(), detail));
            }
            Some(_) => {}
            None => found.push(Violation::invalid(&keys_path, all(), "entries must all be names of item properties")),
        }
        if !seen.insert(key) {
            found.push(Violation::invalid(&keys_path, all(), "must not contain duplicate entries"));
        }
    }
    found
}

/// Items of sets and maps are never null, and keys are always there.
fn items_of(props: Props<'_>, list: Option<&str>, path: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    let (Some(items), Some(list @ ("set" | "map"))) = (props.items(), list) else {
        return found;
    };
    let path = format!("{path}.items");
    if items.flag("nullable") {
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {list}");
        found.push(Violation::forbidden(format!("{path}.nullable"), &detail));
    }
    let required: HashSet<&str> = items.texts("required").into_iter().collect();
    for key in props.texts(KEYS).into_iter().filter(|_| list == "map") {
        let Some(property) = items.property(key) else { continue };
        let path = format!("{path}.properties[{key}]");
        if !required.contains(&key) && property.get("default").is_none() {
            let detail =
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
            found.push(Violation::required(format!("{path}.default"), detail));
        }
        if property.flag("nullable") {
            let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            found.push(Violation::forbidden(format!("{path}.nullable"), detail));
        }
    }
    found
}
