//! Rules in CEL that need no webhook: the API server evaluates them itself, as part of a definition's schema or as a
//! ValidatingAdmissionPolicy. Both are made of one declaration.

use crate::Operator;
use crate::cache::kind::Kind;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, ValidationRule,
};
use serde_json::{Value, json};

/// A rule in CEL about an object `self`, and about `oldSelf`, the object before an update;
/// [`Operator::rule`](crate::Operator::rule) takes it.
///
/// For a kind that the operator brings along it becomes a part of the schema (`x-kubernetes-validations`); of the metadata it
/// sees only the name. For other kinds, or if [`CelRule::as_policy`] asks for it, it becomes a ValidatingAdmissionPolicy, which
/// `manifests` prints. A rule with `oldSelf` holds for updates only.
#[derive(Clone, Debug)]
#[must_use = "a rule does nothing before an operator has it"]
pub struct CelRule {
    expression: String,
    message: String,
    field: Option<String>,
    policy: bool,
}

impl CelRule {
    /// A rule, and what a user is told whose object breaks it.
    pub fn new(expression: impl Into<String>, message: impl Into<String>) -> CelRule {
        CelRule {
            expression: expression.into(),
            message: message.into(),
            field: None,
            policy: false,
        }
    }

    /// Names the field that is to blame, as in `.spec.size`. A policy names it in its message.
    pub fn field(mut self, path: impl Into<String>) -> CelRule {
        self.field = Some(path.into());
        self
    }

    /// Makes it a policy also where the operator brings the kind along.
    pub fn as_policy(mut self) -> CelRule {
        self.policy = true;
        self
    }

    fn is_transition(&self) -> bool {
        identifiers(&self.expression).any(|(_, word)| word == "oldSelf")
    }

    /// As a validation of a policy, where the objects have other names.
    fn to_validation(&self) -> Value {
        let mut expression = renamed(&self.expression);
        if self.is_transition() {
            expression = format!("oldObject == null || ({expression})");
        }
        let message = match &self.field {
            Some(field) => format!("{}: {}", field.trim_start_matches('.'), self.message),
            None => self.message.clone(),
        };
        json!({ "expression": expression, "message": message, "reason": "Invalid" })
    }
}

/// A rule of an operator for a kind.
#[derive(Clone, Debug)]
pub(crate) struct KindRule {
    pub(crate) kind: Kind,
    pub(crate) rule: CelRule,
}

impl KindRule {
    fn is_in(&self, crd: &CustomResourceDefinition) -> bool {
        let is_of = crd.spec.group == self.kind.resource.group && crd.spec.names.plural == self.kind.resource.plural;
        is_of && !self.rule.policy
    }
}

/// Adds an operator's rules to the schema of a definition: to the version that each was declared for.
pub(crate) fn extend_schema(operator: &Operator, crd: &mut CustomResourceDefinition) {
    let rules: Vec<_> = operator.rules().iter().filter(|rule| rule.is_in(crd)).collect();
    for KindRule { kind, rule } in rules {
        let mut versions = crd.spec.versions.iter_mut();
        let version = versions.find(|version| version.name == kind.resource.version);
        let schema = version.and_then(|version| version.schema.as_mut()?.open_api_v3_schema.as_mut());
        if let Some(JSONSchemaProps { x_kubernetes_validations, .. }) = schema {
            x_kubernetes_validations.get_or_insert_default().push(ValidationRule {
                rule: rule.expression.clone(),
                message: Some(rule.message.clone()),
                field_path: rule.field.clone(),
                ..Default::default()
            });
        }
    }
}

/// The policies of an operator's other rules, one for each kind, with their bindings. `own` is its namespace.
pub(crate) fn objects(operator: &Operator, own: &str) -> Vec<Value> {
    let in_schema = |rule: &KindRule| operator.crds().iter().any(|crd| rule.is_in(crd));
    let rules: Vec<_> = operator.rules().iter().filter(|rule| !in_schema(rule)).collect();
    let mut kinds: Vec<&Kind> = Vec::new();
    for rule in &rules {
        if !kinds.iter().any(|kind| kind.is_same_resource(&rule.kind)) {
            kinds.push(&rule.kind);
        }
    }
    let objects = kinds.into_iter().flat_map(|kind| {
        let validations: Vec<_> = rules
            .iter()
            .filter(|rule| rule.kind.is_same_resource(kind))
            .map(|rule| rule.rule.to_validation())
            .collect();
        policy(operator, kind, validations, own)
    });
    objects.collect()
}

