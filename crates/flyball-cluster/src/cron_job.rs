//! Creates Jobs on a schedule.

mod schedule;

use crate::{job, owner, refusal};
use flyball::{Action, Context, Controller, Event, Result};
use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use k8s_openapi::{
    api::{
        batch::v1::{CronJob, CronJobSpec, CronJobStatus, Job},
        core::v1::ObjectReference,
    },
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time},
};
use kube::{
    Api, Resource, ResourceExt,
    api::{DeleteParams, PostParams, Preconditions},
};
use schedule::Schedule;
use std::{sync::Arc, time::Duration};

/// Who a CronJob's events are from.
const NAME: &str = "cronjob-controller";
const SCHEDULED_AT: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";
/// How long after its time a Job is created, so that the clock has surely reached it.
const DELTA: Duration = Duration::from_millis(100);

/// The controller of CronJobs.
pub(crate) fn controller() -> Controller<CronJob> {
    Controller::new(reconcile).terminating(reconcile).owns::<Job>().reads::<Job>()
}

// pkg/controller/cronjob/cronjob_controllerv2.go, sync
async fn reconcile(cron: Arc<CronJob>, ctx: Context) -> Result {
    let jobs = ctx.owned::<Job>().await?;
    let mut status = cron.status.clone().unwrap_or_default();
    forget_history(&cron, &jobs, &mut status, &ctx).await?;
    observe(&jobs, &mut status, &ctx).await?;
    let next = start(&cron, &mut status, &ctx).await;
    if Some(&status) != cron.status.as_ref() {
        ctx.set_status(&status).await?;
    }
    Ok(next?.map_or(Action::await_change(), Action::requeue_after))
}

/// Takes note of Jobs that have finished or are gone.
async fn observe(jobs: &[Arc<Job>], status: &mut CronJobStatus, ctx: &Context) -> Result<()> {
    let active = status.active.get_or_insert_default();
    for job in jobs {
        let is_listed = active.iter().any(|listed| listed.uid == job.metadata.uid);
        let Some(end) = job::finished_condition(job) else {
            if !is_listed {
                let note = format!("Saw a job that the controller did not create or forgot: {}", job.name_any());
                ctx.event(event(Event::warning("UnexpectedJob", note)));
            }
            continue;
        };
        if is_listed {
            active.retain(|listed| listed.uid != job.metadata.uid);
            let note = format!("Saw completed job: {}, condition: {}", job.name_any(), end.type_);
            ctx.event(event(Event::normal("SawCompletedJob", note)));
        }
        let completed = job.status.as_ref().and_then(|status| status.completion_time.clone());
        if end.type_ == "Complete"
            && completed.as_ref().map(|time| time.0) > status.last_successful_time.as_ref().map(|time| time.0)
        {
            status.last_successful_time = completed;
        }
    }
    let mut missing = Vec::new();
    for listed in active.iter() {
        let name = listed.name.clone().unwrap_or_default();
        let known = jobs.iter().any(|job| job.metadata.uid == listed.uid);
        let namespace = listed.namespace.as_deref().unwrap_or_default();
        if !known && Api::<Job>::namespaced(ctx.client(), namespace).get_metadata_opt(&name).await?.is_none() {
            ctx.event(event(Event::normal("MissingJob", format!("Active job went missing: {name}"))));
            missing.push(listed.uid.clone());
        }
    }
    active.retain(|listed| !missing.contains(&listed.uid));
    if active.is_empty() {
        status.active = None;
    }
    Ok(())
}

/// Creates the Job whose time has come; says when the next one does.
async fn start(cron: &CronJob, status: &mut CronJobStatus, ctx: &Context) -> Result<Option<Duration>> {
    let spec = cron.spec.clone();
    if cron.metadata.deletion_timestamp.is_some() || spec.suspend.unwrap_or_default() {
        return Ok(None);
    }
    let zone = match spec.time_zone.as_deref().map(TimeZone::get).transpose() {
        Ok(zone) => zone,
        Err(error) => {
            let zone = spec.time_zone.unwrap_or_default();
            ctx.event(event(Event::warning("UnknownTimeZone", format!("invalid timeZone: {zone:?}: {error}"))));
            return Ok(None);
        }
    };
    let schedule = match Schedule::parse(&spec.schedule, zone.clone()) {
        Ok(schedule) => schedule,
        Err(error) => {
            let note = format!("unparseable schedule: {:?} : {error}", spec.schedule);
            ctx.event(event(Event::warning("UnparseableSchedule", note)));
            return Ok(None);
        }
    };
    let now = ctx.now().0;
    let begin = cron.metadata.creation_timestamp.as_ref().map_or(now, |time| time.0);
    let last = status.last_schedule_time.as_ref().map_or(begin, |time| time.0);
    let deadline = spec.starting_deadline_seconds.map(SignedDuration::from_secs);
    let earliest = deadline
        .and_then(|deadline| now.checked_sub(deadline).ok())
        .map_or(last, |limit| limit.max(last));
    let Some(due) = schedule.latest(earliest, now) else {
        return Ok(wait(&schedule, now));
    };
    if due.missed > 100 {
        let note = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew";
        ctx.event(event(Event::warning("TooManyMissedTimes", note)));
    }
    let at = due.at;
    let name = format!("{}-{}", cron.name_any(), at.as_second() / 60);
    let is_listed = status.active.iter().flatten().any(|listed| listed.name.as_ref() == Some(&name));
    if is_listed || status.last_schedule_time.as_ref().is_some_and(|last| last.0 == at) {
        return Ok(wait(&schedule, now));
    }
    if status.active.is_some() && spec.concurrency_policy.as_deref() == Some("Forbid") {
        let note = "Not starting job because prior execution is running and concurrency policy is Forbid";
        ctx.event(event(Event::normal("JobAlreadyActive", note)));
        return Ok(wait(&schedule, now));
    }
    if spec.concurrency_policy.as_deref() == Some("Replace") {
        for listed in status.active.take().unwrap_or_default() {
            delete(cron, &listed.name.unwrap_or_default(), listed.uid, ctx).await?;
        }
    }
    create(cron, &spec, (&name, at, zone), status, ctx).await?;
    Ok(wait(&schedule, now))
}

