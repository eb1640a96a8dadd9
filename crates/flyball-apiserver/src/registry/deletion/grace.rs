//! The preconditions of a delete, and the grace period of a pod.

use crate::registry::{Kind, object};
use crate::request::options::DeleteOptions;
use crate::status::{Result, Status};
use serde_json::Value;

/// Refuses to delete an object that does not meet the preconditions.
// apiserver/pkg/registry/rest/delete.go, BeforeDelete; the storages of namespaces and definitions check by themselves.
pub(crate) fn check(kind: &Kind, live: &Value, options: &DeleteOptions) -> Result<()> {
    let Some(preconditions) = &options.preconditions else {
        return Ok(());
    };
    let own_words = kind.is("", "namespaces") || kind.is("apiextensions.k8s.io", "customresourcedefinitions");
    let wanted = [
        ("UID", &preconditions.uid, "uid", "deleted and then recreated"),
        ("ResourceVersion", &preconditions.resource_version, "resourceVersion", "modified"),
    ];
    for (what, wanted, field, else_) in wanted {
        let Some(wanted) = wanted else { continue };
        let found = object::text(live, field);
        if wanted == found {
            continue;
        }
        let name = object::name(live);
        if own_words {
            let why = format!("Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}");
            return Err(Status::conflict(&kind.resource, name, why));
        }
        let why = format!(
            "the {what} in the precondition ({wanted}) does not match the {what} in record ({found}). \
             The object might have been {else_}"
        );
        return Err(Status::precondition_failed(&kind.resource, name, why));
    }
    Ok(())
}

/// The grace period of a pod, in seconds.
// pkg/registry/core/pod/strategy.go, CheckGracefulDelete
pub(crate) fn period(pod: &Value, options: &DeleteOptions) -> i64 {
    let is_placed = pod["spec"]["nodeName"].as_str().is_some_and(|node| !node.is_empty());
    let has_ended = matches!(pod["status"]["phase"].as_str(), Some("Failed" | "Succeeded"));
    if !is_placed || has_ended {
        return 0;
    }
    let usual = || pod["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or(0);
    match options.grace_period_seconds.unwrap_or_else(usual) {
        seconds if seconds < 0 => 1,
        seconds => seconds,
    }
}
