//! Counts pods that have ended, once each, and ends the Job when all are counted.

use super::{
    Sync, condition, event, has_failed, indexes, is_indexed, is_tracked, pods, policy, set_condition, spec, written,
};
use crate::pod;
use flyball::{Context, Event, Result};
use futures::future::join_all;
use k8s_openapi::api::{
    batch::v1::{JobCondition, UncountedTerminatedPods},
    core::v1::Pod,
};
use std::{collections::BTreeSet, sync::Arc};

/// The most pods that wait to be counted.
const MAX_UNCOUNTED: usize = 500;

/// Writes which pods have ended, takes their finalizers off, and counts them. So none is counted twice or missed, whenever this
/// process ends.
// job_controller.go, trackJobStatusAndRemoveFinalizers
pub(super) async fn track(sync: &mut Sync, ctx: &Context) -> Result<()> {
    let mut uncounted = sync.status.uncounted_terminated_pods.clone().unwrap_or_default();
    let tracked: BTreeSet<_> = sync
        .pods
        .iter()
        .filter(|pod| is_tracked(pod))
        .filter_map(|pod| pod.metadata.uid.clone())
        .collect();
    count(sync, &mut uncounted, |uid| !tracked.contains(uid));
    let mut ended: Vec<Arc<Pod>> = Vec::new();
    for pod in sync.pods.clone().iter().filter(|pod| is_tracked(pod) && can_let_go(sync, pod)) {
        note(sync, pod, &mut uncounted);
        ended.push(pod.clone());
        let waiting = |uids: &Option<Vec<String>>| uids.as_ref().map_or(0, Vec::len);
        if waiting(&uncounted.succeeded) + waiting(&uncounted.failed) >= MAX_UNCOUNTED {
            break;
        }
    }
    if is_indexed(&sync.job) {
        sync.status.succeeded = written(sync.succeeded_indexes.len() as i32);
        sync.status.completed_indexes = Some(sync.succeeded_indexes.to_string()).filter(|text| !text.is_empty());
        sync.status.failed_indexes = sync.failed_indexes.as_ref().map(ToString::to_string);
    }
    if let Some(interim) = sync.finished.clone()
        && condition(&sync.status, &interim.type_).is_none()
    {
        set_condition(&mut sync.status, interim);
    }
    sync.status.uncounted_terminated_pods = Some(uncounted.clone());
    ctx.set_status(&sync.status).await?;
    if !ended.is_empty() {
        let removed = join_all(ended.iter().map(|pod| pods::untrack(pod, ctx))).await;
        removed.into_iter().collect::<Result<()>>()?;
        let ended: BTreeSet<_> = ended.iter().filter_map(|pod| pod.metadata.uid.clone()).collect();
        count(sync, &mut uncounted, |uid| ended.contains(uid));
        sync.status.uncounted_terminated_pods = Some(uncounted.clone());
    }
    let is_done = uncounted == UncountedTerminatedPods::default() && sync.terminating == 0;
    let finished = sync.finished.clone().filter(|_| is_done);
    if let Some(interim) = &finished {
        end(sync, interim);
    }
    ctx.set_status(&sync.status).await?;
    if let Some(interim) = finished {
        announce(sync, &interim, ctx);
    }
    Ok(())
}

/// Counts the uncounted pods whose finalizer is gone.
fn count(sync: &mut Sync, uncounted: &mut UncountedTerminatedPods, is_gone: impl Fn(&String) -> bool) {
    let take = |uids: &mut Option<Vec<String>>, count: &mut Option<i32>| {
        let known = uids.take().unwrap_or_default();
        let (gone, left): (Vec<_>, Vec<_>) = known.into_iter().partition(&is_gone);
        *count = written(count.unwrap_or_default() + gone.len() as i32);
        *uids = (!left.is_empty()).then_some(left);
    };
    take(&mut uncounted.succeeded, &mut sync.status.succeeded);
    take(&mut uncounted.failed, &mut sync.status.failed);
}

/// Whether a pod need not be kept for its Job any more.
// job_controller.go, canRemoveFinalizer
fn can_let_go(sync: &Sync, pod: &Pod) -> bool {
    let job_ends = sync.job.metadata.deletion_timestamp.is_some() || sync.finished.is_some();
    if job_ends || pod::phase(pod) == "Succeeded" {
        return true;
    }
    if !has_failed(pod, &sync.job) {
        return false;
    }
    let Some(index) = indexes::of(pod).filter(|_| spec(&sync.job).backoff_limit_per_index.is_some()) else {
        return true;
    };
    let is_over = |known: Option<&indexes::Indexes>| known.is_some_and(|known| known.contains(index));
    if is_over(Some(&sync.succeeded_indexes)) || is_over(sync.failed_indexes.as_ref()) {
        return true;
    }
    // The next pod of the index takes over the count that the last failed one carries.
    let replaced = sync.active.iter().any(|active| indexes::of(active) == Some(index));
    let is_last = pods::last_failed(sync, index).is_some_and(|last| last.metadata.uid == pod.metadata.uid);
    replaced || !is_last
}

/// Notes how a pod ended.
fn note(sync: &Sync, pod: &Pod, uncounted: &mut UncountedTerminatedPods) {
    let Some(uid) = pod.metadata.uid.clone() else { return };
    let add = |uids: &mut Option<Vec<String>>| {
        let uids = uids.get_or_insert_default();
        if !uids.contains(&uid) {
            uids.push(uid.clone());
        }
    };
    let succeeds = sync.finished.as_ref().is_some_and(|finished| finished.type_ == "SuccessCriteriaMet");
    if pod::phase(pod) == "Succeeded" {
        if !is_indexed(&sync.job) {
            add(&mut uncounted.succeeded);
        }
    } else if (has_failed(pod, &sync.job) || (sync.finished.is_some() && !succeeds)) && policy::counts(&sync.job, pod) {
        let completions = spec(&sync.job).completions.unwrap_or(i32::MAX);
        if !is_indexed(&sync.job) || indexes::of(pod).is_some_and(|index| index < completions) {
            add(&mut uncounted.failed);
        }
    }
}

/// Sets the last condition of a Job.
fn end(sync: &mut Sync, interim: &JobCondition) {
    let type_ = if interim.type_ == "SuccessCriteriaMet" {
        "Complete"
    } else {
        "Failed"
    };
    let (reason, message) = (interim.reason.clone().unwrap_or_default(), interim.message.clone().unwrap_or_default());
    let condition = sync.condition(type_, &reason, &message);
    if type_ == "Complete" {
        sync.status.completion_time = condition.last_transition_time.clone();
    }
    set_condition(&mut sync.status, condition);
}

fn announce(sync: &Sync, interim: &JobCondition, ctx: &Context) {
    if interim.type_ != "SuccessCriteriaMet" {
        let note = interim.message.clone().unwrap_or_default();
        ctx.event(event(Event::warning(interim.reason.as_deref().unwrap_or("Failed"), note)));
        return;
    }
    let wanted = spec(&sync.job).completions;
    if wanted.is_some_and(|wanted| sync.status.succeeded.unwrap_or_default() > wanted) {
        let note = "Too many succeeded pods running after completion count reached";
        ctx.event(event(Event::warning("TooManySucceededPods", note)));
    }
    ctx.event(event(Event::normal("Completed", "Job completed")));
}
