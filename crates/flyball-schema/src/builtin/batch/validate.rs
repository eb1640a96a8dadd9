//! Validation of Jobs and CronJobs.
// pkg/apis/batch/validation/validation.go

use super::{policy, schedule};
use crate::builtin::meta;
use crate::builtin::rules::{immutable, maybe_one_of, none_negative, one_of, selector, surely_one_of};
use crate::builtin::spot::{Found, Spot};
use crate::builtin::workload::template;
use crate::selector::LabelSelector;
use crate::violation::{Reason, Violation};
use serde_json::{Value, json};

const MOST_NAME_BYTES: usize = 52;
const COUNTS: [&str; 7] = [
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
];

/// Validates a Job.
pub fn validate_job(object: &Value, live: Option<&Value>) -> Vec<Violation> {
    let mut found = Vec::new();
    let root = Spot::root(object);
    let spec = root.field("spec");
    generated_selector(object, live, &spec, &mut found);
    selected_spec(&spec, &mut found);
    match live {
        Some(live) => {
            // Upstream validates it twice: as a spec and as an update of one.
            selected_spec(&spec, &mut found);
            fixed(&spec, &Spot::root(live).field("spec"), &mut found);
        }
        None => indexed_names(object, &spec, &mut found),
    }
    found
}

fn selected_spec(spec: &Spot<'_>, found: &mut Found) {
    validate_spec(spec, found);
    match spec.field("selector").is_set() {
        true => selector(&spec.field("selector"), found),
        false => spec.field("selector").required(found, ""),
    }
    template::selected(spec, found);
}

/// The labels that are generated with a selector, and whether Jobs of old servers may lack them.
const GENERATED: [(&str, bool); 4] = [
    ("controller-uid", false),
    ("job-name", false),
    ("batch.kubernetes.io/controller-uid", true),
    ("batch.kubernetes.io/job-name", true),
];

/// A generated selector must match the generated labels, which the template must have.
fn generated_selector(object: &Value, live: Option<&Value>, spec: &Spot<'_>, found: &mut Found) {
    if spec.field("manualSelector").is_true() || !spec.field("selector").is_set() {
        return;
    }
    let had = |key: &str| live.is_none_or(|live| live["spec"]["template"]["metadata"]["labels"].get(key).is_some());
    let is_old = GENERATED.iter().any(|(key, is_newer)| *is_newer && !had(key));
    let mut labels = super::generated_labels(object);
    let generated = labels.as_object_mut().expect("labels are a map");
    for (key, is_newer) in GENERATED {
        if is_newer && is_old {
            generated.remove(key);
        } else {
            has_label(
                &spec.field("template").field("metadata"),
                key,
                generated[key].as_str().unwrap_or_default(),
                found,
            );
        }
    }
    let selects = LabelSelector::from_value(spec.field("selector").value);
    if selects.is_some_and(|selector| !selector.matches(labels.as_object())) {
        spec.field("selector").invalid(found, "`selector` not auto-generated");
    }
}

fn has_label(metadata: &Spot<'_>, key: &str, expected: &str, found: &mut Found) {
    let (labels, why) = (metadata.field("labels"), format!("must be '{expected}'"));
    match labels.value.get(key) {
        None => labels.key(key).required(found, &why),
        Some(label) if label == expected => {}
        Some(_) => labels.key(key).invalid_as(found, labels.value.clone(), &why),
    }
}

/// A Job's spec, in a Job or a CronJob.
fn validate_spec(spec: &Spot<'_>, found: &mut Found) {
    none_negative(spec, &COUNTS, found);
    if spec.field("maxFailedIndexes").is_set() && !spec.field("backoffLimitPerIndex").is_set() {
        spec.field("backoffLimitPerIndex").required(found, "when maxFailedIndexes is specified");
    }
    managed_by(&spec.field("managedBy"), found);
    maybe_one_of(&spec.field("completionMode"), &["NonIndexed", "Indexed"], found);
    match spec.field("completionMode").text() {
        "Indexed" => indexed(spec, found),
        "NonIndexed" | "" => not_indexed(spec, found),
        _ => {}
    }
    policy::failure(spec, found);
    policy::success(spec, found);
    replacement(spec, found);
    template::validate(&spec.field("template"), found);
    restart_policy(spec, found);
}

