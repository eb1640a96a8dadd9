//! `Context::condition`: a condition whose `lastTransitionTime` and `observedGeneration` are right.

use super::Context;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde::Deserialize;

/// What is known of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// Nobody can say.
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
    fn as_str(self) -> &'static str {
        match self {
            ConditionStatus::True => "True",
            ConditionStatus::False => "False",
            ConditionStatus::Unknown => "Unknown",
        }
    }
}

/// The conditions of a status, and nothing else of it.
#[derive(Default, Deserialize)]
struct Conditions {
    #[serde(default)]
    conditions: Vec<Before>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Before {
    r#type: String,
    status: String,
    last_transition_time: Option<Time>,
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
        let (type_, status) = (r#type.into(), status.into().as_str());
        let before = self
            .current()
            .field("status")
            .and_then(|status| serde_json::from_value::<Conditions>(status).ok());
        let same = |before: &Before| before.r#type == type_ && before.status == status;
        let before = before.unwrap_or_default().conditions.into_iter().find(same);
        let last_transition_time = before.and_then(|before| before.last_transition_time).unwrap_or_else(|| self.now());
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
