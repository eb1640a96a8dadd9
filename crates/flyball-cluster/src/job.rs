//! Runs pods to completion, again and again if they fail, as often as a Job allows.

mod finish;
mod indexes;
mod orphans;
mod pods;
mod policy;
mod ttl;

pub(crate) use orphans::controller as orphans;
pub(crate) use ttl::controller as ttl;

use crate::{claim, lookup, pod};
use flyball::{Action, Cache, Context, Controller, Error, Event, Key, Reconciler, Result};
use indexes::Indexes;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{
    api::{
        batch::v1::{Job, JobCondition, JobSpec, JobStatus},
        core::v1::Pod,
    },
    apimachinery::pkg::apis::meta::v1::{LabelSelector, Time},
};
use kube::api::PartialObjectMeta;
use pods::Backoff;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

/// Who a Job's events are from.
const NAME: &str = "job-controller";

/// The finalizer that keeps a pod until its Job has counted it.
pub(crate) const TRACKING: &str = "batch.kubernetes.io/job-tracking";

/// The controller of Jobs.
pub(crate) fn controller() -> Controller<Job> {
    let controller = Controller::new(Jobs::default()).owns::<Pod>().reads::<Pod>().watches(adopters);
    lookup::index_selectors(controller, |job: &Job| selector(job).cloned())
}

fn adopters(pod: Arc<PartialObjectMeta<Pod>>, cache: Cache) -> Result<Vec<Key>> {
    claim::adopters::<Job>(&pod.metadata, &cache, selector)
}

fn selector(job: &Job) -> Option<&LabelSelector> {
    job.spec.as_ref().and_then(|spec| spec.selector.as_ref())
}

#[derive(Default)]
struct Jobs {
    /// How often the pods of each Job have failed lately.
    backoffs: Mutex<HashMap<Key, Backoff>>,
}

impl Reconciler<Job> for Jobs {
    async fn reconcile(&self, job: Arc<Job>, ctx: Context) -> Result {
        self.sync(job, ctx).await
    }

    async fn terminating(&self, job: Arc<Job>, ctx: Context) -> Result {
        self.sync(job, ctx).await
    }

    fn gone(&self, key: &Key) {
        self.lock().remove(key);
    }
}

/// What is known of a Job during one reconcile.
struct Sync {
    job: Job,
    status: JobStatus,
    pods: Vec<Arc<Pod>>,
    active: Vec<Arc<Pod>>,
    terminating: i32,
    succeeded: i32,
    /// Of an indexed Job: those that succeeded, and those that failed for good.
    succeeded_indexes: Indexes,
    failed_indexes: Option<Indexes>,
    /// The condition that ends the Job.
    finished: Option<JobCondition>,
    backoff: Backoff,
    now: Timestamp,
}

impl Jobs {
    // pkg/controller/job/job_controller.go, syncJob
    async fn sync(&self, job: Arc<Job>, ctx: Context) -> Result {
        let spec = spec(&job);
        let managed_elsewhere = spec.managed_by.as_deref().is_some_and(|by| by != "kubernetes.io/job-controller");
        if managed_elsewhere || is_finished(&job) {
            self.lock().remove(&Key::of(&*job));
            return Ok(Action::await_change());
        }
        let Some(selector) = spec.selector.as_ref() else {
            return Err(Error::permanent("a Job must select pods"));
        };
        let pods = claim::claim::<_, Pod>(&*job, selector, &ctx).await?;
        let mut sync = self.observe(&job, pods, ctx.now().0);
        let mut wait = sync.judge();
        let mut failure = None;
        if sync.finished.is_some() {
            failure = pods::delete_active(&sync, &ctx).await.err();
            if failure.is_some() {
                sync.finished = None;
            }
            (sync.terminating, sync.status.ready) = (sync.terminating + sync.active.len() as i32, Some(0));
            sync.status.active = None;
        } else if job.metadata.deletion_timestamp.is_none() {
            match pods::manage(&mut sync, &ctx).await {
                Ok(next) => earlier(&mut wait, next),
                Err(error) => failure = Some(error),
            }
            sync.complete(&ctx);
        }
        sync.status.terminating = Some(sync.terminating);
        finish::track(&mut sync, &ctx).await?;
        self.lock().insert(Key::of(&*job), sync.backoff);
        match failure {
            Some(error) => Err(error),
            None => Ok(wait.map_or(Action::await_change(), Action::requeue_after)),
        }
    }

