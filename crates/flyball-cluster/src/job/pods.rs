//! Makes and deletes the pods of a Job, and waits longer after each failure.

use super::{
    NAME, Sync, TRACKING, event,
    indexes::{self, FAILURES, IGNORED_FAILURES, INDEX},
    is_indexed, is_suspended, is_tracked, policy, replaces_only_failed, spec, written,
};
use crate::{pod, refusal, replica_set::rank, template};
use flyball::{Context, Event, Result};
use futures::future::join_all;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{
    api::{
        batch::v1::JobSpec,
        core::v1::{Container, EnvVar, EnvVarSource, ObjectFieldSelector, Pod, PodTemplateSpec},
    },
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions},
};
use serde_json::json;
use std::{collections::BTreeSet, sync::Arc, time::Duration};

/// The most pods that are made or deleted in one reconcile.
const BURST: usize = 500;
const MIN_BACKOFF: Duration = Duration::from_secs(10);
const MAX_BACKOFF: Duration = Duration::from_secs(600);

/// How often pods have failed since one succeeded, and when last.
#[derive(Clone, Debug, Default)]
pub(super) struct Backoff {
    failures: u32,
    last_failure: Option<Timestamp>,
    seen: BTreeSet<String>,
}

impl Backoff {
    /// The same after more pods have ended.
    // backoff_utils.go, newBackoffRecord
    pub(super) fn after(mut self, succeeded: &[Arc<Pod>], failed: &[Arc<Pod>]) -> Backoff {
        let last_success = succeeded.iter().map(|pod| finished_at(pod)).max();
        if last_success.is_some() {
            (self.failures, self.last_failure) = (0, None);
        }
        for pod in failed {
            let at = finished_at(pod);
            let is_new = pod.metadata.uid.clone().is_some_and(|uid| self.seen.insert(uid));
            if is_new && last_success.is_none_or(|success| at > success) {
                self.failures += 1;
                self.last_failure = self.last_failure.max(Some(at));
            }
        }
        self
    }

    fn left(&self, now: Timestamp) -> Option<Duration> {
        left(self.failures, self.last_failure?, now)
    }
}

/// How long to wait after so many failures.
fn left(failures: u32, last: Timestamp, now: Timestamp) -> Option<Duration> {
    let exponent = failures.checked_sub(1)?.min(10);
    let backoff = (MIN_BACKOFF * 2_u32.pow(exponent)).min(MAX_BACKOFF);
    let until = last.checked_add(SignedDuration::try_from(backoff).ok()?).ok()?;
    Duration::try_from(until.duration_since(now)).ok().filter(|left| !left.is_zero())
}

/// When a pod ended, as far as it says.
// backoff_utils.go, getFinishedTime
fn finished_at(pod: &Pod) -> Timestamp {
    let status = pod.status.as_ref();
    let containers = status.and_then(|status| status.container_statuses.as_ref()).into_iter().flatten();
    let ends =
        containers.map(|status| status.state.as_ref()?.terminated.as_ref()?.finished_at.as_ref().map(|time| time.0));
    let ends: Option<Vec<_>> = ends.collect();
    let unready = pod::condition(pod, "Ready").filter(|condition| condition.status == "False");
    let deleted = pod.metadata.deletion_timestamp.as_ref().map(|Time(at)| {
        let grace = pod.metadata.deletion_grace_period_seconds.unwrap_or_default();
        at.checked_sub(SignedDuration::from_secs(grace)).unwrap_or(*at)
    });
    let created = || pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
    ends.and_then(|ends| ends.into_iter().max())
        .or_else(|| unready?.last_transition_time.as_ref().map(|time| time.0))
        .or(deleted)
        .or_else(created)
        .unwrap_or(Timestamp::MIN)
}

/// Whether containers of a Job that starts them again have been started too often.
pub(super) fn restarts_exceed(spec: &JobSpec, pods: &[Arc<Pod>], limit: i32) -> bool {
    let policy = spec.template.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref());
    if policy != Some("OnFailure") {
        return false;
    }
    let running = pods.iter().filter(|pod| matches!(pod::phase(pod), "Running" | "Pending"));
    let restarts = running.filter_map(|pod| pod.status.as_ref()).flat_map(|status| {
        let statuses = status.container_statuses.iter().chain(&status.init_container_statuses);
        statuses.flatten().map(|status| status.restart_count)
    });
    match (restarts.sum::<i32>(), limit) {
        (restarts, 0) => restarts > 0,
        (restarts, limit) => restarts >= limit,
    }
}

/// Deletes the pods of a Job that has ended. Their finalizers stay until they are counted.
pub(super) async fn delete_active(sync: &Sync, ctx: &Context) -> Result<()> {
    let deleted = join_all(sync.active.iter().map(|pod| delete(pod, ctx))).await;
    deleted.into_iter().collect()
}

