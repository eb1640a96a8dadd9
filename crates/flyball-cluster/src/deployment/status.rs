//! The status of a Deployment: what its ReplicaSets amount to, and whether its rollout gets on.

use super::{
    condition::{self, AVAILABLE, PROGRESSING, REPLICA_FAILURE},
    limits::Limits,
    sets::{Sets, replicas, status},
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{
    api::apps::v1::{Deployment, DeploymentCondition, DeploymentStatus, ReplicaSet, ReplicaSetStatus},
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::ResourceExt;
use std::time::Duration;

/// The reason of a rollout that has ended well.
const DONE: &str = "NewReplicaSetAvailable";
/// The reason of a rollout that did not get on in time.
const TIMED_OUT: &str = "ProgressDeadlineExceeded";
const PAUSED: &str = "DeploymentPaused";

/// Counts the pods of a Deployment's ReplicaSets, and says whether enough are available.
// sync.go, calculateStatus
pub(crate) fn count(deployment: &Deployment, sets: &Sets, now: Timestamp) -> DeploymentStatus {
    let known = deployment.status.clone().unwrap_or_default();
    let sum = |count: fn(&ReplicaSetStatus) -> i32| sets.all().filter_map(|set| status(set)).map(count).sum::<i32>();
    let available = sum(|status| status.available_replicas.unwrap_or_default());
    let wanted: i32 = sets.all().map(|set| replicas(set)).sum();
    let updated = sets.new.as_deref().and_then(status).map_or(0, |status| status.replicas);
    let mut next = DeploymentStatus {
        observed_generation: deployment.metadata.generation,
        replicas: written(sum(|status| status.replicas)),
        updated_replicas: written(updated),
        ready_replicas: written(sum(|status| status.ready_replicas.unwrap_or_default())),
        available_replicas: written(available),
        unavailable_replicas: written((wanted - available).max(0)),
        terminating_replicas: terminating(sets),
        collision_count: known.collision_count,
        conditions: known.conditions,
    };
    let (state, reason, message) = if available >= Limits::of(deployment).least() {
        ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    } else {
        ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    };
    condition::set(&mut next, condition::new(AVAILABLE, state, reason, message, now));
    next
}

/// Kubernetes leaves counts of zero out.
fn written(count: i32) -> Option<i32> {
    (count != 0).then_some(count)
}

/// How many pods are about to end, if every ReplicaSet says so.
// deployment_util.go, GetTerminatingReplicaCountForReplicaSets
fn terminating(sets: &Sets) -> Option<i32> {
    let reported = |set: &&ReplicaSet| {
        let status = status(set);
        let observed = status.and_then(|status| status.observed_generation).unwrap_or_default();
        observed != 0 || status.is_some_and(|status| status.terminating_replicas.is_some())
    };
    let sets = sets.all().map(|set| &**set).filter(reported);
    sets.map(|set| status(set).and_then(|status| status.terminating_replicas)).sum()
}

/// Notes that a Deployment was paused or resumed, so that the time in between does not count as lack of progress.
// sync.go, checkPausedConditions
pub(crate) fn note_pause(deployment: &Deployment, status: &mut DeploymentStatus, now: Timestamp) {
    let reason = condition::reason(status, PROGRESSING);
    if deadline(deployment).is_none() || reason == Some(TIMED_OUT) {
        return;
    }
    let paused = deployment.spec.as_ref().and_then(|spec| spec.paused).unwrap_or_default();
    let (reason, message) = match (paused, reason == Some(PAUSED)) {
        (true, false) => (PAUSED, "Deployment is paused"),
        (false, true) => ("DeploymentResumed", "Deployment is resumed"),
        _ => return,
    };
    condition::set(status, condition::new(PROGRESSING, "Unknown", reason, message, now));
}

/// Says in `next` whether the rollout gets on, compared with the status that the Deployment had.
// progress.go, syncRolloutStatus
pub(crate) fn judge_progress(deployment: &Deployment, sets: &Sets, next: &mut DeploymentStatus, now: Timestamp) {
    let known = deployment.status.clone().unwrap_or_default();
    let rolled_out = next.replicas == next.updated_replicas && condition::reason(&known, PROGRESSING) == Some(DONE);
    match deadline(deployment) {
        None => condition::remove(next, PROGRESSING),
        Some(_) if rolled_out => {}
        Some(deadline) => {
            let subject = subject(deployment, sets);
            if is_complete(deployment, next) {
                let message = format!("{subject} has successfully progressed.");
                condition::set(next, condition::new(PROGRESSING, "True", DONE, message, now));
            } else if has_progressed(&known, next) {
                let message = format!("{subject} is progressing.");
                condition::renew(next, condition::new(PROGRESSING, "True", "ReplicaSetUpdated", message, now));
            } else if has_timed_out(next, deadline, now) {
                let message = format!("{subject} has timed out progressing.");
                condition::set(next, condition::new(PROGRESSING, "False", TIMED_OUT, message, now));
            }
        }
    }
    match failure(sets) {
        Some(failure) => condition::set(next, failure),
        None => condition::remove(next, REPLICA_FAILURE),
    }
}

fn subject(deployment: &Deployment, sets: &Sets) -> String {
    match &sets.new {
        Some(new) => format!("ReplicaSet {:?}", new.name_any()),
        None => format!("Deployment {:?}", deployment.name_any()),
    }
}

fn failure(sets: &Sets) -> Option<DeploymentCondition> {
    let newest_first = sets.new.iter().chain(&sets.old);
    let conditions = newest_first.filter_map(|set| status(set)?.conditions.as_ref()).flatten();
    conditions
        .filter(|condition| condition.type_ == REPLICA_FAILURE)
        .map(condition::promoted)
        .next()
}

/// Whether all wanted pods have the current template and are available, and no others are there.
pub(crate) fn is_complete(deployment: &Deployment, status: &DeploymentStatus) -> bool {
    let wanted = Limits::of(deployment).wanted;
    let counts = [status.updated_replicas, status.replicas, status.available_replicas];
    counts.iter().all(|count| count.unwrap_or_default() == wanted)
        && status.observed_generation >= deployment.metadata.generation
}

// deployment_util.go, DeploymentProgressing
fn has_progressed(known: &DeploymentStatus, next: &DeploymentStatus) -> bool {
    let updated = |status: &DeploymentStatus| status.updated_replicas.unwrap_or_default();
    let old = |status: &DeploymentStatus| status.replicas.unwrap_or_default() - updated(status);
    updated(next) > updated(known)
        || old(next) < old(known)
        || next.ready_replicas.unwrap_or_default() > known.ready_replicas.unwrap_or_default()
        || next.available_replicas.unwrap_or_default() > known.available_replicas.unwrap_or_default()
}

// deployment_util.go, DeploymentTimedOut
fn has_timed_out(status: &DeploymentStatus, deadline: SignedDuration, now: Timestamp) -> bool {
    match condition::get(status, PROGRESSING) {
        Some(progress) if progress.reason.as_deref() == Some(DONE) => false,
        Some(progress) if progress.reason.as_deref() == Some(TIMED_OUT) => true,
        Some(progress) => {
            let since = progress.last_update_time.as_ref().map_or(now, |Time(since)| *since);
            now.duration_since(since) > deadline
        }
        None => false,
    }
}

/// How long a rollout may take without getting on.
pub(crate) fn deadline(deployment: &Deployment) -> Option<SignedDuration> {
    let seconds = deployment.spec.as_ref()?.progress_deadline_seconds?;
    (seconds != i32::MAX).then(|| SignedDuration::from_secs(seconds.into()))
}

/// When to look again whether a rollout hangs; a second later than it might, since times are kept in seconds.
// progress.go, requeueStuckDeployment
pub(crate) fn next_check(deployment: &Deployment, status: &DeploymentStatus, now: Timestamp) -> Option<Duration> {
    let deadline = deadline(deployment)?;
    let progress = condition::get(status, PROGRESSING)?;
    if is_complete(deployment, status) || matches!(progress.reason.as_deref(), Some(DONE | TIMED_OUT | PAUSED)) {
        return None;
    }
    let Time(since) = progress.last_update_time.as_ref()?;
    let left = deadline - now.duration_since(*since) + SignedDuration::from_secs(1);
    Some(Duration::try_from(left).unwrap_or(Duration::from_secs(1)))
}

#[cfg(test)]
mod tests {
    use super::{super::sets::tests::*, *};
    use k8s_openapi::api::apps::v1::ReplicaSetCondition;
    use std::sync::Arc;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + seconds).unwrap()
    }

    /// The status after one look at the ReplicaSets.
    fn look(deployment: &mut Deployment, sets: Vec<Arc<ReplicaSet>>, now: Timestamp) -> DeploymentStatus {
        let sets = Sets::of(deployment, sets);
        let mut status = count(deployment, &sets, now);
        judge_progress(deployment, &sets, &mut status, now);
        deployment.status = Some(status.clone());
        status
    }

    fn conditions(status: &DeploymentStatus) -> Vec<String> {
        let conditions = status.conditions.iter().flatten();
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        conditions
            .map(|c| format!("{}={} {}: {}", c.type_, c.status, text(&c.reason), text(&c.message)))
            .collect()
    }

    #[test]
    fn a_rollout_is_told_from_its_first_pod_to_its_last() {
        let mut deployment = deployment(3, "web:1");
        let first = look(&mut deployment, vec![set("web-a", "web:1", 3, 0)], at(0));
        assert_eq!(
            (first.replicas, first.available_replicas, first.unavailable_replicas),
            (Some(3), None, Some(3))
        );
        let expected = [
            "Available=False MinimumReplicasUnavailable: Deployment does not have minimum availability.",
            "Progressing=True ReplicaSetUpdated: ReplicaSet \"web-a\" is progressing.",
        ];
        assert_eq!(conditions(&first), expected);
        let last = look(&mut deployment, vec![set("web-a", "web:1", 3, 3)], at(9));
        assert_eq!((last.unavailable_replicas, last.observed_generation), (None, Some(1)));
        let expected = [
            "Available=True MinimumReplicasAvailable: Deployment has minimum availability.",
            "Progressing=True NewReplicaSetAvailable: ReplicaSet \"web-a\" has successfully progressed.",
        ];
        assert_eq!(conditions(&last), expected);
        assert_eq!(next_check(&deployment, &last, at(9)), None);
    }

    #[test]
    fn a_rollout_that_hangs_times_out() {
        let mut deployment = deployment(3, "web:1");
        let hangs = || vec![set("web-a", "web:1", 3, 1)];
        let status = look(&mut deployment, hangs(), at(0));
        assert_eq!(next_check(&deployment, &status, at(0)), Some(Duration::from_secs(601)));
        look(&mut deployment, hangs(), at(600));
        assert_eq!(condition::get(deployment.status.as_ref().unwrap(), PROGRESSING).unwrap().status, "True");
        let status = look(&mut deployment, hangs(), at(601));
        let message = "Progressing=False ProgressDeadlineExceeded: ReplicaSet \"web-a\" has timed out progressing.";
        assert_eq!(conditions(&status)[1], message);
    }

    #[test]
    fn a_pause_stops_the_clock() {
        let mut paused = deployment(3, "web:1");
        let mut status = look(&mut paused, vec![set("web-a", "web:1", 3, 1)], at(0));
        paused.spec.as_mut().unwrap().paused = Some(true);
        note_pause(&paused, &mut status, at(5));
        assert_eq!(conditions(&status)[1], "Progressing=Unknown DeploymentPaused: Deployment is paused");
        paused.spec.as_mut().unwrap().paused = None;
        note_pause(&paused, &mut status, at(5000));
        assert_eq!(conditions(&status)[1], "Progressing=Unknown DeploymentResumed: Deployment is resumed");
        assert!(!has_timed_out(&status, SignedDuration::from_secs(600), at(5001)));
    }

    #[test]
    fn a_set_that_cannot_make_pods_is_told_of() {
        let mut failing = (*set("web-a", "web:1", 3, 0)).clone();
        let condition = ReplicaSetCondition {
            type_: REPLICA_FAILURE.into(),
            status: "True".into(),
            reason: Some("FailedCreate".into()),
            message: Some("no room".into()),
            ..ReplicaSetCondition::default()
        };
        failing.status.as_mut().unwrap().conditions = Some(vec![condition]);
        let mut deployment = deployment(3, "web:1");
        let status = look(&mut deployment, vec![Arc::new(failing)], at(0));
        assert_eq!(conditions(&status)[2], "ReplicaFailure=True FailedCreate: no room");
        let status = look(&mut deployment, vec![set("web-a", "web:1", 3, 0)], at(1));
        assert_eq!(conditions(&status).len(), 2);
    }

    #[test]
    fn terminating_pods_are_counted_once_every_set_counts_them() {
        let counting = |observed, terminating| {
            let mut set = (*set("web-a", "web:1", 3, 3)).clone();
            let status = set.status.as_mut().unwrap();
            (status.observed_generation, status.terminating_replicas) = (observed, terminating);
            Sets { new: Some(Arc::new(set)), old: Vec::new() }
        };
        assert_eq!(terminating(&counting(Some(1), Some(2))), Some(2));
        assert_eq!(terminating(&counting(Some(1), None)), None);
        assert_eq!(terminating(&counting(None, None)), Some(0));
    }
}
