//! The rules of the kinds that run pods (kstatus, `core.go`).

use crate::context::ready::{Check, condition, enough, fails, lacks, number, text};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

/// How long a pod may be unschedulable before that is a failure.
const SCHEDULE: SignedDuration = SignedDuration::from_secs(15);

pub(crate) fn deployment(object: &Value) -> Check {
    let progressing = condition(object, "Progressing");
    if progressing
        .as_ref()
        .is_some_and(|progressing| progressing.reason == "ProgressDeadlineExceeded")
    {
        return fails("its progress deadline has passed");
    }
    let wanted = number(object, "/spec/replicas", 1);
    let [replicas, updated, ready, available] = ["replicas", "updatedReplicas", "readyReplicas", "availableReplicas"]
        .map(|field| number(object, &format!("/status/{field}"), 0));
    enough("replicas", replicas, wanted)?;
    enough("updated", updated, wanted)?;
    surplus(replicas, wanted)?;
    enough("available", available, updated)?;
    enough("ready", ready, wanted)?;
    // Without a deadline the controller tells nothing of progress.
    let told = number(object, "/spec/progressDeadlineSeconds", i32::MAX.into()) != i64::from(i32::MAX);
    let rolled_out = progressing.is_some_and(|it| it.is("True") && it.reason == "NewReplicaSetAvailable");
    if told && !rolled_out {
        return lacks("its newest ReplicaSet is not available");
    }
    match condition(object, "Available") {
        Some(available) if available.is("True") => Ok(()),
        _ => lacks("it is not available"),
    }
}

pub(crate) fn stateful_set(object: &Value) -> Check {
    if text(object, "/spec/updateStrategy/type") == "OnDelete" {
        return Ok(());
    }
    let wanted = number(object, "/spec/replicas", 1);
    let [replicas, ready, current, updated] = ["replicas", "readyReplicas", "currentReplicas", "updatedReplicas"]
        .map(|field| number(object, &format!("/status/{field}"), 0));
    enough("replicas", replicas, wanted)?;
    enough("ready", ready, wanted)?;
    surplus(replicas, wanted)?;
    let partition = object.pointer("/spec/updateStrategy/rollingUpdate/partition").and_then(Value::as_i64);
    if let Some(partition) = partition {
        return enough("updated", updated, wanted - partition);
    }
    enough("current", current, wanted)?;
    if text(object, "/status/currentRevision") != text(object, "/status/updateRevision") {
        return lacks("not every replica has the newest revision");
    }
    Ok(())
}

pub(crate) fn daemon_set(object: &Value) -> Check {
    let wanted = object.pointer("/status/desiredNumberScheduled").and_then(Value::as_i64);
    let observed = object["status"]["observedGeneration"].is_i64() && object["metadata"]["generation"].is_i64();
    let Some(wanted) = wanted.filter(|_| observed) else {
        return lacks("its controller has not seen it yet");
    };
    for (what, field) in [
        ("scheduled", "currentNumberScheduled"),
        ("updated", "updatedNumberScheduled"),
        ("available", "numberAvailable"),
        ("ready", "numberReady"),
    ] {
        enough(what, number(object, &format!("/status/{field}"), 0), wanted)?;
    }
    Ok(())
}

pub(crate) fn replica_set(object: &Value) -> Check {
    if let Some(failure) = condition(object, "ReplicaFailure").filter(|failure| failure.is("True")) {
        return lacks(failure.told("its pods cannot be made"));
    }
    let wanted = number(object, "/spec/replicas", 1);
    for (what, field) in [
        ("labelled", "fullyLabeledReplicas"),
        ("available", "availableReplicas"),
        ("ready", "readyReplicas"),
    ] {
        enough(what, number(object, &format!("/status/{field}"), 0), wanted)?;
    }
    surplus(number(object, "/status/replicas", 0), wanted)
}

/// A Job is ready once it runs: what it is for may take days.
pub(crate) fn job(object: &Value) -> Check {
    let holds = |r#type| condition(object, r#type).filter(|condition| condition.is("True"));
    if let Some(failed) = holds("Failed") {
        return fails(failed.told("it has failed"));
    }
    if holds("Complete").is_some() || holds("Suspended").is_some() || !object["status"]["startTime"].is_null() {
        return Ok(());
    }
    lacks("it has not started")
}

pub(crate) fn pod(object: &Value, now: Timestamp) -> Check {
    match text(object, "/status/phase") {
        "Succeeded" => Ok(()),
        "Failed" => fails("its containers have ended, and not well"),
        "Running" => running(object),
        "Pending" => pending(object, now),
        _ => lacks("it has no phase"),
    }
}

fn running(object: &Value) -> Check {
    if condition(object, "Ready").is_some_and(|ready| ready.is("True")) {
        return Ok(());
    }
    let lists = ["initContainerStatuses", "containerStatuses"].map(|field| object["status"][field].as_array());
    let statuses = lists.into_iter().flatten().flatten();
    let looping = statuses.filter(|status| text(status, "/state/waiting/reason") == "CrashLoopBackOff");
    let names: Vec<_> = looping.map(|status| text(status, "/name")).collect();
    if names.is_empty() {
        lacks("it runs and is not ready")
    } else {
        fails(format!("containers crash again and again: {}", names.join(", ")))
    }
}

fn pending(object: &Value, now: Timestamp) -> Check {
    let unscheduled = condition(object, "PodScheduled").filter(|it| it.is("False") && it.reason == "Unschedulable");
    if unscheduled.is_none() {
        return lacks("it is pending");
    }
    let created: Option<Timestamp> = text(object, "/metadata/creationTimestamp").parse().ok();
    match created {
        Some(created) if now.duration_since(created) >= SCHEDULE => fails("no node takes it"),
        _ => lacks("it is not scheduled yet"),
    }
}

fn surplus(has: i64, wanted: i64) -> Check {
    if has > wanted {
        lacks(format!("{} too many are still there", has - wanted))
    } else {
        Ok(())
    }
}