/// Makes as many pods as are lacking or deletes as many as are too many; says when to look again.
// job_controller.go, manageJob
pub(super) async fn manage(sync: &mut Sync, ctx: &Context) -> Result<Option<Duration>> {
    let spec = spec(&sync.job);
    let active = sync.active.len() as i32;
    let parallelism = spec.parallelism.unwrap_or(1);
    let wanted = match spec.completions {
        _ if is_suspended(&sync.job) => 0,
        None if sync.succeeded > 0 => active,
        None => parallelism,
        Some(completions) => (completions - sync.succeeded).clamp(0, parallelism),
    };
    let surplus = surplus(sync, (active - wanted).max(0) as usize, ctx.now().0);
    if !surplus.is_empty() {
        for pod in &surplus {
            untrack(pod, ctx).await?;
            delete(pod, ctx).await?;
        }
        let ready = surplus.iter().filter(|pod| pod::is_ready(pod)).count() as i32;
        sync.status.active = written(active - surplus.len() as i32);
        sync.status.ready = sync.status.ready.map(|known| known - ready);
        sync.terminating += surplus.len() as i32;
        return Ok(None);
    }
    let terminating = if replaces_only_failed(&sync.job) {
        sync.terminating
    } else {
        0
    };
    let lacking = (wanted - terminating - active).clamp(0, BURST as i32) as usize;
    if lacking == 0 {
        return Ok(None);
    }
    if spec.backoff_limit_per_index.is_none()
        && let Some(left) = sync.backoff.left(sync.now)
    {
        return Ok(Some(left));
    }
    let (places, wait) = places(sync, &spec, lacking);
    let (mut created, mut batch, mut rest) = (0, 1, places.as_slice());
    let mut failure = None;
    while !rest.is_empty() && failure.is_none() {
        let (now, later) = rest.split_at(batch.min(rest.len()));
        let results = join_all(now.iter().map(|place| create(sync, &spec, *place, ctx))).await;
        created += results.iter().filter(|result| result.is_ok()).count();
        failure = results.into_iter().find_map(Result::err);
        (rest, batch) = (later, batch * 2);
    }
    sync.status.active = written(active + created as i32);
    match failure {
        Some(error) => Err(error),
        None => Ok(wait),
    }
}

/// Where pods are lacking: the lowest free indexes, or anywhere. With a limit per index each waits by itself.
// indexed_job_utils.go, firstPendingIndexes
fn places(sync: &Sync, spec: &JobSpec, lacking: usize) -> (Vec<Option<i32>>, Option<Duration>) {
    if !is_indexed(&sync.job) {
        return (vec![None; lacking], None);
    }
    let terminating = sync
        .pods
        .iter()
        .filter(|pod| pod.metadata.deletion_timestamp.is_some() && !pod::has_ended(pod));
    let kept = terminating.filter(|_| replaces_only_failed(&sync.job));
    let taken: BTreeSet<i32> = sync.active.iter().chain(kept).filter_map(|pod| indexes::of(pod)).collect();
    let is_free = |index: &i32| {
        let failed = sync.failed_indexes.as_ref().is_some_and(|failed| failed.contains(*index));
        !taken.contains(index) && !sync.succeeded_indexes.contains(*index) && !failed
    };
    let free = (0..spec.completions.unwrap_or_default()).filter(is_free).take(lacking);
    if spec.backoff_limit_per_index.is_none() {
        return (free.map(Some).collect(), None);
    }
    let (mut now, mut wait) = (Vec::new(), None);
    for index in free {
        let last = last_failed(sync, index);
        let failures = last.map(|pod| indexes::failures(pod, FAILURES) + indexes::failures(pod, IGNORED_FAILURES) + 1);
        match last.and_then(|pod| left(failures.unwrap_or_default() as u32, finished_at(pod), sync.now)) {
            Some(left) => super::earlier(&mut wait, Some(left)),
            None => now.push(Some(index)),
        }
    }
    (now, wait)
}

/// The pod of an index that failed last and is still kept, for the count that it carries.
pub(super) fn last_failed(sync: &Sync, index: i32) -> Option<&Arc<Pod>> {
    let failed = sync.pods.iter().filter(|pod| is_tracked(pod) && super::has_failed(pod, &sync.job));
    let of_index = failed.filter(|pod| indexes::of(pod) == Some(index));
    of_index.max_by_key(|pod| indexes::failures(pod, FAILURES) + indexes::failures(pod, IGNORED_FAILURES))
}

/// The pods that are too many: with an index twice or beyond the last, and those that have come least far.
fn surplus(sync: &Sync, at_least: usize, now: Timestamp) -> Vec<Arc<Pod>> {
    let (mut surplus, mut left) = (Vec::new(), sync.active.clone());
    rank::rank(&mut left, &[], now);
    if is_indexed(&sync.job) {
        let completions = spec(&sync.job).completions.unwrap_or_default();
        let mut seen = BTreeSet::new();
        left.reverse();
        left.retain(|pod| {
            let kept = indexes::of(pod).is_some_and(|index| index < completions && seen.insert(index));
            if !kept {
                surplus.push(pod.clone());
            }
            kept
        });
        left.reverse();
    }
    surplus.extend(left.into_iter().take(at_least.saturating_sub(surplus.len())));
    surplus.truncate(BURST);
    surplus
}

