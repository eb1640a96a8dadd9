//! Policy rules of roles: which requests a rule allows, and which rules cover others.
// pkg/apis/rbac/v1/evaluation_helpers.go, component-helpers/auth/rbac/validation/policy_comparator.go

use crate::authz::{Access, Target};
use flyball_schema::go_text;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The word for all verbs, groups, resources or paths.
const ALL: &str = "*";

/// One rule of a role.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PolicyRule {
    /// The verbs.
    pub verbs: Vec<String>,
    /// The API groups.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub api_groups: Vec<String>,
    /// The resources, with their subresources after a slash.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    /// The names of objects; all if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resource_names: Vec<String>,
    /// The paths that name no resource.
    #[serde(rename = "nonResourceURLs", skip_serializing_if = "Vec::is_empty")]
    pub non_resource_urls: Vec<String>,
}

impl PolicyRule {
    /// A rule for everything: all verbs of all resources, and all verbs of all paths.
    pub fn full_authority() -> [PolicyRule; 2] {
        let all = || vec![ALL.to_owned()];
        [
            PolicyRule {
                verbs: all(),
                api_groups: all(),
                resources: all(),
                ..PolicyRule::default()
            },
            PolicyRule {
                verbs: all(),
                non_resource_urls: all(),
                ..PolicyRule::default()
            },
        ]
    }

    /// Whether the rule allows a request.
    pub(crate) fn allows(&self, access: &Access<'_>) -> bool {
        if !has(&self.verbs, access.verb) {
            return false;
        }
        match &access.target {
            Target::Path(path) => self.non_resource_urls.iter().any(|own| covers_path(own, path)),
            Target::Resource(target) => {
                let matches = |own: &String| resource_matches(own, target.resource, target.subresource);
                has(&self.api_groups, target.group)
                    && self.resources.iter().any(matches)
                    && (self.resource_names.is_empty() || self.resource_names.iter().any(|own| own == target.name))
            }
        }
    }

    /// Whether the rule allows all that a rule of at most one verb, resource, name or path allows.
    fn covers(&self, single: &PolicyRule) -> bool {
        let names = match single.resource_names.first() {
            None => self.resource_names.is_empty(),
            Some(name) => self.resource_names.is_empty() || self.resource_names.contains(name),
        };
        names
            && single.verbs.iter().all(|verb| has(&self.verbs, verb))
            && single.api_groups.iter().all(|group| has(&self.api_groups, group))
            && single.resources.iter().all(|resource| self.covers_resource(resource))
            && single
                .non_resource_urls
                .iter()
                .all(|path| self.non_resource_urls.iter().any(|own| covers_path(own, path)))
    }

    fn covers_resource(&self, resource: &str) -> bool {
        let of_any = resource.split_once('/').map(|(_, subresource)| format!("*/{subresource}"));
        has(&self.resources, resource) || of_any.is_some_and(|any| self.resources.contains(&any))
    }

    /// The same as rules of one verb and one resource, name or path each.
    fn break_down(&self) -> Vec<PolicyRule> {
        let mut rules = Vec::new();
        let names: Vec<Vec<String>> = match self.resource_names.is_empty() {
            true => vec![Vec::new()],
            false => self.resource_names.iter().map(|name| vec![name.clone()]).collect(),
        };
        for group in &self.api_groups {
            for resource in &self.resources {
                for verb in &self.verbs {
                    rules.extend(names.iter().map(|resource_names| PolicyRule {
                        verbs: vec![verb.clone()],
                        api_groups: vec![group.clone()],
                        resources: vec![resource.clone()],
                        resource_names: resource_names.clone(),
                        ..PolicyRule::default()
                    }));
                }
            }
        }
        for path in &self.non_resource_urls {
            rules.extend(self.verbs.iter().map(|verb| PolicyRule {
                verbs: vec![verb.clone()],
                non_resource_urls: vec![path.clone()],
                ..PolicyRule::default()
            }));
        }
        rules
    }
}

/// What some rules allow and others do not, as rules of one verb and one resource, name or path each.
pub(crate) fn uncovered(held: &[PolicyRule], wanted: &[PolicyRule]) -> Vec<PolicyRule> {
    let singles = wanted.iter().flat_map(PolicyRule::break_down);
    singles.filter(|single| !held.iter().any(|own| own.covers(single))).collect()
}

/// Joins rules that differ only in their verb.
// pkg/registry/rbac/validation/policy_compact.go
pub(crate) fn compact(rules: Vec<PolicyRule>) -> Vec<PolicyRule> {
    let mut compacted: Vec<PolicyRule> = Vec::new();
    for rule in rules {
        let is_same = |known: &&mut PolicyRule| {
            let resource = |of: &PolicyRule| (of.api_groups.clone(), of.resources.clone(), of.resource_names.clone());
            rule.non_resource_urls.is_empty()
                && known.non_resource_urls.is_empty()
                && resource(known) == resource(&rule)
        };
        match compacted.iter_mut().find(is_same) {
            Some(known) => known.verbs.extend(rule.verbs),
            None => compacted.push(rule),
        }
    }
    compacted
}

