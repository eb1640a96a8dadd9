//! What a namespace's status says of its deletion, in upstream's words.

use super::WAIT;
use crate::{kinds::Kind, refusal};
use k8s_openapi::{
    api::core::v1::{Namespace, NamespaceCondition, NamespaceStatus},
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time},
};
use std::{collections::BTreeMap, time::Duration};

/// What is left of a namespace's content.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// How many objects of each kind are left.
    remaining: BTreeMap<String, usize>,
    /// How many of them wait for each finalizer.
    finalizers: BTreeMap<String, usize>,
    /// What could not be deleted, and why.
    failures: Vec<String>,
}

/// A condition's type, and its reason and message when all is well.
const CONDITIONS: [(&str, &str, &str); 5] = [
    (
        "NamespaceDeletionDiscoveryFailure",
        "ResourcesDiscovered",
        "All resources successfully discovered",
    ),
    (
        "NamespaceDeletionGroupVersionParsingFailure",
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    (
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    ("NamespaceContentRemaining", "ContentRemoved", "All content successfully removed"),
    (
        "NamespaceFinalizersRemaining",
        "ContentHasNoFinalizers",
        "All content-preserving finalizers finished",
    ),
];

impl Report {
    /// Takes down what is left of a kind.
    pub(super) fn add(&mut self, kind: &Kind, left: kube::Result<Vec<ObjectMeta>>) {
        let left = match left {
            Ok(left) => left,
            // The kind went while we looked at it, and its objects with it.
            Err(error) if refusal::is_not_found(&error) => return,
            Err(error) => return self.failures.push(refusal::message(&error)),
        };
        if !left.is_empty() {
            self.remaining
                .insert(format!("{}.{}", kind.resource.plural, kind.resource.group), left.len());
        }
        for finalizer in left.into_iter().filter_map(|object| object.finalizers).flatten() {
            *self.finalizers.entry(finalizer).or_default() += 1;
        }
    }

    /// Whether nothing is left.
    pub(super) fn is_empty(&self) -> bool {
        self.remaining.is_empty() && self.failures.is_empty()
    }

    /// How long to wait before looking again; none if nothing is left.
    pub(super) fn wait(&self) -> Option<Duration> {
        (!self.is_empty()).then_some(WAIT)
    }

    /// The namespace's status with what is left in it.
    // namespace/deletion/status_condition_utils.go
    pub(super) fn status(&self, namespace: &Namespace, now: &Time) -> NamespaceStatus {
        let mut status = namespace.status.clone().unwrap_or_default();
        let conditions = status.conditions.get_or_insert_default();
        for (type_, reason, message) in CONDITIONS {
            let trouble = self.trouble(type_);
            let (state, reason, message) = match trouble {
                Some((reason, message)) => ("True", reason, message),
                None => ("False", reason, message.to_owned()),
            };
            set(conditions, type_, state, reason, message, now);
        }
        status
    }

    fn trouble(&self, type_: &str) -> Option<(&'static str, String)> {
        let (counts, reason, start, of) = match type_ {
            "NamespaceContentRemaining" => {
                (&self.remaining, "SomeResourcesRemain", "Some resources are remaining: ", " has ")
            }
            "NamespaceFinalizersRemaining" => {
                let start = "Some content in the namespace has finalizers remaining: ";
                (&self.finalizers, "SomeFinalizersRemain", start, " in ")
            }
            "NamespaceDeletionContentFailure" if !self.failures.is_empty() => {
                let mut failures = self.failures.clone();
                failures.sort();
                let (count, failures) = (failures.len(), failures.join(", "));
                let message = format!("Failed to delete all resource types, {count} remaining: {failures}");
                return Some(("ContentDeletionFailed", message));
            }
            _ => return None,
        };
        let counts: Vec<_> = counts
            .iter()
            .map(|(what, count)| format!("{what}{of}{count} resource instances"))
            .collect();
        (!counts.is_empty()).then(|| (reason, format!("{start}{}", counts.join(", "))))
    }
}

fn set(conditions: &mut Vec<NamespaceCondition>, type_: &str, state: &str, reason: &str, message: String, now: &Time) {
    let known = conditions.iter().position(|condition| condition.type_ == type_);
    let mut condition = NamespaceCondition {
        type_: type_.into(),
        status: state.into(),
        reason: Some(reason.into()),
        message: Some(message),
        last_transition_time: Some(now.clone()),
    };
    match known {
        Some(known) => {
            if conditions[known].status == state {
                condition.last_transition_time = conditions[known].last_transition_time.clone();
            }
            conditions[known] = condition;
        }
        None => conditions.push(condition),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::api::ApiResource;

    fn kind(group: &str, plural: &str) -> Kind {
        let resource = ApiResource {
            group: group.into(),
            version: "v1".into(),
            api_version: String::new(),
            kind: String::new(),
            plural: plural.into(),
        };
        Kind { resource, namespaced: true, verbs: Vec::new() }
    }

    fn held(finalizer: &str) -> ObjectMeta {
        ObjectMeta {
            finalizers: Some(vec![finalizer.into()]),
            ..ObjectMeta::default()
        }
    }

    fn told(report: &Report, namespace: &mut Namespace, seconds: i64) -> Vec<String> {
        let now = Time(jiff::Timestamp::from_second(seconds).unwrap());
        namespace.status = Some(report.status(namespace, &now));
        let conditions = namespace.status.clone().unwrap().conditions.unwrap().into_iter();
        let troubles = conditions.filter(|condition| condition.status == "True");
        troubles
            .map(|condition| format!("{}: {}", condition.reason.unwrap(), condition.message.unwrap()))
            .collect()
    }

    #[test]
    fn a_namespace_says_what_is_left_in_it() {
        let mut report = Report::default();
        report.add(&kind("", "pods"), Ok(vec![ObjectMeta::default(), ObjectMeta::default()]));
        report.add(&kind("example.dev", "greetings"), Ok(vec![held("example.dev/bye")]));
        report.add(&kind("apps", "deployments"), Ok(vec![]));
        let expected = [
            "SomeResourcesRemain: Some resources are remaining: greetings.example.dev has 1 resource instances, pods. has 2 resource instances",
            "SomeFinalizersRemain: Some content in the namespace has finalizers remaining: example.dev/bye in 1 resource instances",
        ];
        assert_eq!(told(&report, &mut Namespace::default(), 0), expected);
        assert_eq!(report.wait(), Some(WAIT));
    }

    #[test]
    fn a_namespace_that_is_empty_says_so_and_since_when() {
        let mut namespace = Namespace::default();
        told(&Report::default(), &mut namespace, 1);
        assert_eq!(told(&Report::default(), &mut namespace, 2), [""; 0]);
        let conditions = namespace.status.unwrap().conditions.unwrap();
        assert_eq!(conditions.len(), 5);
        assert!(
            conditions
                .iter()
                .all(|condition| condition.last_transition_time.as_ref().unwrap().0.as_second() == 1)
        );
    }
}
