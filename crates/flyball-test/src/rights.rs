//! The rights of operators under test: each has those that `rbac` prints for it, and no others. What it uses is recorded,
//! and a request that is refused for a missing right becomes the line of Rust to add.

use flyball::{Manifests, Operator};
use flyball_apiserver::User;
use flyball_apiserver::registry::Registry;
use flyball_apiserver::request::info::{RequestInfo, ResourceInfo};
use http::{Method, Uri};
use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use kube::{Client, ResourceExt};
use std::collections::{BTreeMap, BTreeSet};

/// The namespace in which operators under test run.
pub(crate) const NAMESPACE: &str = "default";

/// The user that an operator is.
pub(crate) fn user_of(operator: &Operator) -> User {
    User::service_account(NAMESPACE, operator.name())
}

/// Gives an operator's service account the rights that `rbac` prints, and takes back others that it had.
///
/// # Panics
/// If the API server refuses one of the objects.
pub(crate) async fn grant(admin: &Client, operator: &Operator) {
    apply(admin, &printed(operator)).await;
}

/// Applies manifests, as an administrator does.
///
/// # Panics
/// If the API server refuses one of them.
pub(crate) async fn apply(admin: &Client, objects: &[DynamicObject]) {
    for object in objects {
        let types = object.types.clone().expect("a manifest has a kind");
        let kind = GroupVersionKind::try_from(&types).expect("a manifest's version is valid");
        let resource = ApiResource::from_gvk(&kind);
        let api: Api<DynamicObject> = match object.namespace() {
            Some(namespace) => Api::namespaced_with(admin.clone(), &namespace, &resource),
            None => Api::all_with(admin.clone(), &resource),
        };
        let parameters = PatchParams::apply("flyball-test").force();
        let applied = api.patch(&object.name_any(), &parameters, &Patch::Apply(object)).await;
        applied.unwrap_or_else(|error| panic!("apply {} {}: {error}", kind.kind, object.name_any()));
    }
}

fn printed(operator: &Operator) -> Vec<DynamicObject> {
    Manifests::of(operator).namespace(NAMESPACE).without_namespace().rbac()
}

/// One thing that an operator did, or was not allowed to do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Use {
    group: String,
    resource: String,
    verb: String,
}

impl Use {
    /// What a request asks for; none if its path names no resource.
    pub(crate) fn of(method: &Method, uri: &Uri) -> Option<Use> {
        let ResourceInfo { group, resource, subresource, verb, .. } = RequestInfo::read(method, uri).resource?;
        let resource = match subresource {
            Some(subresource) => format!("{resource}/{subresource}"),
            None => resource,
        };
        Some(Use { group, resource, verb: verb.name().to_owned() })
    }

    /// How an author grants it: the line of Rust to add.
    pub(crate) fn hint(&self, registry: &Registry) -> String {
        let Use { group, resource, verb } = self;
        let (plural, subresource) = match resource.split_once('/') {
            Some((plural, subresource)) => (plural, Some(subresource)),
            None => (resource.as_str(), None),
        };
        let served = registry.served();
        let mut kinds = served
            .kinds()
            .filter(|kind| *kind.resource.group == **group && *kind.resource.plural == *plural);
        let kind = kinds.next().map(|kind| kind.resource.kind.to_string());
        let line = match (kind, subresource, verb.as_str()) {
            (Some(kind), None, "get" | "list" | "watch") => format!("`.reads::<{kind}>()`"),
            (Some(kind), None, "patch" | "delete") => format!("`.owns::<{kind}>()`"),
            (Some(kind), None, _) => format!("`.needs::<{kind}>([{verb:?}])`"),
            _ => format!(
                "`.permission(PolicyRule {{ api_groups: Some(vec![{group:?}.into()]), resources: Some(vec![{resource:?}.into()]), verbs: vec![{verb:?}.into()], ..PolicyRule::default() }})` on the Operator"
            ),
        };
        format!("the operator may not {verb} {resource} in API group {group:?}: add {line}")
    }
}

/// The fewest rules that allow these uses.
pub(crate) fn rules(uses: &BTreeSet<Use>) -> Vec<PolicyRule> {
    let mut verbs: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
    for Use { group, resource, verb } in uses {
        verbs.entry((group, resource)).or_default().push(verb.clone());
    }
    // Resources of a group that need the same verbs share a rule.
    let mut resources: BTreeMap<(&str, Vec<String>), Vec<String>> = BTreeMap::new();
    for ((group, resource), verbs) in verbs {
        resources.entry((group, verbs)).or_default().push(resource.to_owned());
    }
    let rule = |((group, verbs), resources): ((&str, Vec<String>), Vec<String>)| PolicyRule {
        api_groups: Some(vec![group.to_owned()]),
        resources: Some(resources),
        verbs,
        ..PolicyRule::default()
    };
    resources.into_iter().map(rule).collect()
}

/// The rights that an operator has and that none of these uses needed.
pub(crate) fn unused(operator: &Operator, uses: &BTreeSet<Use>) -> Vec<PolicyRule> {
    let objects = printed(operator);
    let granted = objects.iter().filter(|object| object.name_any() == operator.name());
    let granted = granted.filter_map(|object| object.data.get("rules")).filter_map(|rules| rules.as_array());
    let rules_of: Vec<PolicyRule> =
        granted.flatten().filter_map(|rule| serde_json::from_value(rule.clone()).ok()).collect();
    let mut left = BTreeSet::new();
    for rule in rules_of {
        for group in rule.api_groups.iter().flatten() {
            for resource in rule.resources.iter().flatten() {
                left.extend(rule.verbs.iter().map(|verb| Use {
                    group: group.clone(),
                    resource: resource.clone(),
                    verb: verb.clone(),
                }));
            }
        }
    }
    rules(&left.difference(uses).cloned().collect())
}
