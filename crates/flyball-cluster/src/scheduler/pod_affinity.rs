//! Which pods a pod wants to be near or far from, and how evenly pods are spread over the cluster's topology.

use super::{
    node_affinity,
    state::{NodeState, Placed, State},
};
use k8s_openapi::{
    api::core::v1::{Affinity, Node, Pod, PodAffinityTerm, PodSpec, TopologySpreadConstraint},
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};
use kube::{
    ResourceExt,
    core::{Selector, SelectorExt},
};
use std::collections::BTreeMap;

/// What an incoming pod demands of the pods around it, counted once for all nodes.
#[derive(Debug, Default)]
pub(super) struct Surroundings {
    /// For each required term: its topology key, and the domains with a matching pod.
    near: Vec<(String, BTreeMap<String, i64>)>,
    /// Whether the pod matches all of its own terms, which lets the first of a group in.
    matches_itself: bool,
    far: Vec<(String, BTreeMap<String, i64>)>,
    /// Domains that existing pods keep the incoming one away from.
    repelled: Vec<(String, String)>,
    /// Weighted preferences, positive and negative.
    preferred: Vec<(String, BTreeMap<String, i64>)>,
    spread: Vec<Spread>,
}

#[derive(Debug)]
struct Spread {
    key: String,
    max_skew: i64,
    min_domains: Option<i64>,
    required: bool,
    matches_itself: bool,
    domains: BTreeMap<String, i64>,
}

impl Surroundings {
    /// Counts what matters to a pod. A pod without affinity or spread costs nothing here but the pods that repel others.
    pub(super) fn of(pod: &Pod, state: &State) -> Surroundings {
        let spec = pod.spec.as_ref();
        let affinity = spec.and_then(|spec| spec.affinity.as_ref());
        let count = |term: &PodAffinityTerm| (term.topology_key.clone(), count(term, pod, state));
        let near = required_near(affinity);
        let spread = spec.and_then(|spec| spec.topology_spread_constraints.as_ref()).into_iter().flatten();
        Surroundings {
            matches_itself: !near.is_empty() && near.iter().all(|term| matches(term, pod, &Placed::of(pod, ""))),
            near: near.iter().map(count).collect(),
            far: required_far(affinity).iter().map(count).collect(),
            repelled: repelled(pod, state),
            preferred: preferred(pod, affinity, state),
            spread: spread.map(|constraint| Spread::of(constraint, pod, state)).collect(),
        }
    }

    /// Why a node does not suit; in the order of upstream's plugins.
    pub(super) fn obstacle(&self, node: &Node) -> Option<&'static str> {
        for spread in self.spread.iter().filter(|spread| spread.required) {
            let Some(domain) = node.labels().get(&spread.key) else {
                return Some("node(s) didn't match pod topology spread constraints (missing required label)");
            };
            if spread.skew(domain) > spread.max_skew {
                return Some("node(s) didn't match pod topology spread constraints");
            }
        }
        let holds = |(key, domains): &(String, BTreeMap<String, i64>)| {
            node.labels().get(key).is_some_and(|domain| domains.contains_key(domain))
        };
        let is_first = self.matches_itself && self.near.iter().all(|(_, domains)| domains.is_empty());
        let has_keys = self.near.iter().all(|(key, _)| node.labels().contains_key(key));
        if !(self.near.iter().all(holds) || (is_first && has_keys)) {
            return Some("node(s) didn't match pod affinity rules");
        }
        if self.far.iter().any(holds) {
            return Some("node(s) didn't match pod anti-affinity rules");
        }
        if self.repelled.iter().any(|(key, domain)| node.labels().get(key) == Some(domain)) {
            return Some("node(s) didn't satisfy existing pods anti-affinity rules");
        }
        None
    }

    /// The weight of the preferences that a node meets.
    pub(super) fn preference(&self, node: &Node) -> i64 {
        let weight = |(key, domains): &(String, BTreeMap<String, i64>)| {
            node.labels().get(key).and_then(|domain| domains.get(domain)).copied().unwrap_or_default()
        };
        self.preferred.iter().map(weight).sum()
    }

    /// How many pods a node's domains have already, by the constraints that are only preferred.
    pub(super) fn crowd(&self, node: &Node) -> i64 {
        let preferred = self.spread.iter().filter(|spread| !spread.required);
        let count = preferred.filter_map(|spread| spread.domains.get(node.labels().get(&spread.key)?));
        count.sum()
    }

    pub(super) fn is_spread(&self) -> bool {
        self.spread.iter().any(|spread| !spread.required)
    }
}

