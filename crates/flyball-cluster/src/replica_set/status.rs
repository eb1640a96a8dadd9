//! The status of a ReplicaSet: how many pods it has, and how far they have come.

use crate::pod;
use k8s_openapi::{
    api::{
        apps::v1::{ReplicaSet, ReplicaSetCondition, ReplicaSetStatus},
        core::v1::Pod,
    },
    apimachinery::pkg::apis::meta::v1::Time,
};
use std::{sync::Arc, time::Duration};

const FAILURE: &str = "ReplicaFailure";

/// The pods of a ReplicaSet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pods {
    /// Those that count as its replicas.
    pub(crate) active: Vec<Arc<Pod>>,
    /// How many are about to end.
    pub(crate) terminating: usize,
}

impl Pods {
    /// Sorts out the pods that a ReplicaSet has claimed.
    pub(crate) fn of(claimed: Vec<Arc<Pod>>) -> Pods {
        let is_ending = |pod: &&Arc<Pod>| !pod::has_ended(pod) && pod.metadata.deletion_timestamp.is_some();
        let terminating = claimed.iter().filter(is_ending).count();
        let active = claimed.into_iter().filter(|pod| pod::is_active(pod)).collect();
        Pods { active, terminating }
    }
}

/// What a ReplicaSet's pods amount to; `failure` is why pods could not be created or deleted.
// pkg/controller/replicaset/replica_set_utils.go, calculateStatus
pub(crate) fn of(set: &ReplicaSet, pods: &Pods, failure: Option<&str>, now: &Time) -> ReplicaSetStatus {
    let count = |is: &dyn Fn(&Pod) -> bool| pods.active.iter().filter(|pod| is(pod)).count();
    let written = |count: usize| Some(count as i32).filter(|count| *count != 0);
    ReplicaSetStatus {
        replicas: pods.active.len() as i32,
        fully_labeled_replicas: written(count(&|pod| is_fully_labeled(set, pod))),
        ready_replicas: written(count(&pod::is_ready)),
        available_replicas: written(count(&|pod| pod::is_available(pod, min_ready_seconds(set), now.0))),
        terminating_replicas: Some(pods.terminating as i32),
        observed_generation: set.metadata.generation,
        conditions: conditions(set, pods.active.len(), failure, now),
    }
}

/// When the next pod will have been ready for long enough.
pub(crate) fn next_check(set: &ReplicaSet, pods: &Pods, now: &Time) -> Option<Duration> {
    let at = pods.active.iter().filter_map(|pod| pod::available_at(pod, min_ready_seconds(set)));
    let next = at.filter(|at| *at > now.0).min()?;
    Duration::try_from(next.duration_since(now.0)).ok()
}

fn min_ready_seconds(set: &ReplicaSet) -> i32 {
    set.spec.as_ref().and_then(|spec| spec.min_ready_seconds).unwrap_or_default()
}

fn is_fully_labeled(set: &ReplicaSet, pod: &Pod) -> bool {
    let template = set
        .spec
        .as_ref()
        .and_then(|spec| spec.template.as_ref()?.metadata.as_ref()?.labels.as_ref());
    let has = |name: &String| pod.metadata.labels.as_ref().and_then(|labels| labels.get(name));
    template.into_iter().flatten().all(|(name, value)| has(name) == Some(value))
}

fn conditions(set: &ReplicaSet, pods: usize, failure: Option<&str>, now: &Time) -> Option<Vec<ReplicaSetCondition>> {
    let known = set.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
    let (failed, mut conditions): (Vec<_>, Vec<_>) = known.into_iter().partition(|known| known.type_ == FAILURE);
    let wanted = set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
    let reason = if (pods as i32) < wanted {
        "FailedCreate"
    } else {
        "FailedDelete"
    };
    let condition = failure.map(|message| match failed.into_iter().next() {
        Some(failed) => failed,
        None => ReplicaSetCondition {
            type_: FAILURE.into(),
            status: "True".into(),
            reason: Some(reason.into()),
            message: Some(message.into()),
            last_transition_time: Some(now.clone()),
        },
    });
    conditions.extend(condition);
    (!conditions.is_empty()).then_some(conditions)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn now() -> Time {
        Time("2026-01-01T00:01:00Z".parse().unwrap())
    }

    fn set(spec: Value) -> ReplicaSet {
        let template = json!({ "metadata": { "labels": { "app": "web" } } });
        let mut set =
            json!({ "metadata": { "generation": 4 }, "spec": { "replicas": 2, "selector": {}, "template": template } });
        set["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        serde_json::from_value(set).unwrap()
    }

    fn pod(label: &str, ready_since: Option<&str>, deleted: Option<&str>) -> Arc<Pod> {
        let status = if ready_since.is_some() { "True" } else { "False" };
        let ready = json!({ "type": "Ready", "status": status, "lastTransitionTime": ready_since });
        let metadata = json!({ "labels": { "app": label }, "deletionTimestamp": deleted });
        let pod = json!({ "metadata": metadata, "status": { "phase": "Running", "conditions": [ready] } });
        Arc::new(serde_json::from_value(pod).unwrap())
    }

    #[test]
    fn pods_are_counted_by_how_far_they_have_come() {
        let pods = Pods::of(vec![
            pod("web", Some("2026-01-01T00:00:00Z"), None),
            pod("web", Some("2026-01-01T00:00:58Z"), None),
            pod("other", None, None),
            pod("web", Some("2026-01-01T00:00:00Z"), Some("2026-01-01T00:00:59Z")),
        ]);
        let set = set(json!({ "minReadySeconds": 10 }));
        let status = of(&set, &pods, None, &now());
        assert_eq!((status.replicas, status.fully_labeled_replicas), (3, Some(2)));
        assert_eq!((status.ready_replicas, status.available_replicas), (Some(2), Some(1)));
        assert_eq!((status.terminating_replicas, status.observed_generation), (Some(1), Some(4)));
        assert_eq!(next_check(&set, &pods, &now()), Some(Duration::from_secs(8)));
    }

    #[test]
    fn a_pod_that_need_not_wait_is_available_as_soon_as_it_is_ready() {
        let pods = Pods::of(vec![pod("web", Some("2026-01-01T00:01:00Z"), None)]);
        assert_eq!(of(&set(json!({})), &pods, None, &now()).available_replicas, Some(1));
        assert_eq!(next_check(&set(json!({})), &pods, &now()), None);
    }

    #[test]
    fn a_failure_is_told_until_it_is_over() {
        let mut set = set(json!({}));
        let failed = of(&set, &Pods::default(), Some("no room"), &now());
        let condition = failed.conditions.clone().unwrap().remove(0);
        assert_eq!(
            (condition.reason.as_deref(), condition.message.as_deref()),
            (Some("FailedCreate"), Some("no room"))
        );
        set.status = Some(failed.clone());
        assert_eq!(of(&set, &Pods::default(), Some("still none"), &now()), failed, "the first failure stands");
        assert_eq!(of(&set, &Pods::default(), None, &now()).conditions, None);
    }
}
