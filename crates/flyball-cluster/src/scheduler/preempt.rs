//! Which pods have to leave so that one of a higher priority fits.

use super::{
    fit::{Request, Unfit},
    state::{Placed, State},
};
use flyball::Key;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::core::{Selector, SelectorExt};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// A node, and the pods that leave it.
#[derive(Debug)]
pub(super) struct Preemption {
    pub(super) node: String,
    pub(super) victims: Vec<(Key, Placed)>,
}

/// The node on which the least important pods have to leave; or why none helps, as the end of the scheduler's message.
// pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go
pub(super) fn preempt(
    request: &Request,
    unfit: &Unfit,
    state: &State,
    budgets: &[Arc<PodDisruptionBudget>],
) -> Result<Preemption, String> {
    if request.spec.preemption_policy.as_deref() == Some("Never") {
        return Err("not eligible due to preemptionPolicy=Never.".into());
    }
    if let Some((node, ..)) = state.nominated.get(&request.key)
        && let Some(info) = state.nodes.get(node)
        && state
            .pods_of(info)
            .any(|placed| placed.terminating && placed.priority < priority(request))
    {
        return Err("not eligible due to a terminating pod on the nominated node.".into());
    }
    let candidates = unfit.resolvable.iter().filter_map(|name| {
        let (victims, violations) = victims(request, name, state, budgets)?;
        Some((cost(&victims, violations), Preemption { node: name.clone(), victims }))
    });
    let best = candidates.min_by(|(one, _), (other, _)| one.cmp(other));
    best.map(|(_, preemption)| preemption).ok_or_else(|| {
        let hopeless = unfit.nodes - unfit.resolvable.len();
        let reasons = [
            (unfit.resolvable.len(), "No preemption victims found for incoming pod"),
            (hopeless, "Preemption is not helpful for scheduling"),
        ];
        let mut reasons: Vec<_> = reasons
            .iter()
            .filter(|(nodes, _)| *nodes > 0)
            .map(|(nodes, reason)| format!("{nodes} {reason}"))
            .collect();
        reasons.sort();
        format!("0/{} nodes are available: {}.", unfit.nodes, reasons.join(", "))
    })
}

fn priority(request: &Request) -> i32 {
    request.spec.priority.unwrap_or_default()
}

/// What is compared between nodes: violated budgets, the highest priority, their sum, their number, and who started last.
type Cost = (usize, i32, i64, usize, Reverse<Option<jiff::Timestamp>>);

fn cost(victims: &[(Key, Placed)], violations: usize) -> Cost {
    let priorities = || victims.iter().map(|(_, victim)| victim.priority);
    let highest = priorities().max().unwrap_or(i32::MIN);
    let started = victims
        .iter()
        .filter(|(_, victim)| victim.priority == highest)
        .filter_map(|(_, victim)| victim.started)
        .min();
    let sum = priorities().map(|priority| i64::from(priority) + i64::from(i32::MAX) + 1).sum();
    (violations, highest, sum, victims.len(), Reverse(started))
}

/// The fewest pods of a node that have to leave, and how many of them a budget protects.
fn victims(
    request: &Request,
    node: &str,
    state: &State,
    budgets: &[Arc<PodDisruptionBudget>],
) -> Option<(Vec<(Key, Placed)>, usize)> {
    let info = state.nodes.get(node)?;
    let live = info.node.as_ref()?;
    let below = info
        .pods
        .iter()
        .filter(|key| state.pods.get(key).is_some_and(|placed| placed.priority < priority(request)));
    let mut leaving: BTreeSet<Key> = below.cloned().collect();
    if leaving.is_empty() || request.obstacle(info, live, state, &leaving).is_some() {
        return None;
    }
    let mut pods: Vec<_> = leaving
        .iter()
        .filter_map(|key| Some((key.clone(), state.pods.get(key)?.clone())))
        .collect();
    pods.sort_by_key(|(_, placed)| (Reverse(placed.priority), placed.started));
    let protected = protected(&pods, budgets);
    let (mut violations, mut victims) = (0, Vec::new());
    let (first, rest): (Vec<_>, Vec<_>) = pods.into_iter().partition(|(key, _)| protected.contains(key));
    for (key, placed) in first.into_iter().chain(rest) {
        leaving.remove(&key);
        if request.obstacle(info, live, state, &leaving).is_some() {
            leaving.insert(key.clone());
            violations += usize::from(protected.contains(&key));
            victims.push((key, placed));
        }
    }
    Some((victims, violations))
}

/// The pods whose budgets would be violated, the more important ones being spared first.
fn protected(pods: &[(Key, Placed)], budgets: &[Arc<PodDisruptionBudget>]) -> BTreeSet<Key> {
    let mut left: BTreeMap<usize, i32> = BTreeMap::new();
    let mut protected = BTreeSet::new();
    for (key, placed) in pods {
        for (index, budget) in budgets.iter().enumerate().filter(|(_, budget)| covers(budget, placed)) {
            let allowed = budget.status.as_ref().and_then(|status| status.disruptions_allowed).unwrap_or_default();
            let left = left.entry(index).or_insert(allowed);
            *left -= 1;
            if *left < 0 {
                protected.insert(key.clone());
            }
        }
    }
    protected
}

fn covers(budget: &PodDisruptionBudget, placed: &Placed) -> bool {
    let selector = budget.spec.as_ref().and_then(|spec| spec.selector.clone());
    let selector = selector.and_then(|selector| Selector::try_from(selector).ok());
    budget.metadata.namespace.as_ref() == Some(&placed.namespace)
        && selector.is_some_and(|selector| !placed.labels.is_empty() && selector.matches(&placed.labels))
}
