//! Validation of a Job's status: most rules apply only to fields that change.
// pkg/apis/batch/validation/validation.go, ValidateJobStatusUpdate; pkg/registry/batch/job/strategy.go,
// getStatusValidationOptions

use super::indexes;
use crate::builtin::rules::none_negative;
use crate::builtin::spot::{Found, Spot};
use crate::violation::{Reason, Violation};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::HashSet;

/// A Job with its new and its old status.
struct Change<'a> {
    job: &'a Value,
    new: Spot<'a>,
    old: Spot<'a>,
}

/// Validates an update of a Job's status.
pub fn validate_job_status(object: &Value, live: &Value) -> Vec<Violation> {
    let mut found = Vec::new();
    let (new, old) = (Spot::root(object), Spot::root(live));
    let change = Change {
        job: object,
        new: new.field("status"),
        old: old.field("status"),
    };
    none_negative(&change.new, &["active", "succeeded", "failed", "ready", "terminating"], &mut found);
    uncounted(&change.new.field("uncountedTerminatedPods"), &mut found);
    contradictions(&change, &mut found);
    times(&change, &mut found);
    reasons(&change, &mut found);
    finished(&change, &mut found);
    completed_and_failed(&change, &mut found);
    counts(&change, &mut found);
    criteria(&change, &mut found);
    taken_back(&change, &mut found);
    found
}

impl Change<'_> {
    fn is(&self, condition: &str) -> bool {
        holds(&self.new, condition, "True")
    }

    fn was(&self, condition: &str) -> bool {
        holds(&self.old, condition, "True")
    }

    fn turned(&self, condition: &str) -> bool {
        self.is(condition) != self.was(condition)
    }

    fn is_finished(&self) -> bool {
        self.is("Complete") || self.is("Failed")
    }

    fn has_finished(&self) -> bool {
        self.is_finished() != (self.was("Complete") || self.was("Failed"))
    }

    /// Whether a field changed; an absent number equals 0 where Go has no pointer.
    fn changed(&self, field: &str) -> bool {
        let (new, old) = (self.new.field(field), self.old.field(field));
        match field {
            "active" => new.int() != old.int(),
            "completedIndexes" => new.text() != old.text(),
            _ => new.value != old.value,
        }
    }

    fn spec(&self, field: &str) -> &Value {
        &self.job["spec"][field]
    }

    fn completions(&self) -> Option<i64> {
        self.spec("completions").as_i64()
    }

    fn refuse(&self, why: &str, found: &mut Found) {
        found.push(Violation::plain(self.new.field("conditions").path(), Reason::Invalid, why));
    }
}

fn holds(status: &Spot<'_>, condition: &str, state: &str) -> bool {
    let mut conditions = status.value["conditions"].as_array().into_iter().flatten();
    conditions.any(|one| one["type"] == condition && one["status"] == state)
}

fn uncounted(pods: &Spot<'_>, found: &mut Found) {
    let mut seen = HashSet::new();
    for field in ["succeeded", "failed"] {
        for pod in pods.field(field).items() {
            if pod.text().is_empty() {
                pod.invalid(found, "must not be empty");
            } else if !seen.insert(pod.text().to_owned()) {
                pod.duplicate(found, pod.text());
            }
        }
    }
}

fn contradictions(change: &Change<'_>, found: &mut Found) {
    let turned = |other: &str| change.turned("Complete") || change.turned(other);
    if turned("Failed") && change.is("Complete") && change.is("Failed") {
        change.refuse("cannot set Complete=True and Failed=true conditions", found);
    }
    if turned("FailureTarget") && change.is("Complete") && change.is("FailureTarget") {
        change.refuse("cannot set Complete=True and FailureTarget=true conditions", found);
    }
}

fn times(change: &Change<'_>, found: &mut Found) {
    let (start, end) = (change.new.field("startTime"), change.new.field("completionTime"));
    if change.turned("Complete") || change.changed("completionTime") {
        if end.is_set() && !change.is("Complete") {
            end.invalid(found, "cannot set completionTime when there is no Complete=True condition");
        }
        if !end.is_set() && change.is("Complete") {
            end.required(found, "completionTime is required for Complete jobs");
        }
    }
    let time = |spot: &Spot<'_>| spot.text().parse::<Timestamp>().ok();
    let is_before = time(&end).zip(time(&start)).is_some_and(|(end, start)| end < start);
    if is_before && (change.changed("startTime") || change.changed("completionTime")) {
        end.invalid(found, "must be equal to or after `startTime`");
    }
}

fn reasons(change: &Change<'_>, found: &mut Found) {
    let failed = change.turned("Failed") || change.changed("failedIndexes");
    if failed && change.is("Failed") && !change.is("FailureTarget") {
        change.refuse("cannot set Failed=True condition without the FailureTarget=true condition", found);
    }
    let complete = change.turned("Complete") || change.turned("SuccessCriteriaMet");
    if complete && change.is("Complete") && !change.is("SuccessCriteriaMet") {
        change.refuse("cannot set Complete=True condition without the SuccessCriteriaMet=true condition", found);
    }
}

