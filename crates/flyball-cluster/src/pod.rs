//! What controllers ask about a pod.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{
    api::core::v1::{Pod, PodCondition},
    apimachinery::pkg::apis::meta::v1::Time,
};

/// The phase, `Pending` until somebody says otherwise.
pub(crate) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("Pending")
}

/// Whether all containers have ended and none starts again.
pub(crate) fn has_ended(pod: &Pod) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

/// Whether a pod counts as a replica: it has not ended, and nobody wants it gone.
pub(crate) fn is_active(pod: &Pod) -> bool {
    !has_ended(pod) && pod.metadata.deletion_timestamp.is_none()
}

/// The node that a pod is bound to.
pub(crate) fn node(pod: &Pod) -> Option<&str> {
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
    node.filter(|node| !node.is_empty())
}

/// A condition of a pod's status.
pub(crate) fn condition<'a>(pod: &'a Pod, type_: &str) -> Option<&'a PodCondition> {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().find(|condition| condition.type_ == type_)
}

/// Whether a pod can serve.
pub(crate) fn is_ready(pod: &Pod) -> bool {
    condition(pod, "Ready").is_some_and(|condition| condition.status == "True")
}

/// Since when a pod has been able to serve.
pub(crate) fn ready_since(pod: &Pod) -> Option<Timestamp> {
    let ready = condition(pod, "Ready").filter(|condition| condition.status == "True")?;
    ready.last_transition_time.as_ref().map(|Time(since)| *since)
}

/// When a pod will have been ready for so many seconds; none if it is not ready.
// pkg/api/v1/pod/util.go, IsPodAvailable
pub(crate) fn available_at(pod: &Pod, min_ready_seconds: i32) -> Option<Timestamp> {
    if min_ready_seconds == 0 {
        return is_ready(pod).then_some(Timestamp::MIN);
    }
    let at = ready_since(pod)?.checked_add(SignedDuration::from_secs(min_ready_seconds.into()));
    at.ok()
}

/// Whether a pod has been ready for long enough.
pub(crate) fn is_available(pod: &Pod, min_ready_seconds: i32, now: Timestamp) -> bool {
    available_at(pod, min_ready_seconds).is_some_and(|at| at <= now)
}
