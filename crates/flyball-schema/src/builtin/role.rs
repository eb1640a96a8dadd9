//! Roles, ClusterRoles and their bindings.

use super::rules::{empty, named, one_of, selector, subdomain};
use super::spot::{Found, Spot};
use super::{at, fill, fill_zero, items};
use crate::names;
use crate::violation::Violation;
use serde_json::{Value, json};

const GROUP: &str = "rbac.authorization.k8s.io";

/// Sets the API groups of the role and the subjects of a binding.
// pkg/apis/rbac/v1/defaults.go
pub fn default_binding(binding: &mut Value) {
    fill_zero(at(binding, "roleRef"), "apiGroup", GROUP);
    for subject in items(binding, "subjects") {
        if subject.get("kind").is_some_and(|kind| kind == "User" || kind == "Group") {
            fill_zero(subject, "apiGroup", GROUP);
        }
    }
}

/// Writes absent or empty rules as `null`.
pub fn prepare(role: &mut Value, _live: Option<&Value>) {
    fill(role, "rules", Value::Null);
    if role["rules"].as_array().is_some_and(Vec::is_empty) {
        role["rules"] = Value::Null;
    }
}

/// Validates a Role.
// pkg/apis/rbac/validation/validation.go
pub fn validate_role(role: &Value, _live: Option<&Value>) -> Vec<Violation> {
    let mut found = Vec::new();
    let root = Spot::root(role);
    for rule in root.field("rules").items() {
        verbs(&rule, &mut found);
        if rule.field("nonResourceURLs").len() > 0 {
            let why = "namespaced rules cannot apply to non-resource URLs";
            rule.field("nonResourceURLs").invalid(&mut found, why);
        }
        resources(&rule, &mut found);
    }
    found
}

/// Validates a ClusterRole.
pub fn validate_cluster_role(role: &Value, _live: Option<&Value>) -> Vec<Violation> {
    let mut found = Vec::new();
    let root = Spot::root(role);
    for rule in root.field("rules").items() {
        verbs(&rule, &mut found);
        resources(&rule, &mut found);
    }
    aggregation(&root.field("aggregationRule"), &mut found);
    found
}

fn verbs(rule: &Spot<'_>, found: &mut Found) {
    if rule.field("verbs").len() == 0 {
        rule.field("verbs").required(found, "verbs must contain at least one value");
    }
}

fn resources(rule: &Spot<'_>, found: &mut Found) {
    let (urls, groups) = (rule.field("nonResourceURLs"), rule.field("apiGroups"));
    let (resources, names) = (rule.field("resources"), rule.field("resourceNames"));
    if urls.len() > 0 {
        if groups.len() + resources.len() + names.len() > 0 {
            urls.invalid(found, "rules cannot apply to both regular resources and non-resource URLs");
        }
        return;
    }
    if groups.len() == 0 {
        groups.required(found, "resource rules must supply at least one api group");
    }
    if resources.len() == 0 {
        resources.required(found, "resource rules must supply at least one resource");
    }
}

fn aggregation(rule: &Spot<'_>, found: &mut Found) {
    let selectors = rule.field("clusterRoleSelectors");
    if rule.is_set() && selectors.len() == 0 {
        selectors.required(found, "at least one clusterRoleSelector required if aggregationRule is non-nil");
    }
    for one in selectors.items() {
        let before = found.len();
        selector(&one, found);
        if found.len() > before {
            one.invalid_as(found, Value::Null, "invalid label selector.");
        }
    }
}

/// Validates a RoleBinding.
pub fn validate_binding(binding: &Value, live: Option<&Value>) -> Vec<Violation> {
    bound(binding, live, Scope::Namespace)
}

/// Validates a ClusterRoleBinding.
pub fn validate_cluster_binding(binding: &Value, live: Option<&Value>) -> Vec<Violation> {
    bound(binding, live, Scope::Cluster)
}

/// The scope of a binding.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    Namespace,
    Cluster,
}

fn bound(binding: &Value, live: Option<&Value>, scope: Scope) -> Vec<Violation> {
    let mut found = Vec::new();
    let root = Spot::root(binding);
    let reference = root.field("roleRef");
    one_of(&reference.field("apiGroup"), &[GROUP], &mut found);
    match scope {
        Scope::Namespace => one_of(&reference.field("kind"), &["Role", "ClusterRole"], &mut found),
        Scope::Cluster => one_of(&reference.field("kind"), &["ClusterRole"], &mut found),
    }
    if !empty(&reference.field("name"), &mut found) {
        named(&reference.field("name"), names::path_segment, &mut found);
    }
    root.field("subjects")
        .items()
        .for_each(|subject| validate_subject(&subject, scope, &mut found));
    if live.is_some_and(|live| live["roleRef"] != *reference.value) {
        let text = |field: &str| reference.field(field).text().to_owned();
        let shown = json!({"APIGroup": text("apiGroup"), "Kind": text("kind"), "Name": text("name")});
        reference.invalid_as(&mut found, shown, "cannot change roleRef");
    }
    found
}

fn validate_subject(subject: &Spot<'_>, scope: Scope, found: &mut Found) {
    let (name, group) = (subject.field("name"), subject.field("apiGroup"));
    empty(&name, found);
    match subject.field("kind").text() {
        "ServiceAccount" => {
            if !name.text().is_empty() {
                subdomain(&name, found);
            }
            one_of(&group, &[""], found);
            if scope == Scope::Cluster {
                empty(&subject.field("namespace"), found);
            }
        }
        "User" | "Group" => one_of(&group, &[GROUP], found),
        _ => subject.field("kind").unsupported(found, &["ServiceAccount", "User", "Group"]),
    }
}
