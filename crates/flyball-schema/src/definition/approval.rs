//! Groups of the Kubernetes community need an annotation that says where they were approved.
// apiextensions-apiserver/pkg/apihelpers/helpers.go

use super::text;
use crate::violation::Violation;
use serde_json::Value;

const ANNOTATION: &str = "api-approved.kubernetes.io";
const SEE: &str = "see https://github.com/kubernetes/enhancements/pull/1111";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Approval {
    Missing,
    Invalid,
    Given,
    Bypassed,
}

/// What is wrong with the approval; what was there before and has not changed is let be.
pub(super) fn check(definition: &Value, old: Option<&Value>) -> Option<Violation> {
    let group = text(&definition["spec"], "group");
    let is_protected =
        |owner: &str| group == owner || group.strip_suffix(owner).is_some_and(|rest| rest.ends_with('.'));
    if !is_protected("k8s.io") && !is_protected("kubernetes.io") {
        return None;
    }
    let approval = approval(definition);
    if old.is_some_and(|old| self::approval(old) == approval) {
        return None;
    }
    let path = format!("metadata.annotations[{ANNOTATION}]");
    let rule = format!("protected groups must have approval annotation \"{ANNOTATION}\"");
    match approval {
        Approval::Missing => Some(Violation::required(path, &format!("{rule}, {SEE}"))),
        Approval::Invalid => {
            let detail = format!("{rule} with either a URL or a reason starting with \"unapproved\", {SEE}");
            Some(Violation::invalid(path, annotation(definition), &detail))
        }
        Approval::Given | Approval::Bypassed => None,
    }
}

fn approval(definition: &Value) -> Approval {
    match annotation(definition) {
        "" => Approval::Missing,
        text if text.starts_with("unapproved") => Approval::Bypassed,
        text if has_host(text) => Approval::Given,
        _ => Approval::Invalid,
    }
}

fn annotation(definition: &Value) -> &str {
    text(&definition["metadata"]["annotations"], ANNOTATION)
}

fn has_host(url: &str) -> bool {
    let host = url.split_once("://").and_then(|(_, rest)| rest.split(['/', '?']).next());
    host.is_some_and(|host| !host.is_empty()) && crate::validate::is_request_uri(url)
}
