//! Jobs and CronJobs.

use super::meta;
use super::{at, fill, pod};
use crate::violation::Violation;
use serde_json::{Value, json};

/// Fills in what a Job leaves out.
// pkg/apis/batch/v1/defaults.go
pub fn default_job(object: &mut Value) {
    let spec = at(object, "spec");
    if spec["completions"].is_null() && spec["parallelism"].is_null() {
        fill(spec, "completions", 1);
    }
    drop_nulls(spec);
    fill(spec, "parallelism", 1);
    fill(spec, "backoffLimit", 6);
    fill(spec, "completionMode", "NonIndexed");
    fill(spec, "suspend", false);
    fill(spec, "manualSelector", false);
    fill(spec, "podReplacementPolicy", "TerminatingOrFailed");
    pod::default_spec(at(at(spec, "template"), "spec"));
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

fn drop_nulls(object: &mut Value) {
    if let Some(members) = object.as_object_mut() {
        members.retain(|_, value| !value.is_null());
    }
}

/// Gives a new Job the selector and labels that find its pods.
// pkg/registry/batch/job/strategy.go, generateSelector
pub fn prepare_job(object: &mut Value, live: Option<&Value>) {
    if live.is_some() {
        return;
    }
    if object["spec"]["manualSelector"] != true {
        let (uid, name) = (meta::text(object, "uid").to_owned(), meta::name(object).to_owned());
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
    let labels = object["spec"]["template"]["metadata"]["labels"].clone();
    if labels.is_object() {
        fill(at(object, "metadata"), "labels", labels);
    }
}

/// Finds what is wrong with a Job.
// pkg/apis/batch/validation/validation.go
pub fn validate_job(object: &Value, live: Option<&Value>) -> Vec<Violation> {
    let template = &object["spec"]["template"];
    let mut violations = pod::validate_spec(&template["spec"], "spec.template.spec");
    violations.extend(validate_restart(&template["spec"], "spec.template.spec.restartPolicy"));
    let Some(live) = live else { return violations };
    if *template != live["spec"]["template"] {
        violations.push(Violation::invalid("spec.template", template.clone(), "field is immutable"));
    }
    for field in ["selector", "completionMode"] {
        if object["spec"][field] != live["spec"][field] {
            let given = object["spec"][field].clone();
            violations.push(Violation::invalid(format!("spec.{field}"), given, "field is immutable"));
        }
    }
    violations
}

/// Finds what is wrong with a CronJob.
pub fn validate_cron_job(object: &Value, _live: Option<&Value>) -> Vec<Violation> {
    const PATH: &str = "spec.jobTemplate.spec.template.spec";
    let pod = &object["spec"]["jobTemplate"]["spec"]["template"]["spec"];
    let mut violations = pod::validate_spec(pod, PATH);
    violations.extend(validate_restart(pod, &format!("{PATH}.restartPolicy")));
    violations.extend(validate_schedule(object["spec"]["schedule"].as_str().unwrap_or_default()));
    violations
}

/// The pods of a Job end: they do not restart for ever.
fn validate_restart(pod: &Value, path: &str) -> Option<Violation> {
    match pod["restartPolicy"].as_str() {
        Some("OnFailure" | "Never") => None,
        Some("Always") | None => Some(Violation::required(path, "valid values: \"OnFailure\", \"Never\"")),
        Some(other) => Some(Violation::not_supported(path, other, &["OnFailure", "Never"])),
    }
}

// robfig/cron, standardParser
fn validate_schedule(schedule: &str) -> Option<Violation> {
    if schedule.is_empty() {
        return Some(Violation::required("spec.schedule", ""));
    }
    if schedule.starts_with('@') {
        return None;
    }
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    if fields.len() == 5 {
        return None;
    }
    let why = format!("expected exactly 5 fields, found {}: [{}]", fields.len(), fields.join(" "));
    Some(Violation::invalid("spec.schedule", schedule, &why))
}