impl Spread {
    // pkg/scheduler/framework/plugins/podtopologyspread/filtering.go, calPreFilterState
    fn of(constraint: &TopologySpreadConstraint, pod: &Pod, state: &State) -> Spread {
        let mut wanted = constraint.label_selector.clone();
        add_matching_keys(&mut wanted, constraint.match_label_keys.as_deref(), pod, "In");
        let selector = selector(wanted.as_ref());
        let own = pod.namespace().unwrap_or_default();
        let spec = pod.spec.clone().unwrap_or_default();
        let mut domains = BTreeMap::new();
        for (info, node) in state.live().filter(|(_, node)| counts(constraint, &spec, node)) {
            if let Some(domain) = node.labels().get(&constraint.topology_key) {
                let matching = state.pods_of(info).filter(|placed| {
                    !placed.terminating && placed.namespace == own && matches_labels(&selector, &placed.labels)
                });
                *domains.entry(domain.clone()).or_default() += matching.count() as i64;
            }
        }
        Spread {
            key: constraint.topology_key.clone(),
            max_skew: constraint.max_skew.into(),
            min_domains: constraint.min_domains.map(i64::from),
            required: constraint.when_unsatisfiable == "DoNotSchedule",
            matches_itself: matches_labels(&selector, pod.labels()),
            domains,
        }
    }

    fn skew(&self, domain: &str) -> i64 {
        let least = self.domains.values().min().copied().unwrap_or_default();
        let too_few = self.min_domains.is_some_and(|least| (self.domains.len() as i64) < least);
        let here = self.domains.get(domain).copied().unwrap_or_default();
        here + i64::from(self.matches_itself) - if too_few { 0 } else { least }
    }
}

/// Whether a node is among those over which pods are spread.
fn counts(constraint: &TopologySpreadConstraint, spec: &PodSpec, node: &Node) -> bool {
    let affinity =
        constraint.node_affinity_policy.as_deref() == Some("Ignore") || node_affinity::is_selected(spec, node);
    let taints = constraint.node_taints_policy.as_deref() != Some("Honor") || node_affinity::tolerates(spec, node);
    affinity && taints
}

fn required_near(affinity: Option<&Affinity>) -> Vec<PodAffinityTerm> {
    let near = affinity.and_then(|affinity| affinity.pod_affinity.as_ref());
    near.and_then(|near| near.required_during_scheduling_ignored_during_execution.clone())
        .unwrap_or_default()
}

fn required_far(affinity: Option<&Affinity>) -> Vec<PodAffinityTerm> {
    let far = affinity.and_then(|affinity| affinity.pod_anti_affinity.as_ref());
    far.and_then(|far| far.required_during_scheduling_ignored_during_execution.clone())
        .unwrap_or_default()
}

/// How many pods match a term of `owner`, by domain.
fn count(term: &PodAffinityTerm, owner: &Pod, state: &State) -> BTreeMap<String, i64> {
    let mut domains = BTreeMap::new();
    for (info, node) in state.live() {
        let Some(domain) = node.labels().get(&term.topology_key) else {
            continue;
        };
        let matching = state.pods_of(info).filter(|placed| matches(term, owner, placed)).count();
        if matching > 0 {
            *domains.entry(domain.clone()).or_default() += matching as i64;
        }
    }
    domains
}