fn policy(operator: &Operator, kind: &Kind, validations: Vec<Value>, own: &str) -> [Value; 2] {
    let resource = &kind.resource;
    let suffix = if resource.group.is_empty() {
        "core"
    } else {
        &resource.group
    };
    let name = format!("{}-{}.{suffix}", operator.name(), resource.plural);
    let metadata = json!({ "name": name, "labels": { "app.kubernetes.io/name": operator.name() } });
    let version = "admissionregistration.k8s.io/v1";
    let rule = json!({
        "apiGroups": [resource.group],
        "apiVersions": [resource.version],
        "resources": [resource.plural],
        "operations": ["CREATE", "UPDATE"],
    });
    let policy = json!({
        "apiVersion": version,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": metadata,
        "spec": { "failurePolicy": "Fail", "matchConstraints": { "resourceRules": [rule] }, "validations": validations },
    });
    let mut values = vec!["kube-system", own];
    values.dedup();
    let others = json!({ "key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": values });
    let binding = json!({
        "apiVersion": version,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": metadata,
        "spec": {
            "policyName": name,
            "validationActions": ["Deny"],
            "matchResources": { "namespaceSelector": { "matchExpressions": [others] } },
        },
    });
    [policy, binding]
}

/// The expression with a policy's names for the objects of a rule.
fn renamed(expression: &str) -> String {
    let mut renamed = String::new();
    let mut copied = 0;
    for (start, word) in identifiers(expression) {
        let name = match word {
            "self" => "object",
            "oldSelf" => "oldObject",
            _ => continue,
        };
        renamed.push_str(&expression[copied..start]);
        renamed.push_str(name);
        copied = start + word.len();
    }
    renamed + &expression[copied..]
}

/// The names in an expression that are no fields, each with its place; those in quotes and comments are none.
fn identifiers(expression: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut found = Vec::new();
    let (mut rest, mut is_field) = (expression, false);
    while let Some(first) = rest.chars().next() {
        let at = expression.len() - rest.len();
        let length = match first {
            '"' | '\'' => quoted(rest, false),
            '`' => quoted(rest, true),
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            c if c.is_alphabetic() || c == '_' => {
                let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
                let raw = matches!(&rest[..end], "r" | "R" | "br" | "rb" | "bR" | "Br" | "BR" | "Rb" | "RB" | "rB");
                match raw && rest[end..].starts_with(['"', '\'']) {
                    true => end + quoted(&rest[end..], true),
                    false => {
                        if !is_field {
                            found.push((at, &rest[..end]));
                        }
                        end
                    }
                }
            }
            c => c.len_utf8(),
        };
        if !first.is_whitespace() {
            is_field = first == '.';
        }
        rest = &rest[length..];
    }
    found.into_iter()
}

/// How long a quoted text at the beginning is, with its quotes.
fn quoted(text: &str, raw: bool) -> usize {
    let quote = &text[..1];
    let triple = quote.repeat(3);
    let end = if text.starts_with(&triple) { &*triple } else { quote };
    let mut at = end.len();
    while at < text.len() {
        match text[at..].chars().next() {
            _ if text[at..].starts_with(end) => return at + end.len(),
            Some('\\') if !raw => {
                let escaped = text[at + 1..].chars().next().map_or(0, char::len_utf8);
                at += 1 + escaped;
            }
            Some(c) => at += c.len_utf8(),
            None => break,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_objects_of_a_rule_are_renamed() {
        for (rule, policy) in [
            ("self.spec.size <= 9", "object.spec.size <= 9"),
            (
                "self.a.self == 'self' && oldSelf.b != \"it\\\"s self\"",
                "object.a.self == 'self' && oldObject.b != \"it\\\"s self\"",
            ),
            ("r'self\\' + self.x", "r'self\\' + object.x"),
            ("myself.x + selfish(self)", "myself.x + selfish(object)"),
            ("'''self''' + self // self", "'''self''' + object // self"),
            ("self . self", "object . self"),
            ("'open self", "'open self"),
            ("é == self", "é == object"),
        ] {
            assert_eq!(renamed(rule), policy);
        }
    }

    #[test]
    fn a_rule_about_a_change_holds_for_updates_only() {
        let validation = CelRule::new("self.spec.x == oldSelf.spec.x", "is immutable")
            .field(".spec.x")
            .to_validation();
        assert_eq!(validation["expression"], "oldObject == null || (object.spec.x == oldObject.spec.x)");
        assert_eq!(validation["message"], "spec.x: is immutable");
    }
}
