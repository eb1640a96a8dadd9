//! The status of a StatefulSet: how many pods it has of which revision, and how far they have come.

use super::{identity, min_ready_seconds, replica::Templates};
use crate::pod;
use jiff::Timestamp;
use k8s_openapi::api::{
    apps::v1::{StatefulSet, StatefulSetStatus},
    core::v1::Pod,
};
use std::sync::Arc;

// stateful_set_control.go, updateStatus; stateful_set_utils.go, completeRollingUpdate
pub(super) fn of(
    set: &StatefulSet,
    templates: &Templates,
    collisions: i32,
    pods: &[Arc<Pod>],
    deleted_for_update: bool,
    now: Timestamp,
) -> StatefulSetStatus {
    let count = |is: &dyn Fn(&Pod) -> bool| pods.iter().filter(|pod| is(pod)).count() as i32;
    let is_ready = |pod: &Pod| pod::phase(pod) == "Running" && pod::is_ready(pod);
    let is_of =
        |revision: &str, pod: &Pod| pod.metadata.deletion_timestamp.is_none() && identity::revision(pod) == revision;
    let (current, updated) = (&*templates.current.0, &*templates.updated.0);
    let (replicas, ready) = (pods.len() as i32, count(&is_ready));
    let available = count(&|pod| is_ready(pod) && pod::is_available(pod, min_ready_seconds(set), now));
    let mut current_replicas = count(&|pod| is_of(current, pod));
    let updated_replicas = count(&|pod| is_of(updated, pod));
    let strategy = set.spec.as_ref().and_then(|spec| spec.update_strategy.clone()).unwrap_or_default();
    let is_complete = strategy.type_.as_deref() != Some("OnDelete")
        && updated_replicas == replicas
        && ready == replicas
        && !deleted_for_update;
    let partition = strategy.rolling_update.and_then(|rolling| rolling.partition).unwrap_or_default();
    let mut revision = current;
    if is_complete && (partition == 0 || current == updated) {
        (revision, current_replicas) = (updated, updated_replicas);
    }
    let written = |count: i32| Some(count).filter(|count| *count != 0);
    StatefulSetStatus {
        observed_generation: set.metadata.generation,
        replicas,
        ready_replicas: written(ready),
        available_replicas: Some(available),
        current_replicas: written(current_replicas),
        updated_replicas: written(updated_replicas),
        current_revision: Some(revision.into()),
        update_revision: Some(updated.into()),
        collision_count: Some(collisions),
        conditions: set.status.as_ref().and_then(|status| status.conditions.clone()),
    }
}
