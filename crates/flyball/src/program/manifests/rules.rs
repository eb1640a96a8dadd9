//! The least that an operator must be allowed, derived from what it declares.

use crate::cache::kind::{Kind, Scope};
use crate::declare::controller::ControllerSpec;
use crate::webhook::registration::CONFIGURATIONS;
use crate::{EventApi, Operator};
use k8s_openapi::api::rbac::v1::PolicyRule;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The order in which verbs are written.
const VERBS: [&str; 8] = [
    "get",
    "list",
    "watch",
    "create",
    "update",
    "patch",
    "delete",
    "deletecollection",
];
const READ: [&str; 3] = ["get", "list", "watch"];

/// Verbs by API group and resource.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    verbs: BTreeMap<(String, String), Vec<String>>,
    /// Rules that are not about all objects of a kind.
    others: Vec<Value>,
}

/// Where a rule has to hold.
#[derive(Debug, Default)]
pub(crate) struct Needed {
    /// In the namespaces that are watched.
    pub(crate) namespaced: Rules,
    /// In the whole cluster.
    pub(crate) cluster: Rules,
}

impl Needed {
    pub(crate) fn of(operator: &Operator) -> Needed {
        let mut needed = Needed::default();
        for controller in operator.controllers() {
            needed.controller(operator, controller);
        }
        needed.namespaced = needed.namespaced.and(events(operator));
        needed.install(operator);
        needed.register(operator);
        needed.cluster.add("authentication.k8s.io", "tokenreviews", &["create"]);
        needed.cluster.add("authorization.k8s.io", "subjectaccessreviews", &["create"]);
        for rule in operator.permissions() {
            let is_global = rule.non_resource_urls.is_some();
            let rules = if is_global {
                &mut needed.cluster
            } else {
                &mut needed.namespaced
            };
            rules.others.push(written(rule));
        }
        needed
    }

    fn controller(&mut self, operator: &Operator, controller: &ControllerSpec) {
        let kind = &controller.kind;
        self.kind(operator, kind, "", &READ);
        if has_status(operator, kind) {
            self.kind(operator, kind, "/status", &["update", "patch"]);
        }
        if !controller.cleanup.is_empty() {
            self.kind(operator, kind, "", &["patch"]);
        }
        if !controller.owned.is_empty() {
            // A child's reference blocks its owner's deletion (OwnerReferencesPermissionEnforcement).
            self.kind(operator, kind, "/finalizers", &["update"]);
        }
        for owned in &controller.owned {
            self.kind(operator, owned, "", &["get", "list", "watch", "create", "patch", "delete"]);
        }
        let watched = controller.watched.iter().map(|watched| &watched.kind);
        for read in controller.read.iter().chain(watched) {
            self.kind(operator, read, "", &READ);
        }
        for (kind, verbs) in &controller.needed {
            let verbs: Vec<_> = verbs.iter().map(String::as_str).collect();
            self.kind(operator, kind, "", &verbs);
        }
    }

    fn kind(&mut self, operator: &Operator, kind: &Kind, subresource: &str, verbs: &[&str]) {
        let rules = if is_cluster_scoped(operator, kind) {
            &mut self.cluster
        } else {
            &mut self.namespaced
        };
        rules.add(&kind.resource.group, &format!("{}{subresource}", kind.resource.plural), verbs);
    }

    /// An operator installs its kinds when it starts, and only those.
    fn install(&mut self, operator: &Operator) {
        let names: Vec<_> = operator.crds().iter().filter_map(|crd| crd.metadata.name.as_deref()).collect();
        if !names.is_empty() {
            self.cluster.others.push(json!({
                "apiGroups": ["apiextensions.k8s.io"],
                "resources": ["customresourcedefinitions"],
                "resourceNames": names,
                "verbs": ["get", "create", "patch"],
            }));
        }
    }
}

