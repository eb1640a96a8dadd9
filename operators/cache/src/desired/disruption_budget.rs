//! The protection of a Cache during evictions.

use super::{labelled, selector};
use crate::api::Cache;
use k8s_openapi::{
    api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec},
    apimachinery::pkg::util::intstr::IntOrString,
};

/// At most one pod is evicted at a time, if there are several.
pub fn disruption_budget(cache: &Cache) -> Option<PodDisruptionBudget> {
    let spec = PodDisruptionBudgetSpec {
        max_unavailable: Some(IntOrString::Int(1)),
        selector: Some(selector(cache)),
        ..Default::default()
    };
    let budget = PodDisruptionBudget {
        metadata: labelled(cache),
        spec: Some(spec),
        ..Default::default()
    };
    (cache.spec.replicas > 1).then_some(budget)
}
