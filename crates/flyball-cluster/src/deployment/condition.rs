//! The conditions of a Deployment: Available, Progressing and ReplicaFailure, in upstream's words.

use jiff::Timestamp;
use k8s_openapi::{
    api::apps::v1::{DeploymentCondition, DeploymentStatus, ReplicaSetCondition},
    apimachinery::pkg::apis::meta::v1::Time,
};

/// Whether enough pods are available.
pub(crate) const AVAILABLE: &str = "Available";
/// Whether a rollout gets on.
pub(crate) const PROGRESSING: &str = "Progressing";
/// Whether pods cannot be created or deleted.
pub(crate) const REPLICA_FAILURE: &str = "ReplicaFailure";

/// A new condition.
pub(crate) fn new(
    type_: &str,
    status: &str,
    reason: &str,
    message: impl Into<String>,
    now: Timestamp,
) -> DeploymentCondition {
    DeploymentCondition {
        type_: type_.into(),
        status: status.into(),
        reason: Some(reason.into()),
        message: Some(message.into()),
        last_update_time: Some(Time(now)),
        last_transition_time: Some(Time(now)),
    }
}

/// The condition of a ReplicaSet as one of its Deployment.
pub(crate) fn promoted(condition: &ReplicaSetCondition) -> DeploymentCondition {
    DeploymentCondition {
        type_: condition.type_.clone(),
        status: condition.status.clone(),
        reason: condition.reason.clone(),
        message: condition.message.clone(),
        last_update_time: condition.last_transition_time.clone(),
        last_transition_time: condition.last_transition_time.clone(),
    }
}

/// The condition of that type.
pub(crate) fn get<'a>(status: &'a DeploymentStatus, type_: &str) -> Option<&'a DeploymentCondition> {
    status.conditions.iter().flatten().find(|condition| condition.type_ == type_)
}

/// The reason of the condition of that type.
pub(crate) fn reason<'a>(status: &'a DeploymentStatus, type_: &str) -> Option<&'a str> {
    get(status, type_).and_then(|condition| condition.reason.as_deref())
}

/// Sets a condition, unless there is one with the same status and reason.
// deployment_util.go, SetDeploymentCondition
pub(crate) fn set(status: &mut DeploymentStatus, condition: DeploymentCondition) {
    let same = |known: &DeploymentCondition| known.status == condition.status && known.reason == condition.reason;
    if !get(status, &condition.type_).is_some_and(same) {
        renew(status, condition);
    }
}

/// Sets a condition anew, keeping the time of its last transition if its status stays the same.
pub(crate) fn renew(status: &mut DeploymentStatus, mut condition: DeploymentCondition) {
    if let Some(known) = get(status, &condition.type_)
        && known.status == condition.status
    {
        condition.last_transition_time = known.last_transition_time.clone();
    }
    remove(status, &condition.type_);
    status.conditions.get_or_insert_default().push(condition);
}

/// Removes the condition of that type.
pub(crate) fn remove(status: &mut DeploymentStatus, type_: &str) {
    if let Some(conditions) = &mut status.conditions {
        conditions.retain(|condition| condition.type_ != type_);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THEN: Timestamp = Timestamp::UNIX_EPOCH;

    fn later() -> Timestamp {
        "2026-01-01T00:00:00Z".parse().unwrap()
    }

    #[test]
    fn the_same_condition_is_not_written_again() {
        let mut status = DeploymentStatus::default();
        set(&mut status, new(AVAILABLE, "True", "Enough", "one", THEN));
        set(&mut status, new(AVAILABLE, "True", "Enough", "another", later()));
        let condition = get(&status, AVAILABLE).unwrap();
        assert_eq!(
            (condition.message.as_deref(), &condition.last_update_time),
            (Some("one"), &Some(Time(THEN)))
        );
    }

    #[test]
    fn a_transition_is_a_change_of_status() {
        let mut status = DeploymentStatus::default();
        set(&mut status, new(PROGRESSING, "True", "Created", "", THEN));
        set(&mut status, new(PROGRESSING, "True", "Updated", "", later()));
        assert_eq!(get(&status, PROGRESSING).unwrap().last_transition_time, Some(Time(THEN)));
        set(&mut status, new(PROGRESSING, "False", "Stuck", "", later()));
        assert_eq!(get(&status, PROGRESSING).unwrap().last_transition_time, Some(Time(later())));
        assert_eq!(status.conditions.unwrap().len(), 1);
    }
}
