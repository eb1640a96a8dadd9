//! ValidatingAdmissionPolicies, MutatingAdmissionPolicies and their bindings.
// pkg/apis/admissionregistration/v1/defaults.go and validation/validation.go

use super::admission_rule::{expression, match_conditions, match_resources};
use super::conditions;
use super::rules::{empty, maybe_one_of, named, one_of, selector, surely_one_of};
use super::spot::{Found, Spot};
use super::{at, fill, items, within};
use crate::jsonpath::JsonPath;
use crate::names;
use crate::policy::{Compiler, PatchType};
use crate::violation::Violation;
use flyball_cel::Type;
use serde_json::{Value, json};
use std::collections::HashSet;

/// The most audit annotations of a policy.
const MAX_AUDIT_ANNOTATIONS: usize = 20;
/// The most bytes of the expression of an audit annotation.
const MAX_VALUE_EXPRESSION_BYTES: usize = 5 * 1024;
const FAILURE_POLICIES: [&str; 2] = ["Fail", "Ignore"];
/// The operations that mutations are made for.
const MUTATED: [&str; 4] = ["*", "CONNECT", "CREATE", "UPDATE"];
const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// Sets the defaults of a policy of either sort.
pub fn default(policy: &mut Value) {
    let spec = at(policy, "spec");
    fill(spec, "failurePolicy", "Fail");
    default_matched(spec, "matchConstraints");
}

/// Sets the defaults of a binding of either sort.
pub fn default_binding(binding: &mut Value) {
    default_matched(at(binding, "spec"), "matchResources");
}

fn default_matched(spec: &mut Value, field: &str) {
    let Some(matched) = within(spec, field) else { return };
    fill(matched, "matchPolicy", "Equivalent");
    fill(matched, "namespaceSelector", json!({}));
    fill(matched, "objectSelector", json!({}));
    for rules in ["resourceRules", "excludeResourceRules"] {
        items(matched, rules).for_each(|rule| fill(rule, "scope", "*"));
    }
}

/// Warns of a name that is reserved.
pub fn warnings(object: &Value) -> Vec<String> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let is_reserved = name.ends_with(".static.k8s.io");
    let warning = "metadata.name: names ending with \".static.k8s.io\" are reserved for static manifest-based \
                   configurations and cannot be managed via the API";
    is_reserved.then(|| warning.to_owned()).into_iter().collect()
}

/// Validates a ValidatingAdmissionPolicy.
pub fn validate_validating(policy: &Value, live: Option<&Value>) -> Vec<Violation> {
    let mut found = Vec::new();
    let (root, name) = (Spot::root(policy), policy["metadata"]["name"].as_str().unwrap_or_default());
    let spec = root.field("spec");
    constraints(&spec, &mut found);
    let mut compiler = check_conditions(&spec, live, &mut found).with_authorizer();
    if spec.field("variables").len() > 0 {
        compiler = compiler.with_variables();
        variables(&spec, &mut compiler, &mut found);
    }
    let (validations, annotations) = (spec.field("validations"), spec.field("auditAnnotations"));
    if validations.len() == 0 && annotations.len() == 0 {
        let why = "validations or auditAnnotations must contain at least one item";
        validations.required(&mut found, why);
        annotations.required(&mut found, why);
        return found;
    }
    validations.items().for_each(|item| validation(&item, &compiler, &mut found));
    audit_annotations(&annotations, name, &compiler, &mut found);
    found
}

/// Validates a MutatingAdmissionPolicy.
pub fn validate_mutating(policy: &Value, live: Option<&Value>) -> Vec<Violation> {
    let mut found = Vec::new();
    let root = Spot::root(policy);
    let spec = root.field("spec");
    constraints(&spec, &mut found);
    mutated_operations(&spec.field("matchConstraints"), &mut found);
    let mut compiler = check_conditions(&spec, live, &mut found).with_authorizer().with_variables();
    variables(&spec, &mut compiler, &mut found);
    let mutations = spec.field("mutations");
    if mutations.len() == 0 {
        mutations.required(&mut found, "mutations must contain at least one item");
    }
    mutations.items().for_each(|item| mutation(&item, &compiler, &mut found));
    surely_one_of(&spec.field("reinvocationPolicy"), &["IfNeeded", "Never"], &mut found);
    found
}

/// What both sorts of policies say of requests that they match.
fn constraints(spec: &Spot<'_>, found: &mut Found) {
    surely_one_of(&spec.field("failurePolicy"), &FAILURE_POLICIES, found);
    param_kind(&spec.field("paramKind"), found);
    let constraints = spec.field("matchConstraints");
    if !constraints.is_set() {
        return constraints.required(found, "");
    }
    match_resources(&constraints, found);
    let rules = constraints.field("resourceRules");
    if rules.len() == 0 {
        rules.required(found, "");
    }
}

