//! The standard `Ready` condition that follows the outcome of reconciles, where a controller declares it.

use crate::context::apply::hash;
use crate::context::status::{Change, MAX_CONFLICTS};
use crate::context::{Context, attempt};
use crate::{ConditionStatus, Result};
use http::StatusCode;
use kube::api::Request;
use serde_json::{Value, json};

/// The type of the condition.
const READY: &str = "Ready";

/// Kubernetes' bound on a condition's message, in bytes.
const MAX_MESSAGE_BYTES: usize = 32_768;

impl Context {
    /// Sets the condition `Ready` of the object, unless it has this status, reason, message and generation already.
    pub(crate) async fn set_ready(&self, status: ConditionStatus, reason: &str, message: &str) -> Result<()> {
        let current = self.current();
        let mut version = current.resource_version();
        let mut before = current.field("status").unwrap_or_else(|| json!({}));
        for _ in 0..MAX_CONFLICTS {
            let condition = json!(self.condition_after(&before, READY, status, reason, shortened(message)));
            if find(&before).is_some_and(|known| *known == condition) {
                return Ok(());
            }
            let mut conditions = before["conditions"].as_array().cloned().unwrap_or_default();
            conditions.retain(|known| known["type"] != READY);
            conditions.push(condition);
            let change = Change {
                status: json!({ "conditions": conditions }),
                version: Some(version),
            };
            let answer = self.patch_status(change).await?;
            if !matches!(&answer, Err(kube::Error::Api(status)) if status.code == StatusCode::CONFLICT) {
                let text = answer.map_err(attempt("set condition Ready of", self.kind(), &self.object.key))?;
                return self.note_status(&text);
            }
            let live = self.live().await?;
            version = live["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
            before = live["status"].clone();
        }
        Err(crate::Error::retry(format!(
            "set condition Ready of {}: too many conflicts",
            self.object.key
        )))
    }

    /// Remembers the status that was written, so that the next `set_status` knows that it is the operator's own.
    fn note_status(&self, text: &str) -> Result<()> {
        let object: Value = serde_json::from_str(text)?;
        let version = object["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok());
        if let Some(version) = version {
            let hash = hash(&object["status"]);
            self.mirror.note(&self.object.key, |notes| notes.status = Some((hash, version)));
        }
        Ok(())
    }

    /// The object as the API server has it now.
    pub(crate) async fn live(&self) -> Result<Value> {
        let key = &self.object.key;
        let request = Request::new(self.kind().path(key.namespace())).get(key.name(), &Default::default())?;
        let (_, text) = self.request(request).await.map_err(attempt("get", self.kind(), key))?;
        Ok(serde_json::from_str(&text)?)
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
