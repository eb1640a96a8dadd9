//! How many pods a resource metric asks for, from what pods use.

use super::{Failure, Proposal};
use crate::{
    behaviour::{Behaviours, Usage},
    pod,
    resources::{self, ONE},
};
use jiff::Timestamp;
use k8s_openapi::{
    api::{
        autoscaling::v2::{
            ContainerResourceMetricStatus, MetricStatus, MetricTarget, MetricValueStatus, ResourceMetricStatus,
        },
        core::v1::Pod,
    },
    apimachinery::pkg::api::resource::Quantity,
};
use kube::ResourceExt;
use std::{collections::BTreeMap, sync::Arc};

/// Reads what simulated pods use.
pub(super) struct Meter<'a> {
    pub(super) behaviours: &'a Behaviours,
    pub(super) now: Timestamp,
    /// How far below and above the target usage may be, as shares.
    pub(super) tolerance: (f64, f64),
}

impl Meter<'_> {
    /// The proposal of a resource of all containers of a pod, or of one.
    // pkg/controller/podautoscaler/replica_calculator.go, GetResourceReplicas, GetRawResourceReplicas
    pub(super) fn resource(
        &self,
        resource: &str,
        container: Option<&str>,
        target: &MetricTarget,
        pods: &[Arc<Pod>],
        current: i32,
    ) -> Result<Proposal, Failure> {
        let (reason, what) = match container {
            Some(_) => ("FailedGetContainerResourceMetric", "container resource"),
            None => ("FailedGetResourceMetric", "resource"),
        };
        let (kind, form) = match target.average_utilization {
            Some(_) => ("utilization", "utilization (percentage of request)"),
            None => ("usage", ""),
        };
        let failed = |why: String| (reason, format!("failed to get {resource} {kind}: {why}"));
        let living: Vec<_> = pods.iter().filter(|pod| pod::is_active(pod)).collect();
        let (ready, unready): (Vec<_>, Vec<_>) = living.iter().copied().partition(|pod| pod::is_ready(pod));
        let measured = ready
            .iter()
            .filter_map(|pod| Some((pod.name_any(), self.used(pod, resource, container)?)));
        let used: BTreeMap<_, _> = measured.collect();
        if used.is_empty() {
            let waits = ready.is_empty() && !living.is_empty();
            return Err(failed(no_metrics(resource, waits)));
        }
        let missing = ready.iter().map(|pod| pod.name_any()).filter(|name| !used.contains_key(name));
        let missing: Vec<_> = missing.collect();
        let requests = requests_of(&living, resource, container, target).map_err(failed)?;
        let goal = Goal::of(target);
        let ratio = goal.ratio(&used, &requests);
        let average = used.values().sum::<i128>() / used.len() as i128;
        let requested: i128 = used.keys().filter_map(|name| requests.get(name)).sum();
        let utilization = (used.values().sum::<i128>() * 100 / requested.max(1)) as i32;
        let unready: Vec<_> = unready.iter().map(|pod| pod.name_any()).collect();
        let replicas = self.replicas(ratio, goal, used, &requests, (&missing, &unready), current);
        let value = MetricValueStatus {
            average_utilization: target.average_utilization.map(|_| utilization),
            average_value: Some(quantity(resource, average)),
            value: None,
        };
        Ok(Proposal {
            replicas,
            name: format!("{resource} {what} {form}").trim_end().to_owned(),
            status: status(resource, container, value),
        })
    }

    /// The size that a ratio of usage to target asks for; pods without metrics are taken to change as little as possible.
    fn replicas(
        &self,
        ratio: f64,
        goal: Goal,
        mut used: BTreeMap<String, i128>,
        requests: &BTreeMap<String, i128>,
        (missing, unready): (&[String], &[String]),
        current: i32,
    ) -> i32 {
        let (below, above) = self.tolerance;
        let is_within = |ratio: f64| (1.0 - below..=1.0 + above).contains(&ratio);
        let grows_with_unready = !unready.is_empty() && ratio > 1.0;
        if !grows_with_unready && missing.is_empty() {
            return match is_within(ratio) {
                true => current,
                false => (ratio * used.len() as f64).ceil() as i32,
            };
        }
        for name in missing {
            let full = goal.full(requests.get(name).copied().unwrap_or_default());
            used.insert(name.clone(), if ratio < 1.0 { full } else { 0 });
        }
        if grows_with_unready {
            used.extend(unready.iter().map(|name| (name.clone(), 0)));
        }
        let next = goal.ratio(&used, requests);
        if is_within(next) || (ratio < 1.0) != (next < 1.0) {
            return current;
        }
        let replicas = (next * used.len() as f64).ceil() as i32;
        if (next < 1.0 && replicas > current) || (next > 1.0 && replicas < current) {
            return current;
        }
        replicas
    }

    /// What a pod uses now; none if it is not told.
    fn used(&self, pod: &Pod, resource: &str, container: Option<&str>) -> Option<i128> {
        let behaviour = self.behaviours.of(pod).ok()?;
        let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
        let mut sum = None;
        for status in statuses.iter().filter(|status| container.is_none_or(|name| name == status.name)) {
            let Some(since) = status.state.as_ref().and_then(|state| state.running.as_ref()?.started_at.clone()) else {
                continue;
            };
            let behaviour = behaviour.of_container(&status.name);
            let amounts = match resource {
                "cpu" => &behaviour.cpu,
                "memory" => &behaviour.memory,
                _ => return None,
            };
            if let Some(amount) = at(amounts, since.0, self.now) {
                sum = Some(sum.unwrap_or(0) + amount);
            }
        }
        sum
    }
}

