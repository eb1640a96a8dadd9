//! Jobs and CronJobs.

use super::age;
use super::column::{AGED, NAMED, Shown, column, list, none, number, or_none, text};
use super::workload::{
    CONTAINERS, CONTAINERS_OF_PODS, IMAGES, IMAGES_OF_PODS, SELECTOR, SELECTOR_OF_PODS, containers_at, selector_at,
};
use jiff::Timestamp;
use serde_json::{Value, json};

pub(super) const JOB: &[Shown] = &[
    NAMED,
    (column("Status", "string", "What has become of the job."), |job, _| json!(status(job))),
    (column("Completions", "string", "Pods that are done, of those wanted."), |job, _| {
        json!(completions(job))
    }),
    (column("Duration", "string", "How long it ran, or has been running."), |job, now| {
        json!(duration(job, now))
    }),
    AGED,
    CONTAINERS_OF_PODS,
    IMAGES_OF_PODS,
    SELECTOR_OF_PODS,
];

fn status(job: &Value) -> &'static str {
    let holds = |kind: &str| {
        let mut conditions = list(job, "/status/conditions").iter();
        conditions
            .find(|condition| condition["type"] == kind)
            .is_some_and(|condition| condition["status"] == "True")
    };
    let deleted = !text(job, "/metadata/deletionTimestamp").is_empty();
    match () {
        () if holds("Complete") => "Complete",
        () if holds("Failed") => "Failed",
        () if deleted => "Terminating",
        () if holds("Suspended") => "Suspended",
        () if holds("FailureTarget") => "FailureTarget",
        () if holds("SuccessCriteriaMet") => "SuccessCriteriaMet",
        () => "Running",
    }
}

fn completions(job: &Value) -> String {
    let succeeded = number(job, "/status/succeeded");
    match (job.pointer("/spec/completions").and_then(Value::as_i64), number(job, "/spec/parallelism")) {
        (Some(completions), _) => format!("{succeeded}/{completions}"),
        (None, parallelism @ 2..) => format!("{succeeded}/1 of {parallelism}"),
        (None, _) => format!("{succeeded}/1"),
    }
}

fn duration(job: &Value, now: Timestamp) -> String {
    let time = |pointer: &str| text(job, pointer).parse::<Timestamp>().ok();
    match (time("/status/startTime"), time("/status/completionTime")) {
        (None, _) => String::new(),
        (Some(start), end) => age::human(end.unwrap_or(now).duration_since(start).as_secs()),
    }
}

const TEMPLATE: &str = "/spec/jobTemplate/spec/template/spec/containers";

pub(super) const CRON_JOB: &[Shown] = &[
    NAMED,
    (column("Schedule", "string", "When it runs."), |object, _| {
        json!(text(object, "/spec/schedule"))
    }),
    (column("Timezone", "string", "Whose clock that is."), |object, _| {
        json!(or_none(text(object, "/spec/timeZone")))
    }),
    (column("Suspend", "boolean", "Whether it is held back."), |object, _| {
        match object.pointer("/spec/suspend") {
            Some(Value::Bool(true)) => json!("True"),
            Some(Value::Bool(false)) => json!("False"),
            _ => json!("<unset>"),
        }
    }),
    (column("Active", "integer", "Jobs that run now."), |object, _| {
        json!(list(object, "/status/active").len())
    }),
    (column("Last Schedule", "string", "When it ran last."), |object, now| {
        match object.pointer("/status/lastScheduleTime") {
            Some(time) => json!(age::since(Some(time), now)),
            None => none(),
        }
    }),
    AGED,
    (CONTAINERS, |object, _| json!(containers_at(object, TEMPLATE, "/name"))),
    (IMAGES, |object, _| json!(containers_at(object, TEMPLATE, "/image"))),
    (SELECTOR, |object, _| {
        json!(or_none(&selector_at(object, "/spec/jobTemplate/spec/selector")))
    }),
];
