//! The names and labels by which a StatefulSet tells its pods apart.

use crate::history::HASH_LABEL;
use k8s_openapi::api::{apps::v1::StatefulSet, core::v1::Pod};
use kube::ResourceExt;

pub(super) const POD_NAME: &str = "statefulset.kubernetes.io/pod-name";
pub(super) const POD_INDEX: &str = "apps.kubernetes.io/pod-index";

/// The name of the pod with an ordinal.
pub(super) fn pod_name(set: &StatefulSet, ordinal: i32) -> String {
    format!("{}-{ordinal}", set.name_any())
}

/// The ordinal of a pod, if its name has one.
// stateful_set_utils.go, getParentNameAndOrdinal: ^(.*)-([0-9]+)$
pub(super) fn ordinal(name: &str) -> Option<i32> {
    let (_, ordinal) = name.rsplit_once('-')?;
    ordinal.bytes().all(|byte| byte.is_ascii_digit()).then(|| ordinal.parse().ok())?
}

/// Whether a pod has the name of a set's pod.
pub(super) fn is_member(set: &StatefulSet, name: &str) -> bool {
    ordinal(name).is_some() && name.rsplit_once('-').map(|(parent, _)| parent) == Some(&set.name_any())
}

/// The first ordinal, and the one after the last.
pub(super) fn range(set: &StatefulSet) -> std::ops::Range<i32> {
    let spec = set.spec.as_ref();
    let start = spec.and_then(|spec| spec.ordinals.as_ref()?.start).unwrap_or_default();
    start..start.saturating_add(spec.and_then(|spec| spec.replicas).unwrap_or(1))
}

/// Gives a pod the name and labels of an ordinal.
pub(super) fn set_identity(pod: &mut Pod, set: &StatefulSet, ordinal: i32) {
    let name = pod_name(set, ordinal);
    let labels = pod.metadata.labels.get_or_insert_default();
    labels.insert(POD_NAME.into(), name.clone());
    labels.insert(POD_INDEX.into(), ordinal.to_string());
    pod.metadata.name = Some(name);
}

/// Whether a pod has the labels of its ordinal.
pub(super) fn matches(pod: &Pod) -> bool {
    pod.labels().get(POD_NAME) == Some(&pod.name_any())
}

/// The revision that a pod was made of.
pub(super) fn revision(pod: &Pod) -> &str {
    pod.labels().get(HASH_LABEL).map_or("", String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ordinal_is_the_number_after_the_last_dash() {
        assert_eq!(
            ["web-0", "a-b-12", "web", "web-", "web-x", "web-+1"].map(ordinal),
            [Some(0), Some(12), None, None, None, None]
        );
    }
}