fn no_metrics(resource: &str, pods_wait: bool) -> String {
    match pods_wait {
        true => "did not receive metrics for targeted pods (pods might be unready)".into(),
        false => {
            format!("unable to get metrics for resource {resource}: no metrics returned from resource metrics API")
        }
    }
}

/// What each pod requests; a share of nothing is an error.
fn requests_of(
    pods: &[&Arc<Pod>],
    resource: &str,
    container: Option<&str>,
    target: &MetricTarget,
) -> Result<BTreeMap<String, i128>, String> {
    let mut requests = BTreeMap::new();
    for pod in pods {
        let request = requested(pod, resource, container);
        if target.average_utilization.is_some() && request == 0 {
            let first = pod.spec.as_ref().and_then(|spec| spec.containers.first());
            let first = first.map_or("", |container| container.name.as_str());
            let name = pod.name_any();
            return Err(format!("missing request for {resource} in container {first} of Pod {name}"));
        }
        requests.insert(pod.name_any(), request);
    }
    Ok(requests)
}

/// A metric as an autoscaler's status has it.
fn status(resource: &str, container: Option<&str>, current: MetricValueStatus) -> MetricStatus {
    let name = resource.to_owned();
    match container {
        None => MetricStatus {
            type_: "Resource".into(),
            resource: Some(ResourceMetricStatus { current, name }),
            ..MetricStatus::default()
        },
        Some(container) => MetricStatus {
            type_: "ContainerResource".into(),
            container_resource: Some(ContainerResourceMetricStatus { container: container.into(), current, name }),
            ..MetricStatus::default()
        },
    }
}

/// The last amount that has begun.
fn at(amounts: &[Usage], since: Timestamp, now: Timestamp) -> Option<i128> {
    let begun = |usage: &&Usage| {
        let from = jiff::SignedDuration::try_from(usage.from).unwrap_or_default();
        since.checked_add(from).is_ok_and(|from| from <= now)
    };
    let last = amounts.iter().filter(begun).max_by_key(|usage| usage.from)?;
    Some(resources::nanos(&Quantity(last.amount.clone())))
}

fn requested(pod: &Pod, resource: &str, container: Option<&str>) -> i128 {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let named = containers.filter(|it| container.is_none_or(|name| name == it.name));
    let requests = named.filter_map(|it| it.resources.as_ref()?.requests.as_ref()?.get(resource));
    requests.map(resources::nanos).sum()
}

/// What pods should use: a share of their requests, or an amount.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Goal {
    Percent(i128),
    Amount(i128),
}

impl Goal {
    fn of(target: &MetricTarget) -> Goal {
        match (target.average_utilization, &target.average_value) {
            (Some(percent), _) => Goal::Percent(percent.into()),
            (None, Some(amount)) => Goal::Amount(resources::nanos(amount).max(1)),
            (None, None) => Goal::Amount(i128::MAX),
        }
    }

    fn ratio(self, used: &BTreeMap<String, i128>, requests: &BTreeMap<String, i128>) -> f64 {
        let sum = used.values().sum::<i128>();
        match self {
            Goal::Percent(percent) => {
                let requested: i128 = used.keys().filter_map(|name| requests.get(name)).sum();
                let utilization = sum * 100 / requested.max(1);
                utilization as f64 / percent as f64
            }
            Goal::Amount(amount) => (sum / used.len().max(1) as i128) as f64 / amount as f64,
        }
    }

    /// What a pod counts for on the way down if nothing is known of it.
    fn full(self, request: i128) -> i128 {
        match self {
            Goal::Percent(percent) => request * percent.max(100) / 100,
            Goal::Amount(amount) => amount,
        }
    }
}

/// An amount as upstream prints it: CPU in thousandths, the rest in whole numbers.
fn quantity(resource: &str, nanos: i128) -> Quantity {
    match resource {
        "cpu" if nanos % ONE != 0 => Quantity(format!("{}m", nanos / (ONE / 1000))),
        _ => Quantity((nanos / ONE).to_string()),
    }
}
