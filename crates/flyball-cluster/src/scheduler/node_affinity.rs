//! Which nodes a pod asks for by name, label and field, and which it tolerates.

use k8s_openapi::api::core::v1::{
    Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PodSpec, Taint, Toleration,
};
use kube::ResourceExt;

/// Whether a node has the labels that a pod requires.
pub(crate) fn is_selected(spec: &PodSpec, node: &Node) -> bool {
    let has = |(name, value): (&String, &String)| node.labels().get(name) == Some(value);
    if !spec.node_selector.iter().flatten().all(has) {
        return false;
    }
    let affinity = spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    let required = affinity.and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution.as_ref());
    required.is_none_or(|required| selects(required, node))
}

/// Whether one of the selector's terms matches a node.
pub(crate) fn selects(selector: &NodeSelector, node: &Node) -> bool {
    selector.node_selector_terms.iter().any(|term| matches(term, node))
}

/// The weight of the preferred terms that a node matches.
pub(super) fn preference(spec: &PodSpec, node: &Node) -> i64 {
    let affinity = spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    let preferred = affinity.and_then(|it| it.preferred_during_scheduling_ignored_during_execution.as_ref());
    let met = preferred.into_iter().flatten().filter(|term| matches(&term.preference, node));
    met.map(|term| i64::from(term.weight)).sum()
}

/// A term without requirements matches nothing.
fn matches(term: &NodeSelectorTerm, node: &Node) -> bool {
    let labels = term.match_expressions.iter().flatten();
    let fields = term.match_fields.iter().flatten();
    let name = node.name_any();
    let is_empty = labels.clone().chain(fields.clone()).next().is_none();
    !is_empty
        && labels
            .into_iter()
            .all(|wanted| holds(wanted, node.labels().get(&wanted.key).map(String::as_str)))
        && fields
            .into_iter()
            .all(|wanted| holds(wanted, Some(&*name).filter(|_| wanted.key == "metadata.name")))
}

fn holds(wanted: &NodeSelectorRequirement, value: Option<&str>) -> bool {
    let values = wanted.values.as_deref().unwrap_or_default();
    let listed = value.is_some_and(|value| values.iter().any(|wanted| wanted == value));
    let compared = || -> Option<std::cmp::Ordering> {
        let (found, limit): (i64, i64) = (value?.parse().ok()?, values.first()?.parse().ok()?);
        Some(found.cmp(&limit))
    };
    match &*wanted.operator {
        "In" => listed,
        "NotIn" => !listed,
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => compared().is_some_and(|order| order.is_gt()),
        "Lt" => compared().is_some_and(|order| order.is_lt()),
        _ => false,
    }
}

/// Whether a pod tolerates every taint of a node that would keep it away.
pub(crate) fn tolerates(spec: &PodSpec, node: &Node) -> bool {
    taints(node)
        .filter(|taint| taint.effect != "PreferNoSchedule")
        .all(|taint| is_tolerated(tolerations(spec), taint))
}

/// How many taints of a node a pod would rather avoid.
pub(super) fn disliked_taints(spec: &PodSpec, node: &Node) -> i64 {
    let preferring =
        |toleration: &&Toleration| matches!(toleration.effect.as_deref(), None | Some("" | "PreferNoSchedule"));
    let tolerations: Vec<_> = tolerations(spec).iter().filter(preferring).cloned().collect();
    let disliked =
        taints(node).filter(|taint| taint.effect == "PreferNoSchedule" && !is_tolerated(&tolerations, taint));
    disliked.count() as i64
}

/// Whether a pod tolerates that its node is not to take pods.
pub(crate) fn tolerates_unschedulable(spec: &PodSpec) -> bool {
    let taint = Taint {
        key: "node.kubernetes.io/unschedulable".into(),
        effect: "NoSchedule".into(),
        ..Taint::default()
    };
    is_tolerated(tolerations(spec), &taint)
}

/// Whether one of the tolerations covers a taint.
// component-helpers/scheduling/corev1/toleration.go, ToleratesTaint
pub(crate) fn is_tolerated(tolerations: &[Toleration], taint: &Taint) -> bool {
    tolerations.iter().any(|toleration| covers(toleration, taint))
}

/// Whether a toleration covers a taint.
pub(crate) fn covers(toleration: &Toleration, taint: &Taint) -> bool {
    let effect = toleration.effect.as_deref().unwrap_or_default();
    let key = toleration.key.as_deref().unwrap_or_default();
    let exists = toleration.operator.as_deref() == Some("Exists");
    (effect.is_empty() || effect == taint.effect)
        && (key == taint.key || (key.is_empty() && exists))
        && (exists || toleration.value.as_deref().unwrap_or_default() == taint.value.as_deref().unwrap_or_default())
}

fn taints(node: &Node) -> impl Iterator<Item = &Taint> {
    node.spec.iter().flat_map(|spec| spec.taints.iter().flatten())
}

fn tolerations(spec: &PodSpec) -> &[Toleration] {
    spec.tolerations.as_deref().unwrap_or_default()
}
