//! Jobs and CronJobs.

use super::{at, fill, pod};
use crate::object;
use serde_json::{Value, json};

/// Fills in what a Job leaves out.
// pkg/apis/batch/v1/defaults.go
pub fn default_job(object: &mut Value) {
    default_spec(at(object, "spec"));
}

/// Fills in what a CronJob leaves out.
pub fn default_cron_job(object: &mut Value) {
    let spec = at(object, "spec");
    fill(spec, "concurrencyPolicy", "Allow");
    fill(spec, "suspend", false);
    fill(spec, "successfulJobsHistoryLimit", 3);
    fill(spec, "failedJobsHistoryLimit", 1);
    let template = at(at(at(spec, "jobTemplate"), "spec"), "template");
    pod::default_spec(at(template, "spec"));
}

fn default_spec(spec: &mut Value) {
    if spec["completions"].is_null() && spec["parallelism"].is_null() {
        fill(spec, "completions", 1);
    }
    fill(spec, "parallelism", 1);
    fill(spec, "backoffLimit", 6);
    fill(spec, "completionMode", "NonIndexed");
    fill(spec, "suspend", false);
    fill(spec, "podReplacementPolicy", "TerminatingOrFailed");
    pod::default_spec(at(at(spec, "template"), "spec"));
}

/// Gives a new Job the selector and labels that find its pods.
// pkg/registry/batch/job/strategy.go, generateSelector
pub fn prepare_job(object: &mut Value, live: Option<&Value>) {
    if live.is_some() || object["spec"]["manualSelector"] == true {
        return;
    }
    let (uid, name) = (object::text(object, "uid").to_owned(), object::name(object).to_owned());
    let labels = at(at(at(at(object, "spec"), "template"), "metadata"), "labels");
    for (key, value) in [
        ("controller-uid", &uid),
        ("job-name", &name),
        ("batch.kubernetes.io/controller-uid", &uid),
        ("batch.kubernetes.io/job-name", &name),
    ] {
        labels[key] = value.clone().into();
    }
    object["spec"]["selector"] = json!({"matchLabels": {"batch.kubernetes.io/controller-uid": uid}});
}
