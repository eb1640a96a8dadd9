//! The standard `Ready` condition that follows the outcome of reconciles, where a controller declares it.

use crate::context::Context;
use crate::{ConditionStatus, Result};
use serde_json::{Value, json};

/// The type of the condition.
const READY: &str = "Ready";

/// Kubernetes' bound on a condition's message, in bytes.
const MAX_MESSAGE_BYTES: usize = 32_768;

impl Context {
    /// Sets the condition `Ready` of the object, unless it has this status, reason, message and generation already.
    pub(crate) async fn set_ready(&self, status: ConditionStatus, reason: &str, message: &str) -> Result<()> {
        let object = self.with_status().await?;
        let before = object.field("status").unwrap_or_else(|| json!({}));
        let condition = json!(self.condition_after(&before, READY, status, reason, shortened(message)));
        if find(&before).is_some_and(|known| *known == condition) {
            return Ok(());
        }
        let mut own = self.own_status(&object, &before);
        let mut conditions = own["conditions"].as_array().cloned().unwrap_or_default();
        conditions.retain(|known| known["type"] != READY);
        conditions.push(condition);
        own["conditions"] = conditions.into();
        self.apply_status(&object, &before, &own).await
    }
}

/// Keeps the condition `Ready` of the object in a status that an author sets without it.
pub(crate) fn keep_ready(status: &mut Value, before: &Value) {
    if find(status).is_some() {
        return;
    }
    let (Some(ready), Some(status)) = (find(before), status.as_object_mut()) else {
        return;
    };
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    if let Some(conditions) = conditions.as_array_mut() {
        conditions.push(ready.clone());
    }
}

fn find(status: &Value) -> Option<&Value> {
    status["conditions"].as_array()?.iter().find(|condition| condition["type"] == READY)
}

fn shortened(message: &str) -> &str {
    let mut end = message.len().min(MAX_MESSAGE_BYTES);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    &message[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_without_ready_keeps_the_one_that_is_there() {
        let ready = json!({ "type": "Ready", "status": "False" });
        let other = json!({ "type": "Synced", "status": "True" });
        let before = json!({ "conditions": [ready, other] });
        for (status, kept) in [
            (json!({ "n": 1 }), json!({ "n": 1, "conditions": [ready] })),
            (json!({ "conditions": [other] }), json!({ "conditions": [other, ready] })),
            (
                json!({ "conditions": [{ "type": "Ready", "status": "True" }] }),
                json!({ "conditions": [{ "type": "Ready", "status": "True" }] }),
            ),
            (json!("text"), json!("text")),
        ] {
            let mut status = status;
            keep_ready(&mut status, &before);
            assert_eq!(status, kept);
        }
    }

    #[test]
    fn a_long_message_is_cut_at_a_character() {
        let long = "é".repeat(MAX_MESSAGE_BYTES);
        assert_eq!(shortened(&long).len(), MAX_MESSAGE_BYTES);
        assert_eq!(shortened(&format!("a{long}")).len(), MAX_MESSAGE_BYTES - 1);
    }
}
