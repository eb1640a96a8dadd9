//! Which requests admission policies and webhooks match: rules, selectors and match conditions.
// pkg/apis/admissionregistration/validation/validation.go

use super::rules::{maybe_one_of, named, qualified, selector, surely_one_of};
use super::spot::{Found, Spot};
use crate::names;
use crate::policy::Compiler;
use flyball_cel::Type;
use serde_json::Value;
use std::collections::HashSet;

/// The most match conditions.
const MAX_MATCH_CONDITIONS: usize = 64;
const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
const SCOPES: [&str; 3] = ["*", "Cluster", "Namespaced"];

/// MatchResources, which may be absent.
pub(super) fn match_resources(spot: &Spot<'_>, found: &mut Found) {
    if !spot.is_set() {
        return;
    }
    surely_one_of(&spot.field("matchPolicy"), &["Equivalent", "Exact"], found);
    for field in ["namespaceSelector", "objectSelector"] {
        let field = spot.field(field);
        match field.is_set() {
            true => selector(&field, found),
            false => field.required(found, ""),
        }
    }
    for rules in ["resourceRules", "excludeResourceRules"] {
        spot.field(rules).items().for_each(|rule| named_rule(&rule, found));
    }
}

/// A rule that may name objects.
fn named_rule(spot: &Spot<'_>, found: &mut Found) {
    let mut seen = HashSet::new();
    for name in spot.field("resourceNames").items() {
        named(&name, names::path_segment, found);
        if !seen.insert(name.text().to_owned()) {
            name.duplicate(found, name.text());
        }
    }
    rule(spot, found);
}

/// RuleWithOperations.
pub(super) fn rule(spot: &Spot<'_>, found: &mut Found) {
    let operations = spot.field("operations");
    not_empty(&operations, found);
    alone(&operations, "operations", found);
    for operation in operations.items().filter(|operation| !OPERATIONS.contains(&operation.text())) {
        operation.unsupported(found, &OPERATIONS);
    }
    let (groups, versions) = (spot.field("apiGroups"), spot.field("apiVersions"));
    not_empty(&groups, found);
    alone(&groups, "API groups", found);
    not_empty(&versions, found);
    alone(&versions, "API versions", found);
    for version in versions.items().filter(|version| version.text().is_empty()) {
        version.required(found, "");
    }
    resources(&spot.field("resources"), found);
    maybe_one_of(&spot.field("scope"), &SCOPES, found);
}

fn not_empty(list: &Spot<'_>, found: &mut Found) {
    if list.len() == 0 {
        list.required(found, "");
    }
}

/// `*` stands alone.
fn alone(list: &Spot<'_>, what: &str, found: &mut Found) {
    if list.len() > 1 && list.items().any(|item| item.text() == "*") {
        list.invalid(found, &format!("if '*' is present, must not specify other {what}"));
    }
}

fn resources(list: &Spot<'_>, found: &mut Found) {
    not_empty(list, found);
    let (mut all_of_resource, mut all_of_subresource) = (HashSet::new(), HashSet::new());
    let mut has_plain = false;
    for item in list.items() {
        let text = item.text();
        if text.is_empty() {
            item.required(found, "");
            continue;
        }
        let Some((resource, subresource)) = text.split_once('/') else {
            has_plain = text != "*";
            continue;
        };
        if all_of_resource.contains(resource) {
            item.invalid(found, &format!("if '{resource}/*' is present, must not specify {text}"));
        }
        if all_of_subresource.contains(subresource) {
            item.invalid(found, &format!("if '*/{subresource}' is present, must not specify {text}"));
        }
        if subresource == "*" {
            all_of_resource.insert(resource.to_owned());
        }
        if resource == "*" {
            all_of_subresource.insert(subresource.to_owned());
        }
    }
    let has = |text: &str| list.items().any(|item| item.text() == text);
    if list.len() > 1 && has("*/*") {
        list.invalid(found, "if '*/*' is present, must not specify other resources");
    }
    if has("*") && has_plain {
        list.invalid(found, "if '*' is present, must not specify other resources without subresources");
    }
}

/// A list of match conditions, whose expressions have no variables of their own.
pub(super) fn match_conditions(list: &Spot<'_>, compiler: &Compiler, found: &mut Found) {
    if list.len() > MAX_MATCH_CONDITIONS {
        list.too_many(found, MAX_MATCH_CONDITIONS as u64);
    }
    let mut seen = HashSet::new();
    for condition in list.items() {
        let (name, text) = (condition.field("name"), condition.field("expression"));
        match text.text().trim() {
            "" => text.required(found, ""),
            trimmed => expression(&text, trimmed, compiler.compile(trimmed, &[Type::Bool]).map(drop), found),
        }
        match name.text() {
            "" => name.required(found, ""),
            written => {
                qualified(&name, found);
                if !seen.insert(written.to_owned()) {
                    name.duplicate(found, written);
                }
            }
        }
    }
}

/// Reports an expression that does not compile.
pub(super) fn expression(spot: &Spot<'_>, shown: &str, compiled: Result<(), String>, found: &mut Found) {
    match compiled {
        Ok(()) => {}
        Err(why) if why.starts_with("program instantiation failed") => spot.internal(found, &why),
        Err(why) => spot.invalid_as(found, Value::from(shown), &why),
    }
}