impl fmt::Display for PolicyRule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            ("APIGroups", &self.api_groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.non_resource_urls),
            ("ResourceNames", &self.resource_names),
            ("Verbs", &self.verbs),
        ];
        let shown = parts.iter().filter(|(_, values)| !values.is_empty());
        let shown: Vec<String> = shown.map(|(name, values)| format!("{name}:{}", quoted(values))).collect();
        write!(formatter, "{{{}}}", shown.join(", "))
    }
}

/// A list of texts as Go's `%q` prints it.
pub(crate) fn quoted(texts: &[String]) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| go_text::quote(text)).collect();
    format!("[{}]", quoted.join(" "))
}

fn has(own: &[String], wanted: &str) -> bool {
    own.iter().any(|own| own == ALL || own == wanted)
}

fn resource_matches(own: &str, resource: &str, subresource: &str) -> bool {
    if subresource.is_empty() {
        return own == ALL || own == resource;
    }
    own == ALL
        || own.strip_prefix("*/") == Some(subresource)
        || own.split_once('/').is_some_and(|own| own == (resource, subresource))
}

fn covers_path(own: &str, path: &str) -> bool {
    own == ALL || own == path || (own.ends_with('*') && path.starts_with(own.trim_end_matches('*')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authn::user::User;
    use crate::authz::ResourceAccess;
    use serde_json::{Value, json};

    fn rule(rule: Value) -> PolicyRule {
        serde_json::from_value(rule).unwrap()
    }

    fn allows(own: &Value, verb: &str, target: Target<'_>) -> bool {
        rule(own.clone()).allows(&Access { user: &User::anonymous(), verb, target })
    }

    fn resource<'a>(group: &'a str, resource: &'a str, subresource: &'a str, name: &'a str) -> Target<'a> {
        Target::Resource(ResourceAccess { namespace: "a", group, resource, subresource, name })
    }

    #[test]
    fn a_rule_names_resources_subresources_and_objects() {
        let pods = json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods", "*/scale"]});
        assert!(allows(&pods, "get", resource("", "pods", "", "x")));
        assert!(!allows(&pods, "list", resource("", "pods", "", "")));
        assert!(!allows(&pods, "get", resource("apps", "pods", "", "x")));
        assert!(!allows(&pods, "get", resource("", "pods", "log", "x")));
        assert!(allows(&pods, "get", resource("", "anything", "scale", "x")));
        assert!(!allows(&pods, "get", resource("", "scale", "", "x")));
        let named = json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "resourceNames": ["x"]});
        assert!(allows(&named, "delete", resource("apps", "deployments", "scale", "x")));
        assert!(!allows(&named, "list", resource("apps", "deployments", "", "")));
        assert!(!allows(&named, "get", Target::Path("/healthz")));
    }

    #[test]
    fn a_rule_names_paths_and_what_follows_them() {
        let paths = json!({"verbs": ["get"], "nonResourceURLs": ["/healthz", "/metrics/*"]});
        assert!(allows(&paths, "get", Target::Path("/healthz")));
        assert!(!allows(&paths, "post", Target::Path("/healthz")));
        assert!(!allows(&paths, "get", Target::Path("/healthz/etcd")));
        assert!(allows(&paths, "get", Target::Path("/metrics/slis")));
        assert!(!allows(&paths, "get", Target::Path("/metrics")));
        assert!(!allows(&paths, "get", resource("", "pods", "", "x")));
    }

    #[test]
    fn what_is_not_held_is_listed_by_resource() {
        let held = [
            rule(json!({"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods", "*/status"]})),
            rule(json!({"verbs": ["get"], "nonResourceURLs": ["/api/*"]})),
        ];
        let wanted = [
            rule(
                json!({"verbs": ["get", "watch", "delete"], "apiGroups": [""], "resources": ["pods", "nodes/status"]}),
            ),
            rule(json!({"verbs": ["get"], "nonResourceURLs": ["/api/v1", "/metrics"]})),
            rule(json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["x"]})),
        ];
        let missing: Vec<String> = compact(uncovered(&held, &wanted)).iter().map(PolicyRule::to_string).collect();
        let expected = [
            r#"{APIGroups:[""], Resources:["pods"], Verbs:["watch" "delete"]}"#,
            r#"{APIGroups:[""], Resources:["nodes/status"], Verbs:["watch" "delete"]}"#,
            r#"{NonResourceURLs:["/metrics"], Verbs:["get"]}"#,
        ];
        assert_eq!(missing, expected);
        assert_eq!(uncovered(&PolicyRule::full_authority(), &wanted), []);
    }
}
