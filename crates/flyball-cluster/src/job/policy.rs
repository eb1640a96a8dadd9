//! When a Job fails or succeeds before all of its pods have: its pod failure policy and its success policy.

use super::{has_failed, indexes::Indexes};
use k8s_openapi::api::{
    batch::v1::{Job, PodFailurePolicyOnExitCodesRequirement, PodFailurePolicyRule, SuccessPolicy},
    core::v1::{ContainerStatus, Pod},
};
use kube::ResourceExt;
use std::sync::Arc;

/// The first rule that a failed pod matches: its place, its action and what about the pod matches.
// pkg/controller/job/pod_failure_policy.go, matchPodFailurePolicy
pub(super) fn matching<'a>(job: &'a Job, pod: &Pod) -> Option<(usize, &'a str, String)> {
    let rules = &job.spec.as_ref()?.pod_failure_policy.as_ref()?.rules;
    let found = rules.iter().enumerate().find_map(|(index, rule)| Some((index, rule, reason(rule, pod)?)));
    found.map(|(index, rule, reason)| (index, rule.action.as_str(), reason))
}

fn reason(rule: &PodFailurePolicyRule, pod: &Pod) -> Option<String> {
    let (namespace, name) = (pod.namespace().unwrap_or_default(), pod.name_any());
    let status = pod.status.as_ref()?;
    if let Some(wanted) = &rule.on_exit_codes {
        let statuses = status.container_statuses.iter().chain(&status.init_container_statuses).flatten();
        let (container, code) = statuses.into_iter().find_map(|status| Some((&status.name, code(status, wanted)?)))?;
        return Some(format!("Container {container} for pod {namespace}/{name} failed with exit code {code}"));
    }
    let wanted = rule.on_pod_conditions.as_ref()?;
    let conditions = status.conditions.iter().flatten();
    let found = conditions.into_iter().find(|condition| {
        let is = |status: Option<&str>| status.unwrap_or("True") == condition.status;
        wanted
            .iter()
            .any(|wanted| wanted.type_ == condition.type_ && is(wanted.status.as_deref()))
    })?;
    Some(format!("Pod {namespace}/{name} has condition {}", found.type_))
}

fn code(status: &ContainerStatus, wanted: &PodFailurePolicyOnExitCodesRequirement) -> Option<i32> {
    let code = status.state.as_ref()?.terminated.as_ref()?.exit_code;
    let named = wanted.container_name.as_ref().is_none_or(|name| *name == status.name);
    let listed = wanted.values.contains(&code);
    let matches = match &*wanted.operator {
        "In" => listed,
        "NotIn" => !listed,
        _ => false,
    };
    (named && code != 0 && matches).then_some(code)
}

/// Why a pod's failure fails the whole Job, if one does.
pub(super) fn failure_of_job(job: &Job, pods: &[Arc<Pod>]) -> Option<String> {
    let failed = pods.iter().filter(|pod| has_failed(pod, job));
    failed.into_iter().find_map(|pod| match matching(job, pod)? {
        (index, action @ "FailJob", reason) => Some(format!("{reason} matching {action} rule at index {index}")),
        _ => None,
    })
}

/// Whether a failure counts towards the backoff limit.
pub(super) fn counts(job: &Job, pod: &Pod) -> bool {
    !matches!(matching(job, pod), Some((_, "Ignore", _)))
}

/// The message of the first rule that succeeded indexes meet.
// pkg/controller/job/success_policy.go, matchSuccessPolicy
pub(super) fn success(policy: Option<&SuccessPolicy>, completions: i32, succeeded: &Indexes) -> Option<String> {
    if succeeded.len() == 0 {
        return None;
    }
    let met = policy?.rules.iter().position(|rule| {
        let enough = |count: usize| rule.succeeded_count.is_some_and(|wanted| count as i32 >= wanted);
        match &rule.succeeded_indexes {
            Some(wanted) => {
                let wanted = Indexes::parse(wanted, completions);
                let common = wanted.in_common(succeeded);
                wanted.len() > 0 && (common == wanted.len() || enough(common))
            }
            None => enough(succeeded.len()),
        }
    });
    met.map(|index| format!("Matched rules at index {index}"))
}
