//! Which names a definition may have: those that no other definition of its group has.
// apiextensions-apiserver/pkg/controller/status/naming_controller.go and establish/establishing_controller.go

use crate::clock;
use crate::crd::conditions;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::HashSet;

/// The definition with its names accepted or refused, given the others of its group; none if nothing changes.
pub(crate) fn accept<'a>(old: &Value, others: impl Iterator<Item = &'a Value>, now: Timestamp) -> Option<Value> {
    let now = clock::seconds(now);
    let mut new = old.clone();
    if old["spec"]["names"] != old["status"]["acceptedNames"] {
        decide(others, &mut new, &now);
    }
    if conditions::is_true(&new, "NamesAccepted") && !conditions::is_true(&new, "Established") {
        let message = "the initial names have been accepted";
        conditions::set(&mut new, "Established", "True", "InitialNamesAccepted", message, &now);
    }
    (new != *old).then_some(new)
}

fn decide<'a>(others: impl Iterator<Item = &'a Value>, definition: &mut Value, now: &str) {
    let wanted = definition["spec"]["names"].clone();
    let mut accepted = definition["status"]["acceptedNames"].clone();
    let (resources, kinds) = taken(others);
    let mut conflict = None;
    for (field, used, reason) in [
        ("plural", &resources, "PluralConflict"),
        ("singular", &resources, "SingularConflict"),
        ("shortNames", &resources, "ShortNamesConflict"),
        ("kind", &kinds, "KindConflict"),
        ("listKind", &kinds, "ListKindConflict"),
    ] {
        let had = texts(&accepted[field]);
        let clash: Vec<String> = texts(&wanted[field])
            .into_iter()
            .filter(|text| !had.contains(text) && used.contains(*text))
            .map(|text| format!("{text:?} is already in use"))
            .collect();
        match &clash[..] {
            [] => put(&mut accepted, field, &wanted[field]),
            [one] => conflict = Some((reason, one.clone())),
            many => conflict = Some((reason, format!("[{}]", many.join(", ")))),
        }
    }
    put(&mut accepted, "categories", &wanted["categories"]);
    definition["status"]["acceptedNames"] = accepted;
    match conflict {
        None => conditions::set(definition, "NamesAccepted", "True", "NoConflicts", "no conflicts found", now),
        Some((reason, message)) => {
            conditions::set(definition, "NamesAccepted", "False", reason, &message, now);
            if conditions::find(definition, "Established").is_none() {
                let message = "not all names are accepted";
                conditions::set(definition, "Established", "False", "NotAccepted", message, now);
            }
        }
    }
}

fn put(names: &mut Value, field: &str, value: &Value) {
    if !names.is_object() {
        *names = json!({});
    }
    let members = names.as_object_mut().expect("made an object above");
    match value {
        Value::Null => members.remove(field),
        value => members.insert(field.to_owned(), value.clone()),
    };
}

/// The names and kinds that other definitions have.
fn taken<'a>(others: impl Iterator<Item = &'a Value>) -> (HashSet<&'a str>, HashSet<&'a str>) {
    let mut resources = HashSet::new();
    let mut kinds = HashSet::new();
    for other in others {
        let names = &other["status"]["acceptedNames"];
        ["plural", "singular", "shortNames"]
            .iter()
            .for_each(|field| resources.extend(texts(&names[*field])));
        ["kind", "listKind"].iter().for_each(|field| kinds.extend(texts(&names[*field])));
    }
    (resources, kinds)
}

fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) if !text.is_empty() => vec![text],
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}
