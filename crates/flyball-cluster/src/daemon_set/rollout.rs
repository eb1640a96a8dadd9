//! Replaces the pods of an old template, node by node.

use super::{ByNode, min_ready_seconds, pods, spec};
use crate::{history::HASH_LABEL, pod};
use flyball::{Context, Result};
use k8s_openapi::{
    api::{
        apps::v1::DaemonSet,
        core::v1::{Node, Pod},
    },
    apimachinery::pkg::util::intstr::IntOrString,
};
use kube::ResourceExt;
use std::sync::Arc;

/// How many nodes may be without an available pod, or with two pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) surge: usize,
    pub(super) unavailable: usize,
}

/// The limits for so many nodes; if both come to nothing, one may be unavailable.
// pkg/controller/daemon/util/daemonset_util.go, SurgeCount, UnavailableCount
pub(super) fn limits(set: &DaemonSet, nodes: usize) -> Limits {
    let rolling = spec(set).update_strategy.and_then(|strategy| strategy.rolling_update).unwrap_or_default();
    let count = |limit: Option<&IntOrString>, otherwise: usize| match limit {
        Some(IntOrString::Int(limit)) => usize::try_from(*limit).unwrap_or_default(),
        Some(IntOrString::String(percent)) => {
            let percent: usize = percent.trim_end_matches('%').parse().unwrap_or_default();
            (nodes * percent).div_ceil(100)
        }
        None => otherwise,
    };
    let surge = count(rolling.max_surge.as_ref(), 0);
    let unavailable = count(rolling.max_unavailable.as_ref(), usize::from(surge == 0));
    let unavailable = if surge == 0 { unavailable.max(1) } else { unavailable };
    Limits { surge, unavailable }
}

/// Deletes old pods, or makes new ones beside them, as far as the limits allow.
// pkg/controller/daemon/update.go, rollingUpdate
pub(super) async fn roll(set: &DaemonSet, nodes: &[Arc<Node>], pods: &ByNode, hash: &str, ctx: &Context) -> Result<()> {
    let wanted = nodes.iter().filter(|node| pods::should_run(set, node).0).count();
    let limits = limits(set, wanted);
    let now = ctx.now().0;
    let is_available = |pod: &Pod| pod::is_available(pod, min_ready_seconds(set), now);
    let (mut unavailable, mut surging) = (0, 0);
    let (mut broken, mut candidates) = (Vec::new(), Vec::new());
    for (node, pods) in pods {
        let is_new = |pod: &&&Arc<Pod>| pod.labels().get(HASH_LABEL).is_some_and(|label| label == hash);
        let living = pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
        let (new, old): (Vec<_>, Vec<_>) = living.partition(|pod| is_new(&pod));
        match (new.first(), old.first()) {
            (None, None) => unavailable += 1,
            (Some(_), Some(_)) => (unavailable, surging) = (unavailable + 1, surging + 1),
            (Some(new), None) => unavailable += usize::from(!is_available(new)),
            (None, Some(old)) if !is_available(old) => {
                unavailable += 1;
                broken.push((node, *old));
            }
            (None, Some(old)) => candidates.push((node, *old)),
        }
    }
    if limits.surge > 0 {
        let left = limits.surge.saturating_sub(surging);
        for (node, _) in broken.into_iter().chain(candidates.into_iter().take(left)) {
            pods::create(set, node, hash, ctx).await?;
        }
        return Ok(());
    }
    let left = limits.unavailable.saturating_sub(unavailable);
    for (_, old) in broken.into_iter().chain(candidates.into_iter().take(left)) {
        pods::delete(old, ctx).await?;
    }
    Ok(())
}