/// The domains that existing pods do not share with this one.
fn repelled(pod: &Pod, state: &State) -> Vec<(String, String)> {
    let incoming = Placed::of(pod, "");
    let mut domains = Vec::new();
    for placed in state.repelling.iter().filter_map(|key| state.pods.get(key)) {
        let Some(node) = state.nodes.get(&placed.node).and_then(|info: &NodeState| info.node.as_ref()) else {
            continue;
        };
        let owner = stand_in(placed);
        for term in required_far(placed.affinity.as_ref()) {
            if let Some(domain) = node.labels().get(&term.topology_key).filter(|_| matches(&term, &owner, &incoming)) {
                domains.push((term.topology_key.clone(), domain.clone()));
            }
        }
    }
    domains
}

fn preferred(pod: &Pod, affinity: Option<&Affinity>, state: &State) -> Vec<(String, BTreeMap<String, i64>)> {
    let near =
        affinity.and_then(|it| it.pod_affinity.as_ref()?.preferred_during_scheduling_ignored_during_execution.clone());
    let far = affinity.and_then(|it| {
        it.pod_anti_affinity
            .as_ref()?
            .preferred_during_scheduling_ignored_during_execution
            .clone()
    });
    let near = near
        .unwrap_or_default()
        .into_iter()
        .map(|term| (term.pod_affinity_term, i64::from(term.weight)));
    let far = far
        .unwrap_or_default()
        .into_iter()
        .map(|term| (term.pod_affinity_term, -i64::from(term.weight)));
    let weigh = |(term, weight): (PodAffinityTerm, i64)| {
        let domains = count(&term, pod, state).into_iter().map(|(domain, pods)| (domain, pods * weight));
        (term.topology_key, domains.collect())
    };
    near.chain(far).map(weigh).collect()
}

/// A pod that says as much of a placed one as a term asks of its owner.
fn stand_in(placed: &Placed) -> Pod {
    let mut pod = Pod::default();
    pod.metadata.namespace = Some(placed.namespace.clone());
    pod.metadata.labels = Some(placed.labels.clone());
    pod
}

/// Whether a pod is one that a term of `owner` means. Of a namespace's labels a `namespaceSelector` sees its name's only.
fn matches(term: &PodAffinityTerm, owner: &Pod, other: &Placed) -> bool {
    let labels = BTreeMap::from([("kubernetes.io/metadata.name".to_owned(), other.namespace.clone())]);
    let selected = matches_labels(&selector(term.namespace_selector.as_ref()), &labels);
    let listed = term.namespaces.as_deref().unwrap_or_default();
    let own = listed.is_empty() && term.namespace_selector.is_none();
    let namespace =
        selected || listed.contains(&other.namespace) || (own && owner.namespace().as_ref() == Some(&other.namespace));
    let mut wanted = term.label_selector.clone();
    add_matching_keys(&mut wanted, term.match_label_keys.as_deref(), owner, "In");
    add_matching_keys(&mut wanted, term.mismatch_label_keys.as_deref(), owner, "NotIn");
    namespace && matches_labels(&selector(wanted.as_ref()), &other.labels)
}

fn add_matching_keys(selector: &mut Option<LabelSelector>, keys: Option<&[String]>, owner: &Pod, operator: &str) {
    let (Some(selector), Some(keys)) = (selector, keys) else {
        return;
    };
    for key in keys {
        if let Some(value) = owner.labels().get(key) {
            selector.match_expressions.get_or_insert_default().push(
                k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelectorRequirement {
                    key: key.clone(),
                    operator: operator.into(),
                    values: Some(vec![value.clone()]),
                },
            );
        }
    }
}

/// A selector that is absent selects nothing.
fn selector(selector: Option<&LabelSelector>) -> Option<Selector> {
    Selector::try_from(selector?.clone()).ok()
}

fn matches_labels(selector: &Option<Selector>, labels: &BTreeMap<String, String>) -> bool {
    selector.as_ref().is_some_and(|selector| selector.matches(labels))
}
