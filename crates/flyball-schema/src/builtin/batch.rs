//! Jobs and CronJobs.

mod indexes;
mod policy;
mod schedule;
mod status;
mod validate;

use super::{at, fill, fill_zero, items, meta, pod, within};
use serde_json::{Map, Value, json};

pub use status::validate_job_status;
pub use validate::{validate_cron_job, validate_job};

/// Sets the defaults of a Job.
// pkg/apis/batch/v1/defaults.go
pub fn default_job(object: &mut Value) {
    let spec = at(object, "spec");
    let has = |spec: &Value, field: &str| spec.get(field).is_some_and(|value| !value.is_null());
    if !has(spec, "completions") && !has(spec, "parallelism") {
        fill(spec, "completions", 1);
    }
    let limit = if has(spec, "backoffLimitPerIndex") { i32::MAX } else { 6 };
    let replacement = if has(spec, "podFailurePolicy") {
        "Failed"
    } else {
        "TerminatingOrFailed"
    };
    fill(spec, "parallelism", 1);
    fill(spec, "backoffLimit", limit);
    fill(spec, "completionMode", "NonIndexed");
    fill(spec, "suspend", false);
    fill(spec, "manualSelector", false);
    fill(spec, "podReplacementPolicy", replacement);
    pod::default_spec(at(at(spec, "template"), "spec"));
    default_policy(spec);
    label(object);
}

fn default_policy(spec: &mut Value) {
    if let Some(policy) = within(spec, "podFailurePolicy") {
        for rule in items(policy, "rules") {
            items(rule, "onPodConditions").for_each(|condition| fill_zero(condition, "status", "True"));
        }
    }
}

/// A Job without labels gets those of its template.
fn label(object: &mut Value) {
    let labels = object["spec"]["template"]["metadata"]["labels"].clone();
    let is_empty = |labels: &Value| labels.as_object().is_none_or(Map::is_empty);
    if !is_empty(&labels) && is_empty(&object["metadata"]["labels"]) {
        meta::metadata_mut(object).insert("labels".into(), labels);
    }
}

/// Sets the defaults of a CronJob.
pub fn default_cron_job(object: &mut Value) {
    let spec = at(object, "spec");
    fill(spec, "concurrencyPolicy", "Allow");
    fill(spec, "suspend", false);
    fill(spec, "successfulJobsHistoryLimit", 3);
    fill(spec, "failedJobsHistoryLimit", 1);
    let template = at(at(at(spec, "jobTemplate"), "spec"), "template");
    pod::default_spec(at(template, "spec"));
    default_policy(at(at(spec, "jobTemplate"), "spec"));
}

/// The labels in the generated selector of a Job.
fn generated_labels(object: &Value) -> Value {
    let (uid, name) = (meta::text(object, "uid"), meta::name(object));
    json!({
        "controller-uid": uid,
        "job-name": name,
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": name,
    })
}

/// Generates the selector of a new Job, and adds its labels to the pod template.
// pkg/registry/batch/job/strategy.go, generateSelector
pub fn prepare_job(object: &mut Value, live: Option<&Value>) {
    if live.is_some() || object["spec"]["manualSelector"] == true {
        return;
    }
    let uid = meta::text(object, "uid").to_owned();
    let generated = generated_labels(object);
    let spec = at(object, "spec");
    let labels = at(at(at(spec, "template"), "metadata"), "labels");
    for (key, value) in generated.as_object().into_iter().flatten() {
        fill(labels, key, value.clone());
    }
    let selector = at(at(spec, "selector"), "matchLabels");
    fill(selector, "batch.kubernetes.io/controller-uid", uid);
    label(object);
}

/// Copies a field of another object; removes it if the other has none.
fn put(object: &mut Value, part: &str, field: &str, value: &Value) {
    let part = at(object, part);
    match (value, part.as_object_mut()) {
        (Value::Null, Some(members)) => drop(members.remove(field)),
        (value, Some(members)) => drop(members.insert(field.to_owned(), value.clone())),
        _ => {}
    }
    let is_empty = part.as_object().is_some_and(Map::is_empty);
    if is_empty {
        *part = Value::Object(Map::new());
    }
}