fn finished(change: &Change<'_>, found: &mut Found) {
    let looks_at = |field: &str| change.is_finished() && (change.has_finished() || change.changed(field));
    let (active, start) = (change.new.field("active"), change.new.field("startTime"));
    if looks_at("active") && active.int() > 0 {
        active.invalid(found, "active>0 is invalid for finished job");
    }
    let never_started = *change.spec("suspend") == true && change.completions() == Some(0);
    if looks_at("startTime") && !start.is_set() && !never_started {
        start.required(found, "startTime is required for finished job");
    }
    let pods = change.new.field("uncountedTerminatedPods");
    let (failed, succeeded) = (&pods.value["failed"], &pods.value["succeeded"]);
    let is_empty = |list: &Value| list.as_array().is_none_or(Vec::is_empty);
    if looks_at("uncountedTerminatedPods") && !(is_empty(failed) && is_empty(succeeded)) {
        let shown = json!({"Succeeded": succeeded, "Failed": failed});
        pods.invalid_as(found, shown, "must be empty for finished job");
    }
}

fn completed_and_failed(change: &Change<'_>, found: &mut Found) {
    let (completed, failed) = (change.new.field("completedIndexes"), change.new.field("failedIndexes"));
    let limited = !change.spec("backoffLimitPerIndex").is_null();
    let wrong = |indexes: &Spot<'_>| indexes::count(indexes.text(), change.completions()?).err();
    if let Some(why) = wrong(&completed).filter(|_| change.changed("completedIndexes")) {
        completed.invalid(found, &format!("error parsing completedIndexes: {why}"));
    }
    if let Some(why) = wrong(&failed).filter(|_| change.changed("failedIndexes") && limited && failed.is_set()) {
        failed.invalid(found, &format!("error parsing failedIndexes: {why}"));
    }
    let indexed = *change.spec("completionMode") == "Indexed";
    if change.changed("completedIndexes") && !completed.text().is_empty() && !indexed {
        completed.invalid(found, "cannot set non-empty completedIndexes when non-indexed completion mode");
    }
    if change.changed("failedIndexes") && failed.is_set() && !limited {
        failed.invalid(found, "cannot set non-null failedIndexes when backoffLimitPerIndex is null");
    }
    if change.changed("completedIndexes") || change.changed("failedIndexes") {
        let both = change
            .completions()
            .and_then(|all| indexes::overlap(completed.text(), failed.text(), all));
        if let Some(index) = both {
            failed.invalid(found, &format!("failedIndexes and completedIndexes overlap at index: {index}"));
        }
    }
}

fn counts(change: &Change<'_>, found: &mut Found) {
    let (terminating, ready) = (change.new.field("terminating"), change.new.field("ready"));
    let looked_at = change.has_finished() || change.changed("terminating");
    if looked_at && terminating.int() > 0 && change.is_finished() {
        terminating.invalid(found, "terminating>0 is invalid for finished job");
    }
    let looked_at = change.changed("ready") || change.changed("active");
    if looked_at && ready.is_set() && ready.int() > change.new.field("active").int() {
        ready.invalid(found, "cannot set more ready pods than active");
    }
}

fn criteria(change: &Change<'_>, found: &mut Found) {
    let met = change.is("SuccessCriteriaMet");
    if met && change.is("Failed") {
        change.refuse("cannot set SuccessCriteriaMet=True and Failed=true conditions", found);
    }
    if met && change.is("FailureTarget") {
        change.refuse("cannot set SuccessCriteriaMet=True and FailureTarget=true conditions", found);
    }
    if !change.spec("successPolicy").is_null() && !met && change.is("Complete") {
        let why = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True";
        change.refuse(why, found);
    }
}

fn taken_back(change: &Change<'_>, found: &mut Found) {
    for condition in ["Failed", "Complete", "FailureTarget"] {
        if change.was(condition) && !change.is(condition) {
            change.refuse(&format!("cannot disable the terminal {condition}=True condition"), found);
        }
    }
    let sinks = |field: &str| change.new.field(field).int() < change.old.field(field).int();
    if sinks("failed") {
        let failed = change.new.field("failed");
        failed.invalid_as(found, failed.int(), "cannot decrease the failed counter");
    }
    let scales =
        *change.spec("completionMode") == "Indexed" && change.spec("completions") == change.spec("parallelism");
    if sinks("succeeded") && !scales {
        let succeeded = change.new.field("succeeded");
        succeeded.invalid_as(found, succeeded.int(), "cannot decrease the succeeded counter");
    }
    let (end, start) = (change.new.field("completionTime"), change.new.field("startTime"));
    if end.is_set() && change.old.field("completionTime").is_set() && change.changed("completionTime") {
        end.invalid(found, "field is immutable");
    }
    let resumes = change.was("Suspended") && holds(&change.new, "Suspended", "False");
    let was_started = change.old.field("startTime").is_set() && change.changed("startTime");
    if was_started && !resumes && *change.spec("suspend") != true {
        start.invalid(found, "field is immutable for unsuspended job once set");
    }
    if change.was("SuccessCriteriaMet") && !change.is("SuccessCriteriaMet") {
        change.refuse("cannot disable the SuccessCriteriaMet=True condition", found);
    }
    if change.was("Complete") && !change.was("SuccessCriteriaMet") && change.is("SuccessCriteriaMet") {
        let why = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions";
        change.refuse(why, found);
    }
}
