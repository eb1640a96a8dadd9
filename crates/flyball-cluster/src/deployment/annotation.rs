//! The annotations by which a Deployment keeps its history: revisions, and the sizes that its ReplicaSets were scaled for.

use super::limits::Limits;
use k8s_openapi::{
    api::apps::v1::{Deployment, ReplicaSet},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use std::{collections::BTreeMap, sync::Arc};

/// Counts the templates of a Deployment; the current ReplicaSet has the highest.
pub(crate) const REVISION: &str = "deployment.kubernetes.io/revision";
/// The revisions that a ReplicaSet had before it was rolled back to.
const REVISION_HISTORY: &str = "deployment.kubernetes.io/revision-history";
/// `spec.replicas` of the Deployment when a ReplicaSet was last scaled.
pub(crate) const DESIRED_REPLICAS: &str = "deployment.kubernetes.io/desired-replicas";
/// The most pods that the Deployment might have had then.
pub(crate) const MAX_REPLICAS: &str = "deployment.kubernetes.io/max-replicas";

const HISTORY_LENGTH: usize = 2000;

type Annotations = BTreeMap<String, String>;

/// The number that an annotation holds, if it does.
pub(crate) fn number(meta: &ObjectMeta, annotation: &str) -> Option<i32> {
    let number = meta.annotations.as_ref()?.get(annotation)?.parse().ok()?;
    (number >= 0).then_some(number)
}

/// The revision of a ReplicaSet; 0 if it has none.
pub(crate) fn revision(set: &ReplicaSet) -> i64 {
    let annotations = set.metadata.annotations.as_ref();
    let revision = annotations.and_then(|annotations| annotations.get(REVISION));
    revision.and_then(|revision| revision.parse().ok()).unwrap_or_default()
}

/// The revision that comes after all of these.
pub(crate) fn next_revision(old: &[Arc<ReplicaSet>]) -> i64 {
    old.iter().map(|set| revision(set)).max().unwrap_or_default() + 1
}

/// What a ReplicaSet records when it is scaled.
pub(crate) fn sizes(limits: Limits) -> [(String, String); 2] {
    let entry = |name: &str, number: i32| (name.to_owned(), number.to_string());
    [
        entry(DESIRED_REPLICAS, limits.wanted),
        entry(MAX_REPLICAS, limits.most()),
    ]
}

/// The annotations that the ReplicaSet of the current template should have: those of its Deployment, and its revision.
// deployment_util.go, SetNewReplicaSetAnnotations
pub(crate) fn of_new(deployment: &Deployment, set: &ObjectMeta, revision: i64) -> Annotations {
    let mut annotations = set.annotations.clone().unwrap_or_default();
    let inherited = deployment.metadata.annotations.iter().flatten().filter(|(name, _)| is_inherited(name));
    annotations.extend(inherited.map(|(name, value)| (name.clone(), value.clone())));
    let before = annotations.get(REVISION).cloned();
    match before.as_deref().map(str::parse::<i64>) {
        Some(Err(_)) => return annotations,
        Some(Ok(before)) if before >= revision => return annotations,
        _ => annotations.insert(REVISION.into(), revision.to_string()),
    };
    if let Some(before) = before {
        let history = annotations.remove(REVISION_HISTORY).unwrap_or_default();
        annotations.insert(REVISION_HISTORY.into(), lengthened(&history, &before));
    }
    annotations
}

/// The history with one more revision; the oldest are forgotten when it becomes too long.
fn lengthened(history: &str, revision: &str) -> String {
    let mut revisions: Vec<&str> = history.split(',').filter(|revision| !revision.is_empty()).collect();
    revisions.push(revision);
    while revisions.iter().map(|revision| revision.len() + 1).sum::<usize>() > HISTORY_LENGTH + 1 {
        revisions.remove(0);
    }
    revisions.join(",")
}

fn is_inherited(annotation: &str) -> bool {
    !matches!(
        annotation,
        "kubectl.kubernetes.io/last-applied-configuration"
            | REVISION
            | REVISION_HISTORY
            | DESIRED_REPLICAS
            | MAX_REPLICAS
            | "deprecated.deployment.rollback.to"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(annotations: &[(&str, &str)]) -> ObjectMeta {
        let annotations = annotations.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        ObjectMeta {
            annotations: Some(annotations.collect()),
            ..ObjectMeta::default()
        }
    }

    fn of(deployment: &[(&str, &str)], set: &[(&str, &str)], revision: i64) -> Annotations {
        let deployment = Deployment { metadata: meta(deployment), ..Deployment::default() };
        of_new(&deployment, &meta(set), revision)
    }

    #[test]
    fn a_set_inherits_what_users_wrote_but_not_what_controllers_keep() {
        let written = [
            ("kubernetes.io/change-cause", "why"),
            (REVISION, "9"),
            (DESIRED_REPLICAS, "1"),
        ];
        let annotations = of(&written, &[], 1);
        let expected = [
            ("kubernetes.io/change-cause".into(), "why".into()),
            (REVISION.into(), "1".into()),
        ];
        assert_eq!(annotations, Annotations::from(expected));
    }

    #[test]
    fn a_set_that_is_rolled_back_to_remembers_its_revisions() {
        let once = of(&[], &[(REVISION, "1")], 3);
        assert_eq!((once[REVISION].as_str(), once[REVISION_HISTORY].as_str()), ("3", "1"));
        let twice = of(&[], &[(REVISION, "3"), (REVISION_HISTORY, "1")], 5);
        assert_eq!((twice[REVISION].as_str(), twice[REVISION_HISTORY].as_str()), ("5", "1,3"));
    }

    #[test]
    fn a_revision_never_goes_back() {
        assert_eq!(of(&[], &[(REVISION, "7")], 2)[REVISION], "7");
        assert_eq!(of(&[], &[(REVISION, "odd")], 2)[REVISION], "odd");
    }

    #[test]
    fn a_long_history_forgets_its_beginning() {
        let history = vec!["123456789"; 200].join(",");
        let longer = lengthened(&history, "7");
        assert!(longer.len() <= HISTORY_LENGTH && longer.ends_with(",7"), "{}", longer.len());
    }
}