    /// Counts the pods of a Job.
    fn observe(&self, job: &Job, pods: Vec<Arc<Pod>>, now: Timestamp) -> Sync {
        let mut status = job.status.clone().unwrap_or_default();
        let active: Vec<_> = pods.iter().filter(|pod| pod::is_active(pod)).cloned().collect();
        let uncounted = status.uncounted_terminated_pods.clone().unwrap_or_default();
        let known = |uids: &Option<Vec<String>>, pod: &Pod| {
            uids.iter().flatten().any(|uid| Some(uid) == pod.metadata.uid.as_ref())
        };
        let new = |is: &dyn Fn(&Pod) -> bool, uids: &Option<Vec<String>>| -> Vec<Arc<Pod>> {
            let fresh = |pod: &&Arc<Pod>| is_tracked(pod) && is(pod) && !known(uids, pod);
            pods.iter().filter(fresh).cloned().collect()
        };
        let succeeded = new(&|pod| pod::phase(pod) == "Succeeded", &uncounted.succeeded);
        let failed = new(&|pod| has_failed(pod, job), &uncounted.failed);
        let backoff = self.lock().get(&Key::of(job)).cloned().unwrap_or_default();
        if status.start_time.is_none() && !is_suspended(job) {
            status.start_time = Some(Time(now));
        }
        let counted = |status: Option<i32>, uids: &Option<Vec<String>>| {
            status.unwrap_or_default() + uids.as_ref().map_or(0, |uids| uids.len() as i32)
        };
        status.active = written(active.len() as i32);
        status.ready = Some(active.iter().filter(|pod| pod::is_ready(pod)).count() as i32);
        let is_ending = |pod: &&Arc<Pod>| pod.metadata.deletion_timestamp.is_some() && !pod::has_ended(pod);
        Sync {
            terminating: pods.iter().filter(is_ending).count() as i32,
            succeeded: counted(status.succeeded, &uncounted.succeeded) + succeeded.len() as i32,
            succeeded_indexes: Indexes::default(),
            failed_indexes: None,
            finished: None,
            backoff: backoff.after(&succeeded, &failed),
            job: job.clone(),
            active,
            pods,
            status,
            now,
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Key, Backoff>> {
        self.backoffs.lock().expect("nothing panics under this lock")
    }
}

impl Sync {
    /// Decides whether the Job has ended, by failure or by its success policy; says when to look again.
    fn judge(&mut self) -> Option<Duration> {
        let spec = spec(&self.job);
        let mut wait = None;
        self.finished = condition(&self.status, "SuccessCriteriaMet").cloned();
        if self.finished.is_none() {
            self.finished = condition(&self.status, "FailureTarget").cloned().or_else(|| {
                let message = policy::failure_of_job(&self.job, &self.pods)?;
                Some(self.condition("FailureTarget", "PodFailurePolicy", &message))
            });
        }
        if self.finished.is_none() {
            let limit = spec.backoff_limit.unwrap_or(6);
            if self.failed() > limit || pods::restarts_exceed(&spec, &self.pods, limit) {
                let note = "Job has reached the specified backoff limit";
                self.finished = Some(self.condition("FailureTarget", "BackoffLimitExceeded", note));
            } else if let Some(left) = self.left(spec.active_deadline_seconds) {
                if left.is_zero() {
                    let note = "Job was active longer than specified deadline";
                    self.finished = Some(self.condition("FailureTarget", "DeadlineExceeded", note));
                } else {
                    wait = Some(left);
                }
            }
        }
        if is_indexed(&self.job) {
            self.judge_indexes(&spec);
        }
        wait
    }

    fn judge_indexes(&mut self, spec: &JobSpec) {
        let completions = spec.completions.unwrap_or_default();
        let mut succeeded = Indexes::parse(self.status.completed_indexes.as_deref().unwrap_or_default(), completions);
        let done = self.pods.iter().filter(|pod| is_tracked(pod) && pod::phase(pod) == "Succeeded");
        succeeded.extend(done.filter_map(|pod| indexes::of(pod)).filter(|index| *index < completions));
        self.succeeded = succeeded.len() as i32;
        if spec.backoff_limit_per_index.is_some() {
            let known = self.status.failed_indexes.as_deref().unwrap_or_default();
            let mut failed = Indexes::parse(known, completions);
            let gone = self.pods.iter().filter(|pod| is_tracked(pod) && indexes::has_failed(pod, &self.job));
            failed.extend(gone.filter_map(|pod| indexes::of(pod)).filter(|index| *index < completions));
            let (failures, all) = (failed.len() as i32, (failed.len() + succeeded.len()) as i32);
            if self.finished.is_none() && spec.max_failed_indexes.is_some_and(|most| failures > most) {
                let note = "Job has exceeded the specified maximal number of failed indexes";
                self.finished = Some(self.condition("FailureTarget", "MaxFailedIndexesExceeded", note));
            } else if self.finished.is_none() && failures > 0 && all >= completions {
                self.finished = Some(self.condition("FailureTarget", "FailedIndexes", "Job has failed indexes"));
            }
            self.failed_indexes = Some(failed);
        }
        if self.finished.is_none()
            && let Some(message) = policy::success(spec.success_policy.as_ref(), completions, &succeeded)
        {
            self.finished = Some(self.condition("SuccessCriteriaMet", "SuccessPolicy", &message));
        }
        self.succeeded_indexes = succeeded;
    }

    /// Decides whether the Job is complete, and says whether it is suspended.
    fn complete(&mut self, ctx: &Context) {
        let active = self.status.active.unwrap_or_default();
        let enough = match spec(&self.job).completions {
            None => self.succeeded > 0,
            Some(completions) => self.succeeded >= completions,
        };
        if enough && active == 0 {
            let note = "Reached expected number of succeeded pods";
            self.finished = Some(self.condition("SuccessCriteriaMet", "CompletionsReached", note));
            return;
        }
        let suspended = is_suspended(&self.job);
        let known = condition_of(&self.status, "Suspended").map(|known| known.status == "True");
        let (status, reason, note) = match (suspended, known) {
            (true, None | Some(false)) => ("True", "JobSuspended", "Job suspended"),
            (false, Some(true)) => ("False", "JobResumed", "Job resumed"),
            _ => return,
        };
        let condition = JobCondition {
            status: status.into(),
            ..self.condition("Suspended", reason, note)
        };
        set_condition(&mut self.status, condition);
        self.status.start_time = (!suspended).then_some(Time(self.now));
        ctx.event(event(Event::normal(if suspended { "Suspended" } else { "Resumed" }, note)));
    }

    /// How many pods have failed and are counted.
    fn failed(&self) -> i32 {
        let uncounted = self
            .status
            .uncounted_terminated_pods
            .clone()
            .unwrap_or_default()
            .failed
            .unwrap_or_default();
        let new = self.pods.iter().filter(|pod| {
            let known = pod.metadata.uid.as_ref().is_some_and(|uid| uncounted.contains(uid));
            is_tracked(pod) && !known && has_failed(pod, &self.job) && policy::counts(&self.job, pod)
        });
        self.status.failed.unwrap_or_default() + uncounted.len() as i32 + new.count() as i32
    }

    /// How much of the deadline is left.
    fn left(&self, deadline: Option<i64>) -> Option<Duration> {
        let (deadline, Time(started)) = (deadline?, self.status.start_time.as_ref()?);
        if is_suspended(&self.job) {
            return None;
        }
        let end = started.checked_add(SignedDuration::from_secs(deadline)).ok()?;
        Some(Duration::try_from(end.duration_since(self.now)).unwrap_or_default())
    }

    fn condition(&self, type_: &str, reason: &str, message: &str) -> JobCondition {
        JobCondition {
            type_: type_.into(),
            status: "True".into(),
            reason: Some(reason.into()),
            message: Some(message.into()),
            last_probe_time: Some(Time(self.now)),
            last_transition_time: Some(Time(self.now)),
        }
    }
}

/// Whether a Job has ended, one way or the other.
pub(crate) fn is_finished(job: &Job) -> bool {
    finished_condition(job).is_some()
}

/// The condition by which a Job has ended.
pub(crate) fn finished_condition(job: &Job) -> Option<&JobCondition> {
    let status = job.status.as_ref()?;
    condition(status, "Complete").or_else(|| condition(status, "Failed"))
}

/// A condition that holds.
fn condition<'a>(status: &'a JobStatus, type_: &str) -> Option<&'a JobCondition> {
    condition_of(status, type_).filter(|condition| condition.status == "True")
}

