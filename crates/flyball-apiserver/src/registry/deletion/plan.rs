//! The plan of a deletion: timestamps, grace period and finalizers decide whether an object is marked or removed.

use crate::kinds::spec::{Delay, Dependents};
use crate::registry::Kind;
use crate::registry::object::{self, metadata_mut};
use crate::request::options::{DeleteOptions, Propagation};
use crate::{clock, crd};
use flyball_schema::builtin;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// What a delete does to an object.
pub(super) enum DeletePlan {
    /// Nothing: its deletion is pending already.
    Wait,
    /// Marks it; it is removed once its finalizers and its grace period permit it.
    Mark(Value),
    /// Marks it, so that watches see the deletion timestamp, and removes it.
    MarkAndRemove(Value),
    /// Removes it.
    Remove,
}

/// Plans the deletion of an object.
pub(super) fn plan(kind: &Kind, live: &Value, options: &DeleteOptions, now: Timestamp) -> DeletePlan {
    let mut object = live.clone();
    let mut graceful = None;
    match kind.spec.deletion.delay {
        Delay::None => {}
        Delay::Namespace => return namespace(kind, object, options, now),
        Delay::Definition if object::is_deleting(live) => {}
        Delay::Definition => {
            begin(&mut object, now);
            crd::terminate(&mut object, &clock::seconds(now));
            return DeletePlan::Mark(object);
        }
        Delay::GracePeriod(period) => match grace(&mut object, period, options, now) {
            Grace::Pending => return DeletePlan::Wait,
            Grace::Over => {}
            Grace::Given(seconds) => graceful = Some(seconds),
        },
    }
    keep_finalizers(kind, &mut object, options);
    let waits = !object::finalizers(&object).is_empty();
    match graceful {
        Some(seconds) if waits || seconds > 0 => DeletePlan::Mark(object),
        Some(_) => DeletePlan::MarkAndRemove(object),
        None if waits => {
            mark(&mut object, now);
            if object == *live {
                DeletePlan::Wait
            } else {
                DeletePlan::Mark(object)
            }
        }
        None => DeletePlan::Remove,
    }
}

fn namespace(kind: &Kind, mut object: Value, options: &DeleteOptions, now: Timestamp) -> DeletePlan {
    if !object::is_deleting(&object) {
        begin(&mut object, now);
        object["status"]["phase"] = "Terminating".into();
        keep_finalizers(kind, &mut object, options);
        return DeletePlan::Mark(object);
    }
    if builtin::namespace::has_finalizers(&object) || !object::finalizers(&object).is_empty() {
        return DeletePlan::Wait;
    }
    DeletePlan::Remove
}

fn begin(object: &mut Value, now: Timestamp) {
    metadata_mut(object).insert("deletionTimestamp".into(), clock::seconds(now).into());
}

/// Marks an object of a kind without graceful deletion.
// apiserver/pkg/registry/generic/registry/store.go, markAsDeleting
fn mark(object: &mut Value, now: Timestamp) {
    let at = time(object).filter(|at| *at <= now);
    if !object::is_deleting(object) {
        count(object);
    }
    if at.is_none() {
        begin(object, now);
    }
    metadata_mut(object).insert("deletionGracePeriodSeconds".into(), 0.into());
}

fn count(object: &mut Value) {
    let generation = object::generation(object);
    if generation > 0 {
        metadata_mut(object).insert("generation".into(), (generation + 1).into());
    }
}

fn time(object: &Value) -> Option<Timestamp> {
    object::text(object, "deletionTimestamp").parse().ok()
}

enum Grace {
    /// The object is marked with a period of so many seconds.
    Given(i64),
    /// It was marked before, and its period is not to be changed.
    Pending,
    /// It was marked before, and its period is over.
    Over,
}

// apiserver/pkg/registry/rest/delete.go, BeforeDelete
fn grace(
    object: &mut Value,
    period: fn(&Value, &DeleteOptions) -> i64,
    options: &DeleteOptions,
    now: Timestamp,
) -> Grace {
    let seconds = |seconds: i64| SignedDuration::from_secs(seconds);
    let Some(at) = time(object) else {
        let period = period(object, options);
        begin(object, now + seconds(period));
        metadata_mut(object).insert("deletionGracePeriodSeconds".into(), period.into());
        count(object);
        return Grace::Given(period);
    };
    let given = object::metadata(object)
        .get("deletionGracePeriodSeconds")
        .and_then(Value::as_i64)
        .unwrap_or(0);
    if given == 0 {
        return Grace::Over;
    }
    let wanted = options.grace_period_seconds.map(|wanted| if wanted < 0 { 1 } else { wanted });
    let Some(mut period) = wanted.filter(|wanted| *wanted < given) else {
        return Grace::Pending;
    };
    let mut at = at - seconds(given) + seconds(period);
    if at < now {
        at = now;
        period = period.min(1);
    }
    begin(object, at);
    metadata_mut(object).insert("deletionGracePeriodSeconds".into(), period.into());
    Grace::Given(period)
}

/// Adds and removes the finalizers through which the garbage collector learns what to do with dependents.
// apiserver/pkg/registry/generic/registry/store.go, deletionFinalizersForGarbageCollection
fn keep_finalizers(kind: &Kind, object: &mut Value, options: &DeleteOptions) {
    let before: Vec<String> = object::finalizers(object).into_iter().map(str::to_owned).collect();
    let present = before.iter().find(|name| *name == ORPHAN || *name == FOREGROUND).map(String::as_str);
    let wanted = match (kind.spec.deletion.dependents, options.propagation()) {
        (Dependents::Unsupported, _) => None,
        (_, Some(Propagation::Orphan)) => Some(ORPHAN),
        (_, Some(Propagation::Foreground)) => Some(FOREGROUND),
        (_, Some(Propagation::Background)) => None,
        (_, None) if present.is_some() => present,
        (Dependents::Orphaned, None) => Some(ORPHAN),
        (Dependents::Deleted, None) => None,
    };
    let others = before.iter().map(String::as_str).filter(|name| *name != ORPHAN && *name != FOREGROUND);
    let after: Vec<Value> = others.chain(wanted).map(Value::from).collect();
    match after.is_empty() {
        true => metadata_mut(object).remove("finalizers"),
        false if wanted == present => None,
        false => metadata_mut(object).insert("finalizers".into(), after.into()),
    };
}