impl Needed {
    /// An operator registers its own webhooks, and keeps the certificates there up to date.
    fn register(&mut self, operator: &Operator) {
        let kinds = CONFIGURATIONS
            .iter()
            .filter(|(purpose, ..)| operator.admissions().iter().any(|admission| admission.purpose == *purpose));
        let resources: Vec<_> = kinds.map(|(_, _, plural)| *plural).collect();
        if !resources.is_empty() {
            self.cluster.others.push(json!({
                "apiGroups": ["admissionregistration.k8s.io"],
                "resources": resources,
                "resourceNames": [operator.name()],
                "verbs": ["get", "create", "patch"],
            }));
        }
    }
}

impl Rules {
    fn add(&mut self, group: &str, resource: &str, verbs: &[&str]) {
        let known = self.verbs.entry((group.into(), resource.into())).or_default();
        for verb in verbs {
            if !known.iter().any(|known| known == verb) {
                known.push((*verb).into());
            }
        }
    }

    /// The other rules too, where both hold in the same place.
    pub(crate) fn and(mut self, other: Rules) -> Rules {
        for ((group, resource), verbs) in &other.verbs {
            let verbs: Vec<_> = verbs.iter().map(String::as_str).collect();
            self.add(group, resource, &verbs);
        }
        self.others.extend(other.others);
        self
    }

    /// As `rules` of a role: resources of one group with the same verbs are one rule.
    pub(crate) fn into_value(self) -> Value {
        let mut grouped: BTreeMap<(String, Vec<String>), Vec<String>> = BTreeMap::new();
        for ((group, resource), mut verbs) in self.verbs {
            verbs.sort_by_key(|verb| VERBS.iter().position(|known| known == verb).unwrap_or(VERBS.len()));
            grouped.entry((group, verbs)).or_default().push(resource);
        }
        let rule =
            |((group, verbs), resources)| json!({ "apiGroups": [group], "resources": resources, "verbs": verbs });
        let mut rules: Vec<Value> = grouped.into_iter().map(rule).collect();
        for rule in self.others {
            if !rules.contains(&rule) {
                rules.push(rule);
            }
        }
        rules.into()
    }
}

/// What it takes to publish events. An event is in the namespace of its object, or in `default`.
pub(crate) fn events(operator: &Operator) -> Rules {
    let group = match operator.event_policy().api {
        EventApi::Events => "events.k8s.io",
        EventApi::Core => "",
    };
    let mut rules = Rules::default();
    rules.add(group, "events", &["create", "patch"]);
    rules
}

/// Whether objects are reconciled that live in no namespace.
pub(crate) fn reconciles_cluster_scoped(operator: &Operator) -> bool {
    let mut kinds = operator.controllers().iter().map(|controller| &controller.kind);
    kinds.any(|kind| is_cluster_scoped(operator, kind))
}

/// A rule as its author wrote it.
fn written(rule: &PolicyRule) -> Value {
    serde_json::to_value(rule).expect("a rule is JSON")
}

/// Whether the operator brings a kind along whose status is a subresource.
fn has_status(operator: &Operator, kind: &Kind) -> bool {
    let definition = operator.crds().iter().find(|crd| is_of(&crd.spec, kind));
    let versions = definition.iter().flat_map(|crd| &crd.spec.versions);
    let mut subresources = versions.filter_map(|version| version.subresources.as_ref());
    subresources.any(|subresources| subresources.status.is_some())
}

fn is_cluster_scoped(operator: &Operator, kind: &Kind) -> bool {
    match kind.scope {
        Scope::Cluster => true,
        Scope::Namespaced => false,
        Scope::Unknown => operator.crds().iter().any(|crd| is_of(&crd.spec, kind) && crd.spec.scope == "Cluster"),
    }
}

type Definition = k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinitionSpec;

fn is_of(definition: &Definition, kind: &Kind) -> bool {
    definition.group == kind.resource.group && definition.names.plural == kind.resource.plural
}
