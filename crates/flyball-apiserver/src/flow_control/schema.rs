//! One FlowSchema: which requests it matches, and to which flow they belong.
// apiserver/pkg/util/flowcontrol/rule.go

use crate::authn::user::User;
use crate::request::info::{RequestInfo, ResourceInfo};
use http::HeaderValue;
use serde::Deserialize;
use std::hash::{DefaultHasher, Hash, Hasher};

/// A FlowSchema.
#[derive(Debug)]
pub(super) struct FlowSchema {
    pub name: String,
    pub uid: HeaderValue,
    pub spec: FlowSchemaSpec,
    /// The status of the condition `Dangling`, as it is stored.
    pub dangling: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct FlowSchemaSpec {
    pub priority_level_configuration: Named,
    pub matching_precedence: i64,
    distinguisher_method: Option<Distinguisher>,
    rules: Option<Vec<Rule>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Named {
    pub name: String,
    namespace: String,
}

#[derive(Debug, Deserialize)]
struct Distinguisher {
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Rule {
    subjects: Vec<Subject>,
    resource_rules: Option<Vec<ResourceRule>>,
    non_resource_rules: Option<Vec<PathRule>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Subject {
    user: Option<Named>,
    group: Option<Named>,
    service_account: Option<Named>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ResourceRule {
    verbs: Vec<String>,
    api_groups: Vec<String>,
    resources: Vec<String>,
    cluster_scope: bool,
    namespaces: Option<Vec<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PathRule {
    verbs: Vec<String>,
    #[serde(rename = "nonResourceURLs")]
    paths: Vec<String>,
}

impl FlowSchema {
    /// Whether the schema matches a request.
    pub fn matches(&self, user: &User, info: &RequestInfo) -> bool {
        let rules = self.spec.rules.as_deref().unwrap_or_default();
        rules.iter().any(|rule| {
            rule.subjects.iter().any(|subject| subject.is(user))
                && match &info.resource {
                    Some(target) => any(&rule.resource_rules, |rule| rule.matches(target)),
                    None => any(&rule.non_resource_rules, |rule| rule.matches(info)),
                }
        })
    }

    /// The hash of a request's flow: requests of one flow share their queues.
    pub fn flow(&self, user: &User, info: &RequestInfo) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.name.hash(&mut hasher);
        let method = self.spec.distinguisher_method.as_ref();
        match method.map(|method| method.kind.as_str()) {
            Some("ByUser") => user.name.hash(&mut hasher),
            Some("ByNamespace") => info.resource.as_ref().map(|target| &target.namespace).hash(&mut hasher),
            _ => {}
        }
        hasher.finish()
    }
}

fn any<T>(list: &Option<Vec<T>>, matches: impl FnMut(&T) -> bool) -> bool {
    list.as_deref().unwrap_or_default().iter().any(matches)
}

fn contains(list: &[String], wanted: &str) -> bool {
    list.iter().any(|item| item == "*" || item == wanted)
}

impl Subject {
    fn is(&self, user: &User) -> bool {
        let user_is = self.user.as_ref().is_some_and(|named| named.name == "*" || named.name == user.name);
        let group_is = self.group.as_ref().is_some_and(|named| named.name == "*" || user.is_in(&named.name));
        user_is || group_is || self.service_account.as_ref().is_some_and(|account| account.is(user))
    }
}

impl Named {
    fn is(&self, user: &User) -> bool {
        let account = user.name.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':'));
        account.is_some_and(|(namespace, name)| namespace == self.namespace && (self.name == "*" || self.name == name))
    }
}

impl ResourceRule {
    fn matches(&self, target: &ResourceInfo) -> bool {
        let is_resource = |item: &String| match &target.subresource {
            _ if item == "*" => true,
            None => *item == target.resource,
            Some(subresource) => item.split_once('/') == Some((target.resource.as_str(), subresource.as_str())),
        };
        let in_scope = match target.namespace.as_deref().unwrap_or_default() {
            "" => self.cluster_scope,
            namespace => contains(self.namespaces.as_deref().unwrap_or_default(), namespace),
        };
        in_scope
            && contains(&self.verbs, target.verb.name())
            && contains(&self.api_groups, &target.group)
            && self.resources.iter().any(is_resource)
    }
}

impl PathRule {
    fn matches(&self, info: &RequestInfo) -> bool {
        let is_path = |item: &String| match item.strip_suffix('*') {
            Some(prefix) => info.path.starts_with(prefix),
            None => *item == info.path,
        };
        contains(&self.verbs, &info.verb()) && self.paths.iter().any(is_path)
    }
}
