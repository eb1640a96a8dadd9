//! Jobs.

use super::workload::{CONTAINERS, IMAGES, SELECTOR, containers, selector};
use super::{AGE, Column, NAME, age, column, list, name, number, or_none, text};
use jiff::Timestamp;
use serde_json::{Value, json};

pub(super) const COLUMNS: &[Column] = &[
    NAME,
    column("Status", "string", "What has become of the job."),
    column("Completions", "string", "Pods that are done, of those wanted."),
    column("Duration", "string", "How long it ran, or has been running."),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

pub(super) fn cells(job: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        json!(name(job)),
        json!(status(job)),
        json!(completions(job)),
        json!(duration(job, now)),
        age(job, now),
        json!(containers(job, "/name")),
        json!(containers(job, "/image")),
        json!(or_none(&selector(job))),
    ]
}

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
        (Some(start), end) => super::age::human(end.unwrap_or(now).duration_since(start).as_secs()),
    }
}
