//! `Context::condition`: a condition whose `lastTransitionTime` and `observedGeneration` are right.

use crate::context::Context;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde::Deserialize;
use serde_json::{Value, json};

/// What is known of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// It is not known.
    Unknown,
}

impl From<bool> for ConditionStatus {
    fn from(holds: bool) -> ConditionStatus {
        if holds {
            ConditionStatus::True
        } else {
            ConditionStatus::False
        }
    }
}

impl ConditionStatus {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            ConditionStatus::True => "True",
            ConditionStatus::False => "False",
            ConditionStatus::Unknown => "Unknown",
        }
    }
}

/// When the condition of that type became what it is, if it has this status already.
fn last_transition(object_status: &Value, r#type: &str, status: &str) -> Option<Time> {
    let conditions = object_status["conditions"].as_array()?;
    let same = |condition: &&Value| condition["type"] == r#type && condition["status"] == status;
    let condition = conditions.iter().find(same)?;
    Time::deserialize(&condition["lastTransitionTime"]).ok()
}

/// Gives the conditions of a status their time where what the object had was not known when they were made.
pub(super) fn keep_times(status: &mut Value, live: &Value) {
    let conditions = status.get_mut("conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        let text = |name: &str| condition[name].as_str().unwrap_or_default();
        if let Some(time) = last_transition(live, text("type"), text("status")) {
            condition["lastTransitionTime"] = json!(time);
        }
    }
}

impl Context {
    /// A condition of the object being reconciled, for its status.
    ///
    /// `lastTransitionTime` is when the condition's status last changed: it is kept for as long as the object has the condition
    /// with that status. `observedGeneration` is that of the object as it was given to the reconcile.
    pub fn condition(
        &self,
        r#type: impl Into<String>,
        status: impl Into<ConditionStatus>,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) -> Condition {
        let before = self.current().field("status").unwrap_or_default();
        self.condition_after(&before, r#type, status, reason, message)
    }

    /// The same, where the status that the object had before is known.
    pub(crate) fn condition_after(
        &self,
        before: &Value,
        r#type: impl Into<String>,
        status: impl Into<ConditionStatus>,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) -> Condition {
        let (type_, status) = (r#type.into(), status.into().as_str());
        let same = last_transition(before, &type_, status);
        let last_transition_time = same.unwrap_or_else(|| self.now());
        let observed_generation = Some(self.object.json().meta().generation).filter(|generation| *generation > 0);
        Condition {
            type_,
            status: status.into(),
            reason: reason.into(),
            message: message.into(),
            last_transition_time,
            observed_generation,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_kept_whatever_stands_beside_it() {
        let time = "2026-01-01T00:00:00Z";
        let ready = json!({ "type": "Ready", "status": "True", "lastTransitionTime": time });
        let odd = [
            json!(7),
            json!({ "type": "Odd" }),
            json!({ "type": "Late", "lastTransitionTime": "soon" }),
        ];
        let conditions: Vec<_> = odd.into_iter().chain([ready]).collect();
        let status = json!({ "conditions": conditions });
        let kept = last_transition(&status, "Ready", "True").map(|time| time.0.to_string());
        assert_eq!(kept.as_deref(), Some(time));
        for (r#type, holds) in [("Ready", "False"), ("Odd", "True"), ("Late", "True")] {
            assert_eq!(last_transition(&status, r#type, holds), None);
        }
        assert_eq!(last_transition(&json!({}), "Ready", "True"), None);
    }
}
