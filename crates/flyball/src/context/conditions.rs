//! `Conditions`: the list of conditions in a status, with times and generations that are right. It needs no Context.

use crate::ConditionStatus;
use crate::context::Context;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde::Deserialize;
use serde_json::Value;

/// Builds the conditions of an object from those that it had: a pure value, so that a function from a spec to a status can be
/// tested without a cluster. In a reconcile, [`Context::conditions`] is the beginning of it.
///
/// `lastTransitionTime` is kept for as long as a condition keeps its status. Conditions that are not set stay as they were.
///
/// ```
/// use flyball::Conditions;
/// use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
///
/// fn conditions(before: Conditions, ready: u32, wanted: u32) -> Vec<Condition> {
///     let message = format!("{ready} of {wanted} pods are ready");
///     before.set("Available", ready >= wanted, "PodsReady", message).into()
/// }
///
/// let now = |seconds| Time(k8s_openapi::jiff::Timestamp::from_second(seconds).unwrap());
/// let first = conditions(Conditions::new(&[], Some(1), now(10)), 1, 3);
/// let second = conditions(Conditions::new(&first, Some(2), now(20)), 2, 3);
/// assert_eq!((second[0].status.as_str(), second[0].message.as_str()), ("False", "2 of 3 pods are ready"));
/// assert_eq!((&second[0].last_transition_time, second[0].observed_generation), (&now(10), Some(2)));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Conditions {
    /// As the object had them.
    before: Vec<Condition>,
    now: Vec<Condition>,
    generation: Option<i64>,
    time: Time,
}

impl Conditions {
    /// The conditions that an object has: those of its status, its `metadata.generation`, and the time.
    pub fn new(before: &[Condition], generation: Option<i64>, time: Time) -> Conditions {
        Conditions {
            before: before.to_vec(),
            now: before.to_vec(),
            generation,
            time,
        }
    }

    /// Sets the condition of a type.
    pub fn set(
        mut self,
        r#type: impl Into<String>,
        status: impl Into<ConditionStatus>,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) -> Conditions {
        let (type_, status) = (r#type.into(), status.into().as_str());
        let same = find(&self.before, &type_).filter(|before| before.status == status);
        let condition = Condition {
            status: status.into(),
            reason: reason.into(),
            message: message.into(),
            last_transition_time: same.map_or_else(|| self.time.clone(), |same| same.last_transition_time.clone()),
            observed_generation: self.generation,
            type_,
        };
        match self.now.iter_mut().find(|known| known.type_ == condition.type_) {
            Some(known) => *known = condition,
            None => self.now.push(condition),
        }
        self
    }

    /// Removes the condition of a type.
    pub fn remove(mut self, r#type: &str) -> Conditions {
        self.now.retain(|condition| condition.type_ != r#type);
        self
    }

    /// The condition of a type.
    pub fn get(&self, r#type: &str) -> Option<&Condition> {
        find(&self.now, r#type)
    }

    /// Whether the condition of a type is `True`.
    pub fn is_true(&self, r#type: &str) -> bool {
        self.get(r#type).is_some_and(|condition| condition.status == "True")
    }
}

impl From<Conditions> for Vec<Condition> {
    fn from(conditions: Conditions) -> Vec<Condition> {
        conditions.now
    }
}

fn find<'a>(conditions: &'a [Condition], r#type: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == r#type)
}

impl Context {
    /// The conditions that the object being reconciled has, to be set anew.
    ///
    /// ```
    /// # use flyball::{Context, Result};
    /// # use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
    /// # async fn report(ctx: &Context) -> Result<()> {
    /// let conditions: Vec<Condition> = ctx.conditions().set("Synced", true, "UpToDate", "").into();
    /// ctx.set_status(serde_json::json!({ "conditions": conditions })).await
    /// # }
    /// ```
    pub fn conditions(&self) -> Conditions {
        let status = self.current().field("status").unwrap_or_default();
        let before: Vec<_> = status["conditions"].as_array().into_iter().flatten().filter_map(read).collect();
        let generation = Some(self.object.json().meta().generation).filter(|generation| *generation > 0);
        Conditions::new(&before, generation, self.now())
    }
}

/// An entry that lacks what every condition has is not a condition.
fn read(condition: &Value) -> Option<Condition> {
    Condition::deserialize(condition).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(seconds: i64) -> Time {
        Time(jiff::Timestamp::from_second(seconds).unwrap())
    }

    #[test]
    fn a_transition_time_changes_with_the_status_only_however_often_it_is_set() {
        let first = Conditions::new(&[], Some(1), time(1)).set("Ready", false, "Waiting", "");
        let first: Vec<_> = first.set("Synced", true, "UpToDate", "").into();
        let same = Conditions::new(&first, Some(2), time(2)).set("Ready", true, "Hasty", "");
        let same: Vec<_> = same.set("Ready", false, "Waiting", "still").into();
        assert_eq!((&same[0].last_transition_time, &*same[0].message), (&time(1), "still"));
        assert_eq!((same[0].observed_generation, same[1].observed_generation), (Some(2), Some(1)));
        let changed = Conditions::new(&same, None, time(3)).set("Ready", ConditionStatus::Unknown, "Lost", "");
        assert_eq!(changed.get("Ready").unwrap().last_transition_time, time(3));
        assert!(changed.is_true("Synced") && !changed.is_true("Ready"));
        let left: Vec<_> = changed.remove("Synced").into();
        assert_eq!(left.len(), 1);
    }
}
