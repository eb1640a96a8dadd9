//! Which changes matter: a controller is not triggered by the others. Deletions always matter, unless asked for otherwise.

use crate::cache::Change;
use crate::cache::object::Object;
use serde::de::DeserializeOwned;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

/// Decides whether a change triggers a controller; see [`Controller::when`](crate::Controller::when).
///
/// An object that is created, begins to be deleted, or is gone passes whatever the predicate says, also under
/// [`Predicate::not`]: what compares two versions has no opinion on it. [`Predicate::matching`] has one on created
/// objects; [`Predicate::and_deletions`] lets it have one on deleted objects too.
#[derive(Clone)]
pub struct Predicate {
    judge: Arc<Judge>,
    deletions: bool,
}

type Judge = dyn Fn(Option<&Object>, Option<&Object>) -> Option<bool> + Send + Sync;

impl Predicate {
    /// The specification changed: `metadata.generation` did. Of kinds that count no generations every change passes.
    pub fn generation() -> Predicate {
        Predicate::comparing(|old, new| {
            let (old, new) = (old.json(), new.json());
            let (old, new) = (old.meta(), new.meta());
            old.generation != new.generation || (new.generation == 0 && old.resource_version != new.resource_version)
        })
    }

    /// The labels changed.
    pub fn labels() -> Predicate {
        Predicate::comparing(|old, new| old.json().meta().labels() != new.json().meta().labels())
    }

    /// The annotations changed.
    pub fn annotations() -> Predicate {
        Predicate::comparing(|old, new| old.json().meta().annotations() != new.json().meta().annotations())
    }

    /// Anything changed at all: the resource version did. It is so for every change that a watch tells of.
    pub fn resource_version() -> Predicate {
        Predicate::comparing(|old, new| old.resource_version() != new.resource_version())
    }

    /// Compares an object as it was with the object as it is. An object that does not decode passes.
    pub fn changed<K: DeserializeOwned>(changed: impl Fn(&K, &K) -> bool + Send + Sync + 'static) -> Predicate {
        Predicate::judging(move |old, new| {
            let (old, new) = (old?.decode::<K>().ok()?, new?.decode::<K>().ok()?);
            Some(changed(&old, &new))
        })
    }

    /// Looks at an object alone. It passes if the object is such a one now or was before, so that leaving is noticed, too.
    pub fn matching<K: DeserializeOwned>(matches: impl Fn(&K) -> bool + Send + Sync + 'static) -> Predicate {
        Predicate::judging(move |old, new| {
            let decoded = [old, new].into_iter().flatten().map(|object| object.decode::<K>().ok());
            let decoded: Option<Vec<_>> = decoded.collect();
            Some(decoded?.iter().any(|object| matches(object)))
        })
    }

    /// Both must pass.
    pub fn and(self, other: Predicate) -> Predicate {
        self.joined(other, |one, other| match (one, other) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (Some(true), Some(true)) => Some(true),
            _ => None,
        })
    }

    /// One of both must pass.
    pub fn or(self, other: Predicate) -> Predicate {
        self.joined(other, |one, other| match (one, other) {
            (Some(true), _) | (_, Some(true)) => Some(true),
            (None, _) | (_, None) => None,
            (Some(false), Some(false)) => Some(false),
        })
    }

    /// Inverts the predicate.
    #[expect(
        clippy::should_implement_trait,
        reason = "it stands in a chain, after `and` and `or`"
    )]
    pub fn not(self) -> Predicate {
        let (judge, deletions) = (self.judge, self.deletions);
        let judge = Arc::new(move |old: Option<&Object>, new: Option<&Object>| judge(old, new).map(|passes| !passes));
        Predicate { judge, deletions }
    }

    /// Also decides about objects that begin to be deleted or are gone. A controller may then miss them.
    pub fn and_deletions(mut self) -> Predicate {
        self.deletions = true;
        self
    }

    pub(crate) fn passes(&self, change: &Change) -> bool {
        if !self.deletions && change.is_deletion() {
            return true;
        }
        let judged = catch_unwind(AssertUnwindSafe(|| (self.judge)(change.old.as_deref(), change.new.as_deref())));
        let judged = judged.inspect_err(|_| tracing::error!(key = ?change.key(), "a predicate panicked"));
        judged.unwrap_or_default().unwrap_or(true)
    }

    fn comparing(changed: impl Fn(&Object, &Object) -> bool + Send + Sync + 'static) -> Predicate {
        Predicate::judging(move |old, new| Some(changed(old?, new?)))
    }

    fn judging(judge: impl Fn(Option<&Object>, Option<&Object>) -> Option<bool> + Send + Sync + 'static) -> Predicate {
        Predicate { judge: Arc::new(judge), deletions: false }
    }

    fn joined(self, other: Predicate, join: fn(Option<bool>, Option<bool>) -> Option<bool>) -> Predicate {
        let (one, two) = (self.judge, other.judge);
        let judge = Arc::new(move |old: Option<&Object>, new: Option<&Object>| join(one(old, new), two(old, new)));
        Predicate { judge, deletions: self.deletions || other.deletions }
    }
}

