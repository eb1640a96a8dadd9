//! The names of a custom resource.

use super::{items, text};
use crate::names::dns1035_label;
use crate::violation::Violation;
use serde_json::Value;

/// Names that a definition has to have.
pub(super) fn required(names: &Value) -> Vec<Violation> {
    let missing = ["plural", "singular", "kind", "listKind"]
        .into_iter()
        .filter(|field| text(names, field).is_empty());
    missing.map(|field| Violation::required(format!("spec.names.{field}"), "")).collect()
}

/// Names that are none.
pub(super) fn check(names: &Value, path: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    for field in ["plural", "singular"] {
        found.extend(label(text(names, field), &format!("{path}.{field}")));
    }
    for field in ["kind", "listKind"] {
        let name = text(names, field);
        let wrong = dns1035_label(&name.to_lowercase());
        if !name.is_empty() && !wrong.is_empty() {
            let detail = format!("may have mixed case, but should otherwise match: {}", wrong.join(","));
            found.push(Violation::invalid(format!("{path}.{field}"), name, &detail));
        }
    }
    found.extend(labels(names, "shortNames", path));
    let kind = text(names, "kind");
    if !kind.is_empty() && kind == text(names, "listKind") {
        found.push(Violation::invalid(
            format!("{path}.listKind"),
            kind,
            "kind and listKind may not be the same",
        ));
    }
    found.extend(labels(names, "categories", path));
    found
}

fn label(name: &str, path: &str) -> Option<Violation> {
    let wrong = dns1035_label(name);
    (!name.is_empty() && !wrong.is_empty()).then(|| Violation::invalid(path, name, &wrong.join(",")))
}

fn labels(names: &Value, field: &str, path: &str) -> Vec<Violation> {
    let listed = items(names, field).iter().filter_map(Value::as_str).enumerate();
    let wrong = listed
        .map(|(index, name)| (index, name, dns1035_label(name)))
        .filter(|(.., wrong)| !wrong.is_empty());
    wrong
        .map(|(index, name, wrong)| Violation::invalid(format!("{path}.{field}[{index}]"), name, &wrong.join(",")))
        .collect()
}