async fn create(sync: &Sync, spec: &JobSpec, place: Option<i32>, ctx: &Context) -> Result<()> {
    let job = &sync.job;
    let mut pod = template::pod(&tracked(&spec.template), job);
    if let Some(index) = place {
        give_index(&mut pod, sync, index);
    }
    let pods: Api<Pod> = Api::namespaced(ctx.client(), &job.namespace().unwrap_or_default());
    match pods.create(&PostParams::default(), &pod).await {
        Ok(pod) => {
            let note = format!("Created pod: {}", pod.name_any());
            ctx.event(event(Event::normal("SuccessfulCreate", note)));
            Ok(())
        }
        Err(error) if refusal::is_namespace_terminating(&error) => Ok(()),
        Err(error) => {
            let note = format!("Error creating: {}", refusal::message(&error));
            ctx.event(event(Event::warning("FailedCreate", note)));
            Err(error.into())
        }
    }
}

fn tracked(template: &PodTemplateSpec) -> PodTemplateSpec {
    let mut template = template.clone();
    let finalizers = template.metadata.get_or_insert_default().finalizers.get_or_insert_default();
    if !finalizers.iter().any(|finalizer| finalizer == TRACKING) {
        finalizers.push(TRACKING.into());
    }
    template
}

/// Gives a pod its index: by name, host name, label, annotation and environment.
fn give_index(pod: &mut Pod, sync: &Sync, index: i32) {
    let name = sync.job.name_any();
    pod.metadata.generate_name = Some(format!("{name}-{index}-"));
    pod.metadata.labels.get_or_insert_default().insert(INDEX.into(), index.to_string());
    let annotations = pod.metadata.annotations.get_or_insert_default();
    annotations.insert(INDEX.into(), index.to_string());
    if spec(&sync.job).backoff_limit_per_index.is_some() {
        let last = last_failed(sync, index);
        let before = |annotation: &str| last.map_or(0, |pod| indexes::failures(pod, annotation));
        let (mut counted, mut ignored) = (before(FAILURES), before(IGNORED_FAILURES));
        match last.map(|pod| policy::counts(&sync.job, pod)) {
            Some(true) => counted += 1,
            Some(false) => ignored += 1,
            None => {}
        }
        annotations.insert(FAILURES.into(), counted.to_string());
        if ignored > 0 {
            annotations.insert(IGNORED_FAILURES.into(), ignored.to_string());
        }
    }
    let spec = pod.spec.get_or_insert_default();
    spec.hostname = Some(format!("{name}-{index}"));
    let containers = spec.containers.iter_mut().chain(spec.init_containers.iter_mut().flatten());
    containers.for_each(add_index_variable);
}

fn add_index_variable(container: &mut Container) {
    let variables = container.env.get_or_insert_default();
    if variables.iter().any(|variable| variable.name == "JOB_COMPLETION_INDEX") {
        return;
    }
    let field = ObjectFieldSelector {
        field_path: format!("metadata.labels['{INDEX}']"),
        ..ObjectFieldSelector::default()
    };
    variables.push(EnvVar {
        name: "JOB_COMPLETION_INDEX".into(),
        value_from: Some(EnvVarSource { field_ref: Some(field), ..EnvVarSource::default() }),
        ..EnvVar::default()
    });
}

async fn delete(pod: &Pod, ctx: &Context) -> Result<()> {
    let pods: Api<Pod> = Api::namespaced(ctx.client(), &pod.namespace().unwrap_or_default());
    let params = DeleteParams {
        preconditions: Some(Preconditions { uid: pod.uid(), resource_version: None }),
        ..DeleteParams::default()
    };
    match pods.delete(&pod.name_any(), &params).await {
        Err(error) if refusal::is_not_found(&error) || refusal::is_conflict(&error) => Ok(()),
        Err(error) => {
            let note = format!("Error deleting: {}", refusal::message(&error));
            ctx.event(event(Event::warning("FailedDelete", note)));
            Err(error.into())
        }
        Ok(_) => {
            let note = format!("Deleted pod: {}", pod.name_any());
            ctx.event(Event::normal("SuccessfulDelete", note).by(NAME));
            Ok(())
        }
    }
}

/// Takes the tracking finalizer off a pod.
pub(super) async fn untrack(pod: &Pod, ctx: &Context) -> Result<()> {
    if !is_tracked(pod) {
        return Ok(());
    }
    let pods: Api<Pod> = Api::namespaced(ctx.client(), &pod.namespace().unwrap_or_default());
    let patch = json!({ "metadata": { "uid": pod.uid(), "$deleteFromPrimitiveList/finalizers": [TRACKING] } });
    match pods.patch(&pod.name_any(), &PatchParams::default(), &Patch::Strategic(patch)).await {
        Err(error) if refusal::is_not_found(&error) || refusal::is_conflict(&error) => Ok(()),
        patched => patched.map(drop).map_err(Into::into),
    }
}
