//! The audit policy: how much of which requests is recorded.
// apiserver/pkg/audit/policy

use crate::audit::Stage;
use crate::authn::user::User;
use crate::request::info::{RequestInfo, ResourceInfo};
use serde::{Deserialize, Serialize};

/// How much of a request is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Level {
    /// Nothing.
    None,
    /// Who asked for what, and the code of the response.
    Metadata,
    /// That and the object that was sent.
    Request,
    /// That and the object that was returned.
    RequestResponse,
}

/// A policy of the API group `audit.k8s.io`: the first rule that matches a request decides.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Policy {
    api_version: String,
    kind: String,
    #[serde(default, rename = "metadata")]
    _metadata: serde_json::Value,
    #[serde(default)]
    rules: Vec<Rule>,
    #[serde(default)]
    omit_stages: Vec<Stage>,
    #[serde(default)]
    omit_managed_fields: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Rule {
    level: Level,
    #[serde(default)]
    users: Vec<String>,
    #[serde(default)]
    user_groups: Vec<String>,
    #[serde(default)]
    verbs: Vec<String>,
    #[serde(default)]
    resources: Vec<Resources>,
    #[serde(default)]
    namespaces: Vec<String>,
    #[serde(default, rename = "nonResourceURLs")]
    paths: Vec<String>,
    #[serde(default)]
    omit_stages: Vec<Stage>,
    omit_managed_fields: Option<bool>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Resources {
    #[serde(default)]
    group: String,
    #[serde(default)]
    resources: Vec<String>,
    #[serde(default)]
    resource_names: Vec<String>,
}

/// What is recorded of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Recorded {
    pub level: Level,
    pub omit_stages: Vec<Stage>,
    pub omit_managed_fields: bool,
}

/// Why a policy cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// It is not YAML of the right shape.
    #[error("invalid audit policy: {0}")]
    Decode(String),
    /// A field has a value that no policy may have.
    #[error("invalid audit policy: {path}: {why}")]
    Invalid {
        /// The field.
        path: String,
        /// What is wrong with it.
        why: String,
    },
}

impl Policy {
    /// Reads a policy from YAML or JSON.
    pub fn read(text: &str) -> Result<Policy, PolicyError> {
        let policy: Policy = serde_saphyr::from_str(text).map_err(|error| PolicyError::Decode(error.to_string()))?;
        policy.check()?;
        Ok(policy)
    }

    /// A policy that records every request at one level.
    pub fn every(level: Level) -> Policy {
        let rule = Rule {
            level,
            users: Vec::new(),
            user_groups: Vec::new(),
            verbs: Vec::new(),
            resources: Vec::new(),
            namespaces: Vec::new(),
            paths: Vec::new(),
            omit_stages: Vec::new(),
            omit_managed_fields: None,
        };
        Policy {
            api_version: "audit.k8s.io/v1".to_owned(),
            kind: "Policy".to_owned(),
            _metadata: serde_json::Value::Null,
            rules: vec![rule],
            omit_stages: Vec::new(),
            omit_managed_fields: false,
        }
    }

    // apiserver/pkg/apis/audit/validation/validation.go
    fn check(&self) -> Result<(), PolicyError> {
        let invalid = |path: String, why: &str| Err(PolicyError::Invalid { path, why: why.to_owned() });
        if self.api_version != "audit.k8s.io/v1" {
            return invalid(
                "apiVersion".into(),
                &format!("{:?} is not supported: expected audit.k8s.io/v1", self.api_version),
            );
        }
        if self.kind != "Policy" {
            return invalid("kind".into(), &format!("{:?} is not supported: expected Policy", self.kind));
        }
        if self.rules.is_empty() {
            return invalid("rules".into(), "must have at least one rule");
        }
        for (index, rule) in self.rules.iter().enumerate() {
            let at = |field: &str| format!("rules[{index}].{field}");
            if !rule.paths.is_empty() && (!rule.resources.is_empty() || !rule.namespaces.is_empty()) {
                let why = "rules cannot apply to both regular resources and non-resource URLs";
                return invalid(at("nonResourceURLs"), why);
            }
            for path in &rule.paths {
                if path != "*" && !path.starts_with('/') {
                    return invalid(at("nonResourceURLs"), &format!("{path:?} must begin with a slash"));
                }
                if path.trim_end_matches('*').contains('*') || path.ends_with("**") {
                    return invalid(at("nonResourceURLs"), &format!("{path:?} may have one `*`, at its end"));
                }
            }
            for resources in &rule.resources {
                if !resources.resource_names.is_empty() && resources.resources.is_empty() {
                    return invalid(at("resources.resourceNames"), "requires `resources`");
                }
            }
        }
        Ok(())
    }

    /// What is recorded of a request; nothing if no rule matches it.
    // apiserver/pkg/audit/policy/checker.go
    pub(crate) fn evaluate(&self, user: &User, info: &RequestInfo) -> Recorded {
        let rule = self.rules.iter().find(|rule| rule.matches(user, info));
        let own = rule.map(|rule| rule.omit_stages.as_slice()).unwrap_or_default();
        Recorded {
            level: rule.map_or(Level::None, |rule| rule.level),
            omit_stages: self.omit_stages.iter().chain(own).copied().collect(),
            omit_managed_fields: rule.and_then(|rule| rule.omit_managed_fields).unwrap_or(self.omit_managed_fields),
        }
    }
}

/// Whether a list is empty, or has an item that matches.
fn any<T>(list: &[T], matches: impl FnMut(&T) -> bool) -> bool {
    list.is_empty() || list.iter().any(matches)
}