async fn create(
    cron: &CronJob,
    spec: &CronJobSpec,
    (name, at, zone): (&str, Timestamp, Option<TimeZone>),
    status: &mut CronJobStatus,
    ctx: &Context,
) -> Result<()> {
    let jobs: Api<Job> = Api::namespaced(ctx.client(), &cron.namespace().unwrap_or_default());
    let created = match jobs.create(&PostParams::default(), &job_of(cron, spec, name, at, zone)).await {
        Ok(created) => {
            ctx.event(event(Event::normal("SuccessfulCreate", format!("Created job {name}"))));
            created
        }
        Err(error) if refusal::is_namespace_terminating(&error) => return Ok(()),
        Err(error) if refusal::already_exists(&error) => {
            let found = jobs.get(name).await?;
            if !owner::is_controlled_by(&found.metadata, cron.metadata.uid.as_deref()) {
                return Ok(());
            }
            found
        }
        Err(error) => {
            let note = format!("Error creating job: {}", refusal::message(&error));
            ctx.event(event(Event::warning("FailedCreate", note)));
            return Err(error.into());
        }
    };
    status.active.get_or_insert_default().push(ObjectReference {
        resource_version: created.resource_version(),
        ..created.object_ref(&())
    });
    status.last_schedule_time = Some(Time(at));
    Ok(())
}

fn job_of(cron: &CronJob, spec: &CronJobSpec, name: &str, at: Timestamp, zone: Option<TimeZone>) -> Job {
    let template = spec.job_template.clone();
    let meta = template.metadata.unwrap_or_default();
    let mut annotations = meta.annotations.unwrap_or_default();
    let at = at.to_zoned(zone.unwrap_or(TimeZone::UTC));
    let offset = if at.offset().is_zero() {
        "Z".to_owned()
    } else {
        at.strftime("%:z").to_string()
    };
    annotations.insert(SCHEDULED_AT.into(), format!("{}{offset}", at.strftime("%Y-%m-%dT%H:%M:%S")));
    Job {
        metadata: ObjectMeta {
            name: Some(name.into()),
            namespace: cron.namespace(),
            labels: meta.labels,
            annotations: Some(annotations),
            owner_references: Some(vec![owner::reference(cron)]),
            ..ObjectMeta::default()
        },
        spec: template.spec,
        status: None,
    }
}

/// Deletes the oldest finished Jobs beyond the history limits.
async fn forget_history(cron: &CronJob, jobs: &[Arc<Job>], status: &mut CronJobStatus, ctx: &Context) -> Result<()> {
    let spec = cron.spec.clone();
    let limits = [
        ("Complete", spec.successful_jobs_history_limit),
        ("Failed", spec.failed_jobs_history_limit),
    ];
    for (type_, limit) in limits {
        let Some(limit) = limit.and_then(|limit| usize::try_from(limit).ok()) else {
            continue;
        };
        let ended = |job: &&Arc<Job>| job::finished_condition(job).is_some_and(|condition| condition.type_ == type_);
        let mut ended: Vec<_> = jobs
            .iter()
            .filter(ended)
            .filter(|job| job.metadata.deletion_timestamp.is_none())
            .collect();
        let started = |job: &Job| job.status.as_ref().and_then(|status| status.start_time.as_ref()).map(|time| time.0);
        ended.sort_by_key(|job| (started(job), job.name_any()));
        let surplus = ended.len().saturating_sub(limit);
        for job in ended.into_iter().take(surplus) {
            delete(cron, &job.name_any(), job.uid(), ctx).await?;
            if let Some(active) = &mut status.active {
                active.retain(|listed| listed.uid != job.metadata.uid);
            }
        }
    }
    Ok(())
}

async fn delete(cron: &CronJob, name: &str, uid: Option<String>, ctx: &Context) -> Result<()> {
    let jobs: Api<Job> = Api::namespaced(ctx.client(), &cron.namespace().unwrap_or_default());
    let params = DeleteParams {
        preconditions: Some(Preconditions { uid, resource_version: None }),
        ..DeleteParams::background()
    };
    match jobs.delete(name, &params).await {
        Err(error) if refusal::is_not_found(&error) || refusal::is_conflict(&error) => Ok(()),
        Err(error) => {
            let note = format!("Deleted job: {}", refusal::message(&error));
            ctx.event(event(Event::warning("FailedDelete", note)));
            Err(error.into())
        }
        Ok(_) => {
            ctx.event(event(Event::normal("SuccessfulDelete", format!("Deleted job {name}"))));
            Ok(())
        }
    }
}

fn wait(schedule: &Schedule, now: Timestamp) -> Option<Duration> {
    let next = schedule.next(now)?;
    Some(Duration::try_from(next.duration_since(now)).unwrap_or_default() + DELTA)
}

fn event(event: Event) -> Event {
    event.by(NAME)
}