fn condition_of<'a>(status: &'a JobStatus, type_: &str) -> Option<&'a JobCondition> {
    status.conditions.iter().flatten().find(|condition| condition.type_ == type_)
}

fn set_condition(status: &mut JobStatus, condition: JobCondition) {
    let conditions = status.conditions.get_or_insert_default();
    match conditions.iter_mut().find(|known| known.type_ == condition.type_) {
        Some(known) => *known = condition,
        None => conditions.push(condition),
    }
}

fn is_suspended(job: &Job) -> bool {
    job.spec.as_ref().and_then(|spec| spec.suspend).unwrap_or_default()
}

fn is_indexed(job: &Job) -> bool {
    job.spec.as_ref().and_then(|spec| spec.completion_mode.as_deref()) == Some("Indexed")
}

/// Whether a pod that is being deleted is replaced only once it has ended.
fn replaces_only_failed(job: &Job) -> bool {
    let spec = job.spec.as_ref();
    spec.and_then(|spec| spec.pod_replacement_policy.as_deref()) == Some("Failed")
        || spec.is_some_and(|spec| spec.pod_failure_policy.is_some())
}

/// Whether a pod counts as failed: also one that is deleted before it ended, unless only failed ones are replaced.
fn has_failed(pod: &Pod, job: &Job) -> bool {
    let deleted = pod.metadata.deletion_timestamp.is_some() && pod::phase(pod) != "Succeeded";
    pod::phase(pod) == "Failed" || (deleted && !replaces_only_failed(job))
}

fn is_tracked(pod: &Pod) -> bool {
    pod.metadata.finalizers.iter().flatten().any(|finalizer| finalizer == TRACKING)
}

fn spec(job: &Job) -> JobSpec {
    job.spec.clone().unwrap_or_default()
}

/// A number as Go writes one with `omitempty`.
fn written(number: i32) -> Option<i32> {
    Some(number).filter(|number| *number != 0)
}

fn earlier(known: &mut Option<Duration>, other: Option<Duration>) {
    *known = match (*known, other) {
        (Some(known), Some(other)) => Some(known.min(other)),
        (known, other) => known.or(other),
    };
}

fn event(event: Event) -> Event {
    event.by(NAME)
}