impl Rule {
    fn matches(&self, user: &User, info: &RequestInfo) -> bool {
        let verb = info.verb();
        let is_asked = any(&self.users, |name| *name == user.name)
            && any(&self.user_groups, |group| user.is_in(group))
            && any(&self.verbs, |own| *own == verb);
        if !is_asked {
            return false;
        }
        match (&info.resource, self.paths.is_empty()) {
            (Some(target), true) => self.matches_resource(target),
            (None, true) => self.resources.is_empty() && self.namespaces.is_empty(),
            (Some(_), false) => false,
            (None, false) => self.paths.iter().any(|path| matches_path(path, &info.path)),
        }
    }

    fn matches_resource(&self, target: &ResourceInfo) -> bool {
        let namespace = target.namespace.as_deref().unwrap_or_default();
        any(&self.namespaces, |own| own == namespace) && any(&self.resources, |resources| resources.matches(target))
    }
}

fn matches_path(rule: &str, path: &str) -> bool {
    match rule.strip_suffix('*') {
        Some(prefix) => path.starts_with(prefix),
        None => rule == path,
    }
}

impl Resources {
    fn matches(&self, target: &ResourceInfo) -> bool {
        if self.group != "*" && self.group != target.group {
            return false;
        }
        let subresource = target.subresource.as_deref().unwrap_or_default();
        let full = match subresource {
            "" => target.resource.clone(),
            _ => format!("{}/{subresource}", target.resource),
        };
        any(&self.resources, |own| {
            *own == full
                || own == "*"
                || own.strip_suffix("/*").is_some_and(|resource| resource == target.resource)
                || own.strip_prefix("*/").is_some_and(|name| name == subresource && !subresource.is_empty())
        }) && any(&self.resource_names, |own| Some(own) == target.name.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: &str = r#"
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- {level: None, users: ["system:kube-proxy"], verbs: [watch], resources: [{group: "", resources: [endpoints]}]}
- {level: None, nonResourceURLs: ["/healthz*", /version]}
- {level: Request, resources: [{group: "", resources: [configmaps], resourceNames: [one]}], namespaces: [kube-system], omitManagedFields: false}
- {level: RequestResponse, resources: [{group: apps}, {group: "", resources: ["pods/*"]}], omitStages: [ResponseStarted]}
- {level: Metadata, userGroups: [staff]}
"#;

    fn level(user: &User, method: &str, uri: &str) -> Level {
        let policy = Policy::read(POLICY).unwrap();
        policy
            .evaluate(user, &RequestInfo::read(&method.parse().unwrap(), &uri.parse().unwrap()))
            .level
    }

    #[test]
    fn the_first_rule_that_matches_decides() {
        let (proxy, ada) = (User::new("system:kube-proxy", ["nodes"]), User::new("ada", ["staff"]));
        for (user, method, uri, expected) in [
            (&proxy, "GET", "/api/v1/endpoints?watch=1", Level::None),
            (&ada, "GET", "/api/v1/endpoints?watch=1", Level::Metadata),
            (&ada, "GET", "/healthz/ping", Level::None),
            (&ada, "GET", "/version", Level::None),
            (&ada, "GET", "/version/", Level::Metadata),
            (&ada, "GET", "/api/v1/namespaces/kube-system/configmaps/one", Level::Request),
            (&ada, "GET", "/api/v1/namespaces/default/configmaps/one", Level::Metadata),
            (&ada, "GET", "/api/v1/namespaces/kube-system/configmaps/two", Level::Metadata),
            (&ada, "POST", "/apis/apps/v1/namespaces/a/deployments", Level::RequestResponse),
            (&proxy, "PUT", "/api/v1/namespaces/a/pods/b/status", Level::RequestResponse),
            (&proxy, "PUT", "/api/v1/namespaces/a/services/b", Level::None),
        ] {
            assert_eq!(level(user, method, uri), expected, "{} {method} {uri}", user.name);
        }
    }

    #[test]
    fn stages_and_managed_fields_are_omitted_by_rule_and_by_policy() {
        let policy = Policy::read(POLICY).unwrap();
        let ask = |uri: &str| {
            policy.evaluate(&User::admin(), &RequestInfo::read(&"GET".parse().unwrap(), &uri.parse().unwrap()))
        };

        let apps = ask("/apis/apps/v1/deployments");
        assert_eq!(apps.omit_stages, [Stage::RequestReceived, Stage::ResponseStarted]);
        assert!(apps.omit_managed_fields);
        assert!(!ask("/api/v1/namespaces/kube-system/configmaps/one").omit_managed_fields);
    }

    #[test]
    fn wrong_policies_are_refused_with_the_field() {
        let head = "apiVersion: audit.k8s.io/v1\nkind: Policy\n";
        for (text, expected) in [
            ("apiVersion: audit.k8s.io/v1beta1\nkind: Policy\nrules: [{level: None}]", "apiVersion: "),
            ("apiVersion: audit.k8s.io/v1\nkind: Event\nrules: [{level: None}]", "kind: "),
            (head, "rules: must have at least one rule"),
            (&format!("{head}rules: [{{level: All}}]"), "unknown variant `All`"),
            (&format!("{head}rules: [{{level: None, colour: red}}]"), "unknown field `colour`"),
            (
                &format!("{head}rules: [{{level: None, nonResourceURLs: [a]}}]"),
                "rules[0].nonResourceURLs: \"a\" must begin",
            ),
            (&format!("{head}rules: [{{level: None, nonResourceURLs: [/*/a]}}]"), "may have one `*`"),
            (
                &format!("{head}rules: [{{level: None, nonResourceURLs: [/a], namespaces: [b]}}]"),
                "rules cannot apply to both",
            ),
            (
                &format!("{head}rules: [{{level: None, resources: [{{resourceNames: [a]}}]}}]"),
                "rules[0].resources.resourceNames: requires `resources`",
            ),
        ] {
            let error = Policy::read(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