fn managed_by(managed: &Spot<'_>, found: &mut Found) {
    if !managed.is_set() {
        return;
    }
    let (domain, path) = managed.text().split_once('/').unwrap_or_default();
    if managed.text().is_empty() {
        managed.required(found, "");
    } else if domain.is_empty() || path.is_empty() {
        managed.invalid(found, "must be a domain-prefixed path (such as \"acme.io/foo\")");
    } else {
        let wrong = crate::names::dns1123_subdomain(domain);
        wrong.iter().for_each(|why| managed.invalid_as(found, domain, why));
    }
    if managed.len() > 63 {
        managed.too_long(found, 63);
    }
}

fn indexed(spec: &Spot<'_>, found: &mut Found) {
    let (completions, failed) = (spec.field("completions"), spec.field("maxFailedIndexes"));
    if !completions.is_set() {
        completions.required(found, "when completion mode is Indexed");
    }
    if spec.field("parallelism").int() > 100_000 {
        let why = "must be less than or equal to 100000 when completion mode is Indexed";
        spec.field("parallelism").invalid(found, why);
    }
    if completions.is_set() && failed.int() > completions.int() {
        failed.invalid(found, "must be less than or equal to completions");
    }
}

fn not_indexed(spec: &Spot<'_>, found: &mut Found) {
    for field in ["backoffLimitPerIndex", "maxFailedIndexes"] {
        if spec.field(field).is_set() {
            spec.field(field).invalid(found, "requires indexed completion mode");
        }
    }
}

fn replacement(spec: &Spot<'_>, found: &mut Found) {
    match spec.field("podFailurePolicy").is_set() {
        true => maybe_one_of(&spec.field("podReplacementPolicy"), &["Failed"], found),
        false => maybe_one_of(&spec.field("podReplacementPolicy"), &["Failed", "TerminatingOrFailed"], found),
    }
}

/// The pods of a Job must not have `restartPolicy: Always`.
fn restart_policy(spec: &Spot<'_>, found: &mut Found) {
    let template = spec.field("template");
    let pod = template.field("spec");
    let policy = pod.field("restartPolicy");
    match policy.text() {
        "Always" | "" => policy.required(found, "valid values: \"OnFailure\", \"Never\""),
        "OnFailure" if spec.field("podFailurePolicy").is_set() => {
            policy.invalid(found, "only \"Never\" is supported when podFailurePolicy is specified");
        }
        _ => one_of(&policy, &["OnFailure", "Never"], found),
    }
}

/// The name of an indexed Job must be valid as the prefix of its pods' host names.
fn indexed_names(object: &Value, spec: &Spot<'_>, found: &mut Found) {
    let completions = spec.field("completions").int();
    if spec.field("completionMode").text() == "Indexed" && completions > 0 {
        let name = meta::name(object);
        let longest = format!("{name}-{}", completions - 1);
        if !crate::names::dns1123_label(&longest).is_empty() {
            let why = format!("will not able to create pod with invalid DNS label: {longest}");
            found.push(Violation::invalid("metadata.name", name, &why));
        }
    }
}

fn fixed(new: &Spot<'_>, old: &Spot<'_>, found: &mut Found) {
    completions(new, old, found);
    immutable(&new.field("selector"), &old.field("selector"), found);
    fixed_template(new, old, found);
    let fields = [
        "completionMode",
        "podFailurePolicy",
        "backoffLimitPerIndex",
        "managedBy",
        "successPolicy",
    ];
    fields.iter().for_each(|field| immutable(&new.field(field), &old.field(field), found));
}

