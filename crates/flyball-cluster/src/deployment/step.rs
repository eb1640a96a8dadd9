//! What a Deployment does next: one decision, from what its ReplicaSets are now.

use super::{
    limits::{Limits, recreates},
    rollout::{self, Size},
    sets::{Sets, replicas, size},
};
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use std::sync::Arc;

/// The next step of a rollout.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// There is no ReplicaSet with the current template yet.
    Create,
    /// These ReplicaSets get these sizes.
    Scale(Vec<(Arc<ReplicaSet>, i32)>),
    /// Every ReplicaSet has the size that it can have for now.
    Settled,
}

/// Decides the next step; `old_pods` says whether pods of older templates are still there.
// deployment_controller.go, syncDeployment
pub(crate) fn next(deployment: &Deployment, sets: &Sets, old_pods: bool) -> Step {
    let limits = Limits::of(deployment);
    if only_scales(deployment, sets) {
        let pods = deployment.status.as_ref().and_then(|status| status.replicas).unwrap_or_default();
        return scaled(limits, scale(limits, sets, pods, recreates(deployment)));
    }
    if recreates(deployment) {
        recreate(limits, sets, old_pods)
    } else {
        roll(limits, sets)
    }
}

/// Whether the rollout stands still: it is paused, or `spec.replicas` has changed and all ReplicaSets are scaled first.
// sync.go, isScalingEvent
pub(crate) fn only_scales(deployment: &Deployment, sets: &Sets) -> bool {
    let limits = Limits::of(deployment);
    let paused = deployment.spec.as_ref().and_then(|spec| spec.paused).unwrap_or_default();
    paused || sets.active().into_iter().any(|set| is_outdated(limits, set))
}

/// Whether a ReplicaSet was last scaled for another number of pods.
fn is_outdated(limits: Limits, set: &ReplicaSet) -> bool {
    size(set).desired.is_some_and(|desired| desired != limits.wanted)
}

/// Scales what is there, without moving the rollout on.
// sync.go, scale
fn scale(limits: Limits, sets: &Sets, pods: i32, recreates: bool) -> Vec<(Arc<ReplicaSet>, i32)> {
    let active = sets.active();
    if let [] | [_] = &*active {
        let only = active.first().copied().or(sets.new.as_ref()).or(sets.old.last());
        return only.map(|set| (set.clone(), limits.wanted)).into_iter().collect();
    }
    if sets.new.as_ref().is_some_and(|set| is_saturated(limits, size(set))) {
        return sets.old.iter().map(|set| (set.clone(), 0)).collect();
    }
    if recreates {
        return Vec::new();
    }
    let sizes: Vec<Size> = active.iter().map(|set| size(set)).collect();
    let next = rollout::in_proportion(limits, &sizes, pods);
    active.into_iter().cloned().zip(next).collect()
}

fn is_saturated(limits: Limits, size: Size) -> bool {
    let wanted = limits.wanted;
    size.replicas == wanted && size.desired == Some(wanted) && size.available == wanted
}

// rolling.go, rolloutRolling
fn roll(limits: Limits, sets: &Sets) -> Step {
    let Some(new) = &sets.new else { return Step::Create };
    let old: Vec<Size> = sets.old.iter().map(|set| size(set)).collect();
    let grown = rollout::grow_new(limits, replicas(new), &old);
    if grown != replicas(new) {
        return Step::Scale(vec![(new.clone(), grown)]);
    }
    let shrunk = rollout::shrink_old(limits, size(new), &old);
    scaled(limits, sets.old.iter().cloned().zip(shrunk).collect())
}

// recreate.go, rolloutRecreate
fn recreate(limits: Limits, sets: &Sets, old_pods: bool) -> Step {
    let down = scaled(limits, sets.old.iter().map(|set| (set.clone(), 0)).collect());
    match &sets.new {
        _ if down != Step::Settled || old_pods => down,
        None => Step::Create,
        Some(new) => scaled(limits, vec![(new.clone(), limits.wanted)]),
    }
}

/// Drops those that have their size already, and have it on record.
fn scaled(limits: Limits, mut targets: Vec<(Arc<ReplicaSet>, i32)>) -> Step {
    targets.retain(|(set, size)| replicas(set) != *size || (*size > 0 && is_outdated(limits, set)));
    if targets.is_empty() {
        Step::Settled
    } else {
        Step::Scale(targets)
    }
}