impl std::fmt::Debug for Predicate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Predicate")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::ConfigMap;

    const SPEC: &str = r#""generation":2,"resourceVersion":"8""#;

    fn object(fields: &str) -> Arc<Object> {
        let json = format!(r#"{{"metadata":{{"name":"ada","uid":"u",{fields}}}}}"#);
        Arc::new(Object::parse(json).unwrap())
    }

    fn change(old: Option<&str>, new: Option<&str>) -> Change {
        Change { old: old.map(object), new: new.map(object), listed: false }
    }

    fn passes(predicate: &Predicate, old: &str, new: &str) -> bool {
        predicate.passes(&change(Some(old), Some(new)))
    }

    #[test]
    fn each_looks_at_its_own_part() {
        let status = r#""generation":2,"resourceVersion":"9""#;
        let labels = r#""generation":2,"resourceVersion":"9","labels":{"a":"b"}"#;
        let annotations = r#""generation":2,"resourceVersion":"9","annotations":{"a":"b"}"#;
        let generation = r#""generation":3,"resourceVersion":"9""#;
        let all = [
            Predicate::generation(),
            Predicate::labels(),
            Predicate::annotations(),
            Predicate::resource_version(),
        ];
        let judged = |new| all.iter().map(|predicate| passes(predicate, SPEC, new)).collect::<Vec<_>>();
        assert_eq!(judged(SPEC), [false; 4]);
        assert_eq!(judged(status), [false, false, false, true]);
        assert_eq!(judged(labels), [false, true, false, true]);
        assert_eq!(judged(annotations), [false, false, true, true]);
        assert_eq!(judged(generation), [true, false, false, true]);
    }

    #[test]
    fn kinds_without_generations_are_not_silenced() {
        let predicate = Predicate::generation();
        assert!(passes(&predicate, r#""resourceVersion":"1""#, r#""resourceVersion":"2""#));
    }

    #[test]
    fn created_and_deleted_objects_pass_whatever_is_said() {
        let terminating = r#""generation":2,"resourceVersion":"9","deletionTimestamp":"2026-01-01T00:00:00Z""#;
        let never = || Predicate::generation().and(Predicate::labels().not().not());
        for predicate in [never(), never().not(), never().or(Predicate::annotations()).not()] {
            assert!(predicate.passes(&change(None, Some(SPEC))), "created");
            assert!(predicate.passes(&change(Some(SPEC), Some(terminating))), "being deleted");
            assert!(predicate.passes(&change(Some(SPEC), None)), "gone");
        }
        let nothing = Predicate::matching(|_: &ConfigMap| false);
        assert!(!nothing.passes(&change(None, Some(SPEC))), "created, and it was asked");
        assert!(nothing.passes(&change(Some(SPEC), None)), "gone");
        let really_nothing = nothing.and_deletions();
        assert!(!really_nothing.passes(&change(Some(SPEC), None)));
        assert!(!really_nothing.passes(&change(Some(SPEC), Some(terminating))));
    }

    #[test]
    fn an_object_that_ceases_to_match_passes_once_more() {
        let blue = r#""labels":{"team":"blue"}"#;
        let is_blue = Predicate::matching(|map: &ConfigMap| {
            map.metadata.labels.as_ref().is_some_and(|labels| labels["team"] == "blue")
        });
        let red = r#""labels":{"team":"red"}"#;
        assert!(passes(&is_blue, red, blue) && passes(&is_blue, blue, red));
        assert!(!passes(&is_blue, red, red));
    }

    #[test]
    fn a_comparison_of_its_authors_and_its_panics() {
        let moved = Predicate::changed(|old: &ConfigMap, new: &ConfigMap| old.metadata.labels != new.metadata.labels);
        assert!(!passes(&moved, SPEC, SPEC) && passes(&moved.not(), SPEC, SPEC));
        let poison = Predicate::changed(|_: &ConfigMap, _: &ConfigMap| panic!("divided by zero"));
        assert!(passes(&poison, SPEC, SPEC), "rather one reconcile too many");
    }
}