/// Match conditions are validated unless they and the kind of parameters stay as they were. Returns the compiler for other
/// expressions.
fn check_conditions(spec: &Spot<'_>, live: Option<&Value>, found: &mut Found) -> Compiler {
    let compiler = || match spec.field("paramKind").is_set() {
        true => Compiler::new().with_params(),
        false => Compiler::new(),
    };
    let stays = |field: &str| live.is_some_and(|live| live["spec"].get(field) == spec.value.get(field));
    if !(stays("paramKind") && stays("matchConditions")) {
        match_conditions(&spec.field("matchConditions"), &compiler().with_authorizer(), found);
    }
    compiler()
}

/// Rules of a policy that mutates may not match deletions.
fn mutated_operations(matched: &Spot<'_>, found: &mut Found) {
    let place = matched.field("resourceRules");
    for rule in matched.field("resourceRules").items() {
        for operation in rule.field("operations").items() {
            if !MUTATED.contains(&operation.text()) {
                place.with("operations", operation.value).unsupported(found, &MUTATED);
            }
        }
    }
}

fn param_kind(spot: &Spot<'_>, found: &mut Found) {
    if !spot.is_set() {
        return;
    }
    let (api_version, kind) = (spot.field("apiVersion"), spot.field("kind"));
    let joined = |messages: Vec<String>| (!messages.is_empty()).then(|| messages.join(","));
    if !empty(&api_version, found) {
        let text = api_version.text();
        let parts: Vec<&str> = text.split('/').collect();
        let (group, version) = match parts[..] {
            _ if text == "/" => ("", ""),
            [version] => ("", version),
            [group, version] => (group, version),
            _ => {
                api_version.invalid(found, &format!("unexpected GroupVersion string: {text}"));
                ("", "v1")
            }
        };
        if let Some(why) = joined(names::dns1123_subdomain(group)).filter(|_| !group.is_empty()) {
            api_version.invalid_as(found, group, &why);
        }
        match joined(names::dns1035_label(version)) {
            _ if version.is_empty() => api_version.invalid(found, "version must be specified"),
            Some(why) => api_version.invalid_as(found, version, &why),
            None => {}
        }
    }
    if !empty(&kind, found)
        && let Some(why) = joined(names::dns1035_label(&kind.text().to_lowercase()))
    {
        kind.invalid(found, &format!("may have mixed case, but should otherwise match: {why}"));
    }
}

fn variables(spec: &Spot<'_>, compiler: &mut Compiler, found: &mut Found) {
    for variable in spec.field("variables").items() {
        let (name, text) = (variable.field("name"), variable.field("expression"));
        if name.text().trim().is_empty() {
            name.required(found, "name is not specified");
        } else if !is_identifier(name.text()) {
            name.invalid(found, "must be a valid CEL identifier");
        }
        match text.text().trim().is_empty() {
            true => text.required(found, "expression is not specified"),
            false => expression(&text, text.text(), compiler.add_variable(name.text(), text.text()), found),
        }
    }
}

fn is_identifier(name: &str) -> bool {
    let is_letter = |byte: u8| byte == b'_' || byte.is_ascii_alphabetic();
    let bytes = name.as_bytes();
    bytes.first().is_some_and(|byte| is_letter(*byte))
        && bytes.iter().all(|byte| is_letter(*byte) || byte.is_ascii_digit())
        && !RESERVED.contains(&name)
}

fn validation(spot: &Spot<'_>, compiler: &Compiler, found: &mut Found) {
    let (text, evaluated, message) = (spot.field("expression"), spot.field("messageExpression"), spot.field("message"));
    match text.text().trim().is_empty() {
        true => text.required(found, "expression is not specified"),
        false => expression(&text, text.text(), compiler.compile(text.text(), &[Type::Bool]).map(drop), found),
    }
    match (evaluated.text(), evaluated.text().trim()) {
        ("", _) => {}
        (_, "") => evaluated.invalid(found, "must be non-empty if specified"),
        (text, _) => expression(&evaluated, text, compiler.compile_message(text).map(drop), found),
    }
    if !message.text().is_empty() && message.text().trim().is_empty() {
        message.invalid(found, "must be non-empty if specified");
    } else if message.text().trim().contains(['\n', '\r']) {
        message.invalid(found, "must not contain line breaks");
    }
    maybe_one_of(&spot.field("reason"), &["Forbidden", "Invalid", "RequestEntityTooLarge"], found);
}

fn audit_annotations(list: &Spot<'_>, policy: &str, compiler: &Compiler, found: &mut Found) {
    if list.len() > MAX_AUDIT_ANNOTATIONS {
        let shown = |item: Spot<'_>| json!({"Key": item.field("key").text(), "ValueExpression": item.field("valueExpression").text()});
        let shown: Vec<Value> = list.items().map(shown).collect();
        list.invalid_as(found, shown, &format!("must not have more than {MAX_AUDIT_ANNOTATIONS} auditAnnotations"));
    }
    let mut seen = HashSet::new();
    for annotation in list.items() {
        let (key, text) = (annotation.field("key"), annotation.field("valueExpression"));
        match policy {
            "" => key.invalid(found, "requires metadata.name be non-empty"),
            policy => {
                let name = format!("{policy}/{}", key.text());
                names::qualified_name(&name).iter().for_each(|why| key.invalid_as(found, &*name, why));
            }
        }
        let trimmed = text.text().trim();
        match trimmed.len() {
            0 => text.required(found, "valueExpression is not specified"),
            length if length > MAX_VALUE_EXPRESSION_BYTES => {
                text.required(found, &format!("must not exceed {MAX_VALUE_EXPRESSION_BYTES} bytes in length"));
            }
            _ => {
                let compiled = compiler.compile(trimmed, &[Type::String, Type::Null]);
                expression(&text, text.text(), compiled.map(drop), found);
            }
        }
        if !seen.insert(key.text().to_owned()) {
            key.duplicate(found, key.text());
        }
    }
}