#[cfg(test)]
mod tests {
    use super::{super::sets::tests::*, *};

    fn step(deployment: &Deployment, sets: Vec<Arc<ReplicaSet>>) -> Step {
        next(deployment, &Sets::of(deployment, sets), false)
    }

    fn sizes(step: Step) -> Vec<(String, i32)> {
        let Step::Scale(targets) = step else { panic!("{step:?}") };
        targets
            .into_iter()
            .map(|(set, size)| (set.metadata.name.clone().unwrap(), size))
            .collect()
    }

    fn recreating(replicas: i32, image: &str) -> Deployment {
        let mut deployment = deployment(replicas, image);
        deployment.spec.as_mut().unwrap().strategy.as_mut().unwrap().type_ = Some("Recreate".into());
        deployment
    }

    #[test]
    fn a_new_template_gets_a_set_of_its_own() {
        assert_eq!(step(&deployment(3, "web:1"), vec![]), Step::Create);
        assert_eq!(step(&deployment(3, "web:2"), vec![set("a", "web:1", 3, 3)]), Step::Create);
    }

    #[test]
    fn a_rollout_grows_the_new_and_then_shrinks_the_old() {
        let rolling = deployment(3, "web:2");
        let grow = step(&rolling, vec![set("a", "web:1", 3, 3), set("b", "web:2", 0, 0)]);
        assert_eq!(sizes(grow), [("b".into(), 1)]);
        let wait = step(&rolling, vec![set("a", "web:1", 3, 3), set("b", "web:2", 1, 0)]);
        assert_eq!(wait, Step::Settled);
        let shrink = step(&rolling, vec![set("a", "web:1", 3, 3), set("b", "web:2", 1, 1)]);
        assert_eq!(sizes(shrink), [("a".into(), 2)]);
    }

    #[test]
    fn a_changed_number_scales_the_only_set_at_once() {
        let scaled = step(&deployment(5, "web:1"), vec![set("a", "web:1", 3, 3)]);
        assert_eq!(sizes(scaled), [("a".into(), 5)]);
        let recorded = step(&deployment(5, "web:1"), vec![set("a", "web:1", 5, 5)]);
        assert_eq!(
            sizes(recorded),
            [("a".into(), 5)],
            "somebody else scaled it: what it was scaled for is written down"
        );
        let to_nothing = step(&deployment(0, "web:1"), vec![set("a", "web:1", 3, 3)]);
        assert_eq!(sizes(to_nothing), [("a".into(), 0)]);
    }

    #[test]
    fn a_changed_number_in_the_middle_of_a_rollout_scales_all_sets() {
        let scaled = step(&deployment(7, "web:2"), vec![set("a", "web:1", 3, 3), set("b", "web:2", 1, 0)]);
        let sizes: i32 = sizes(scaled).into_iter().map(|(_, size)| size).sum();
        assert_eq!(sizes, 8);
    }

    #[test]
    fn a_paused_deployment_is_scaled_but_not_rolled() {
        let mut paused = deployment(3, "web:2");
        paused.spec.as_mut().unwrap().paused = Some(true);
        assert_eq!(step(&paused, vec![set("a", "web:1", 3, 3)]), Step::Settled);
        paused.spec.as_mut().unwrap().replicas = Some(4);
        assert_eq!(sizes(step(&paused, vec![set("a", "web:1", 3, 3)])), [("a".into(), 4)]);
    }

    #[test]
    fn recreating_ends_the_old_before_it_begins_the_new() {
        let deployment = recreating(3, "web:2");
        let old = set("a", "web:1", 3, 3);
        assert_eq!(sizes(step(&deployment, vec![old])), [("a".into(), 0)]);
        let empty = Sets::of(&deployment, vec![set("a", "web:1", 0, 0)]);
        assert_eq!(next(&deployment, &empty, true), Step::Settled, "its pods are still there");
        assert_eq!(next(&deployment, &empty, false), Step::Create);
        let started = step(&deployment, vec![set("a", "web:1", 0, 0), set("b", "web:2", 0, 0)]);
        assert_eq!(sizes(started), [("b".into(), 3)]);
    }
}
