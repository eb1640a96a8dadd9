//! What a definition may be called, and what of that may change.

use crate::object;
use flyball_schema::names::{dns1035_label, dns1123_subdomain};
use flyball_schema::violation::Violation;
use serde_json::Value;

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A definition is called after what it defines.
pub(super) fn validate_name(definition: &Value) -> Option<Violation> {
    let names = &definition["spec"]["names"];
    let wanted = format!("{}.{}", text(&names["plural"]), text(&definition["spec"]["group"]));
    let given = object::name(definition);
    (given != wanted && !given.is_empty())
        .then(|| Violation::invalid("metadata.name", given, "must be spec.names.plural+\".\"+spec.group"))
}

pub(super) fn validate_group(spec: &Value) -> Vec<Violation> {
    let mut violations = Vec::new();
    let group = text(&spec["group"]);
    let wrong = dns1123_subdomain(group);
    if group.is_empty() {
        violations.push(Violation::required("spec.group", ""));
    } else if !wrong.is_empty() {
        violations.push(Violation::invalid("spec.group", group, &wrong.join(",")));
    } else if !group.contains('.') {
        violations.push(Violation::invalid("spec.group", group, "should be a domain with at least one dot"));
    }
    match text(&spec["scope"]) {
        "" => violations.push(Violation::required("spec.scope", "")),
        "Cluster" | "Namespaced" => {}
        scope => violations.push(Violation::not_supported("spec.scope", scope, &["Cluster", "Namespaced"])),
    }
    violations
}

// ValidateCustomResourceDefinitionNames
pub(super) fn validate(names: &Value) -> Vec<Violation> {
    let mut violations = Vec::new();
    for field in ["plural", "singular", "kind", "listKind"] {
        if text(&names[field]).is_empty() {
            violations.push(Violation::required(format!("spec.names.{field}"), ""));
        }
    }
    let mut label = |path: String, given: &str, checked: &str, words: &str| {
        let wrong = dns1035_label(checked);
        if !given.is_empty() && !wrong.is_empty() {
            violations.push(Violation::invalid(path, given, &format!("{words}{}", wrong.join(","))));
        }
    };
    for field in ["plural", "singular"] {
        label(format!("spec.names.{field}"), text(&names[field]), text(&names[field]), "");
    }
    for field in ["kind", "listKind"] {
        let words = "may have mixed case, but should otherwise match: ";
        label(
            format!("spec.names.{field}"),
            text(&names[field]),
            &text(&names[field]).to_lowercase(),
            words,
        );
    }
    for field in ["shortNames", "categories"] {
        let all = names[field].as_array().map(Vec::as_slice).unwrap_or_default();
        for (index, name) in all.iter().enumerate() {
            label(format!("spec.names.{field}[{index}]"), text(name), text(name), "");
        }
    }
    if !text(&names["kind"]).is_empty() && names["kind"] == names["listKind"] {
        let why = "kind and listKind may not be the same";
        violations.push(Violation::invalid("spec.names.listKind", text(&names["listKind"]), why));
    }
    violations
}

/// Groups of Kubernetes' own need its approval.
// apiextensions-apiserver/pkg/apihelpers/helpers.go, GetAPIApprovalState
pub(super) fn validate_approval(definition: &Value, live: Option<&Value>) -> Option<Violation> {
    const ANNOTATION: &str = "api-approved.kubernetes.io";
    const PATH: &str = "metadata.annotations[api-approved.kubernetes.io]";
    let group = text(&definition["spec"]["group"]);
    let is_protected = ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|domain| group == *domain || group.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.')));
    let approval = |definition: &Value| text(&definition["metadata"]["annotations"][ANNOTATION]).to_owned();
    let given = approval(definition);
    if !is_protected || live.is_some_and(|live| approval(live) == given) {
        return None;
    }
    let see = "see https://github.com/kubernetes/enhancements/pull/1111";
    match given.as_str() {
        "" => {
            let why = format!("protected groups must have approval annotation {ANNOTATION:?}, {see}");
            Some(Violation::required(PATH, &why))
        }
        text if text.starts_with("unapproved") => None,
        text if text.starts_with("https://") || text.starts_with("http://") => None,
        text => {
            let why = format!(
                "protected groups must have approval annotation {ANNOTATION:?} with either a URL or a reason starting with \"unapproved\", {see}"
            );
            Some(Violation::invalid(PATH, text, &why))
        }
    }
}

/// What may not change, because objects are stored under it.
pub(super) fn validate_update(definition: &Value, live: &Value) -> Vec<Violation> {
    let conditions = live["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_established = conditions
        .iter()
        .any(|condition| condition["type"] == "Established" && condition["status"] == "True");
    let mut fields = vec!["/spec/group", "/spec/names/plural"];
    if is_established {
        fields.splice(..0, ["/spec/scope", "/spec/names/kind"]);
    }
    let changed = |pointer: &&str| definition.pointer(pointer) != live.pointer(pointer);
    let violation = |pointer: &str| {
        let path = pointer[1..].replace('/', ".");
        let given = definition.pointer(pointer).cloned().unwrap_or_default();
        Violation::invalid(path, given, "field is immutable")
    };
    fields.into_iter().filter(changed).map(violation).collect()
}