fn mutation(spot: &Spot<'_>, compiler: &Compiler, found: &mut Found) {
    let (kind, json_patch, apply) =
        (spot.field("patchType"), spot.field("jsonPatch"), spot.field("applyConfiguration"));
    let (own, other, patch_type) = match kind.text() {
        "" => return kind.required(found, ""),
        "JSONPatch" => (json_patch, apply, PatchType::JsonPatch),
        "ApplyConfiguration" => (apply, json_patch, PatchType::ApplyConfiguration),
        _ => return kind.unsupported(found, &["ApplyConfiguration", "JSONPatch"]),
    };
    let text = own.field("expression");
    match (own.is_set(), text.text().trim()) {
        (false, _) => own.required(found, &format!("must be specified when patchType is {}", kind.text())),
        (true, "") => text.required(found, ""),
        (true, trimmed) => expression(&text, trimmed, compiler.compile_patch(trimmed, patch_type).map(drop), found),
    }
    if other.is_set() {
        let shown = match patch_type {
            PatchType::JsonPatch => "{applyConfiguration}",
            PatchType::ApplyConfiguration => "{jsonPatch}",
        };
        other.invalid_as(found, shown, &format!("must not be specified when patchType is {}", kind.text()));
    }
}

/// Validates a ValidatingAdmissionPolicyBinding.
pub fn validate_validating_binding(binding: &Value, _live: Option<&Value>) -> Vec<Violation> {
    let mut found = Vec::new();
    let root = Spot::root(binding);
    let spec = root.field("spec");
    binding_spec(&spec, &mut found);
    let (mut seen, actions) = (HashSet::new(), spec.field("validationActions"));
    for action in actions.items() {
        one_of(&action, &["Audit", "Deny", "Warn"], &mut found);
        if !seen.insert(action.text().to_owned()) {
            action.duplicate(&mut found, action.text());
        }
    }
    if seen.contains("Deny") && seen.contains("Warn") {
        let why = "must not contain both Deny and Warn (repeating the same validation failure information in the API \
                   response and headers serves no purpose)";
        actions.invalid(&mut found, why);
    }
    if seen.is_empty() {
        actions.required(&mut found, "at least one validation action is required");
    }
    found
}

/// Validates a MutatingAdmissionPolicyBinding.
pub fn validate_mutating_binding(binding: &Value, _live: Option<&Value>) -> Vec<Violation> {
    let mut found = Vec::new();
    let root = Spot::root(binding);
    let spec = root.field("spec");
    binding_spec(&spec, &mut found);
    mutated_operations(&spec.field("matchResources"), &mut found);
    found
}

fn binding_spec(spec: &Spot<'_>, found: &mut Found) {
    let name = spec.field("policyName");
    if !empty(&name, found) {
        named(&name, names::dns1123_subdomain, found);
    }
    param_ref(&spec.field("paramRef"), found);
    match_resources(&spec.field("matchResources"), found);
}

fn param_ref(spot: &Spot<'_>, found: &mut Found) {
    if !spot.is_set() {
        return;
    }
    let (name, selected) = (spot.field("name"), spot.field("selector"));
    let both = "name and selector are mutually exclusive";
    let has_name = !name.text().is_empty();
    if has_name {
        named(&name, names::path_segment, found);
    }
    if has_name && selected.is_set() {
        name.forbidden(found, both);
    }
    if selected.is_set() {
        selector(&selected, found);
    }
    if has_name && selected.is_set() {
        selected.forbidden(found, both);
    }
    if !has_name && !selected.is_set() {
        spot.required(found, "one of name or selector must be specified");
    }
    surely_one_of(&spot.field("parameterNotFoundAction"), &["Deny", "Allow"], found);
}

/// Validates the status of a ValidatingAdmissionPolicy.
pub fn validate_status(policy: &Value, _live: &Value) -> Vec<Violation> {
    let mut found = Vec::new();
    let root = Spot::root(policy);
    let status = root.field("status");
    let checking = status.field("typeChecking");
    for warning in checking.field("expressionWarnings").items() {
        let (text, field) = (warning.field("warning"), warning.field("fieldRef"));
        empty(&text, &mut found);
        match field.text().trim() {
            "" => field.required(&mut found, ""),
            trimmed => {
                if let Err(why) = JsonPath::parse(&format!(".{trimmed}")) {
                    field.invalid_as(&mut found, trimmed, &format!("invalid JSONPath: {why}"));
                }
            }
        }
    }
    conditions::validate(&status.field("conditions"), &mut found);
    found
}