fn completions(new: &Spot<'_>, old: &Spot<'_>, found: &mut Found) {
    let completions = new.field("completions");
    if new.field("completionMode").text() != "Indexed" {
        immutable(&completions, &old.field("completions"), found);
    } else if completions.value != old.field("completions").value
        && completions.is_set()
        && completions.int() != new.field("parallelism").int()
    {
        completions.invalid(found, "can only be modified in tandem with spec.parallelism");
    }
}

/// Of a suspended Job, the scheduling directives of the template may change.
fn fixed_template(new: &Spot<'_>, old: &Spot<'_>, found: &mut Found) {
    let mut before = old.field("template").value.clone();
    if old.field("suspend").is_true() {
        let template = new.field("template");
        for field in ["nodeSelector", "tolerations", "schedulingGates", "affinity"] {
            super::put(&mut before, "spec", field, &template.value["spec"][field]);
        }
        for field in ["labels", "annotations"] {
            super::put(&mut before, "metadata", field, &template.value["metadata"][field]);
        }
    }
    immutable(&new.field("template"), &old.with("template", &before), found);
}

/// Validates a CronJob.
pub fn validate_cron_job(object: &Value, live: Option<&Value>) -> Vec<Violation> {
    let mut found = Vec::new();
    let root = Spot::root(object);
    let spec = root.field("spec");
    let metadata = root.field("metadata");
    let name = metadata.field("name");
    if live.is_none() && name.len() > MOST_NAME_BYTES {
        name.invalid(&mut found, &format!("must be no more than {MOST_NAME_BYTES} characters"));
    }
    let before = live.map(|live| &live["spec"]);
    scheduled(&spec, before, &mut found);
    none_negative(&spec, &["startingDeadlineSeconds"], &mut found);
    if before.is_none_or(|before| before["timeZone"] != *spec.field("timeZone").value) {
        time_zone(&spec.field("timeZone"), &mut found);
    }
    surely_one_of(&spec.field("concurrencyPolicy"), &["Allow", "Forbid", "Replace"], &mut found);
    job_template(&spec.field("jobTemplate").field("spec"), &mut found);
    none_negative(&spec, &["successfulJobsHistoryLimit", "failedJobsHistoryLimit"], &mut found);
    found
}

fn scheduled(spec: &Spot<'_>, before: Option<&Value>, found: &mut Found) {
    let spot = spec.field("schedule");
    if spot.text().is_empty() {
        return spot.required(found, "");
    }
    if let Err(why) = schedule::check(spot.text()) {
        spot.invalid(found, &why);
    }
    let zoned_before = before.is_some_and(|before| before["schedule"].as_str().unwrap_or_default().contains("TZ"));
    if spot.text().contains("TZ") {
        match (zoned_before, spec.field("timeZone").is_set()) {
            (true, true) => spot.invalid(found, "cannot use both timeZone field and TZ or CRON_TZ in schedule"),
            (true, false) => {}
            (false, _) => {
                spot.invalid(found, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead");
            }
        }
    }
}

fn time_zone(zone: &Spot<'_>, found: &mut Found) {
    let name = zone.text();
    if !zone.is_set() {
        return;
    }
    if name.is_empty() {
        return zone.invalid(found, "timeZone must be nil or non-empty string");
    }
    if name.eq_ignore_ascii_case("Local") {
        let why = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        return zone.invalid(found, why);
    }
    if jiff::tz::TimeZone::get(name).is_err() {
        zone.invalid(found, &format!("unknown time zone {name}"));
    }
}

fn job_template(spec: &Spot<'_>, found: &mut Found) {
    validate_spec(spec, found);
    if spec.field("selector").is_set() {
        spec.field("selector").invalid(found, "`selector` will be auto-generated");
    }
    if spec.field("manualSelector").is_true() {
        let (path, shown) = (spec.field("manualSelector").path(), json!(true));
        let why = "supported values: \"nil\", \"false\"";
        found.push(Violation::with_value(path, Reason::NotSupported, &shown, why));
    }
}
