//! One call of a webhook: review, answer, and what a failure means.

use crate::admission::Attributes;
use crate::admission::attributes::Versioned;
use crate::admission::matching::Match;
use crate::admission::webhook::configuration::Webhook;
use crate::admission::webhook::review::{Answer, Review, Step, Version};
use crate::status::{Details, Reason, Status};
use flyball_schema::names;
use http::StatusCode;
use serde_json::Value;
use tokio::time::Instant;

/// Why a webhook does not admit a write.
pub(super) enum CallFailure {
    /// It could not be called, or its answer is invalid: its failure policy decides.
    Failed(String),
    /// It refuses the write.
    Refused(Status),
}

/// Calls a webhook about a write. Warnings and audit annotations are kept with the request.
pub(super) async fn call(
    webhook: &Webhook,
    step: Step,
    attributes: &Attributes<'_>,
    matched: &Match,
    versioned: &Versioned<'_>,
) -> Result<Answer, CallFailure> {
    let failed = |why: String| CallFailure::Failed(why);
    let name = &webhook.name;
    if attributes.is_dry_run() {
        match webhook.side_effects.as_str() {
            "None" | "NoneOnDryRun" => {}
            "" => return Err(failed("Webhook SideEffects is nil".to_owned())),
            _ => {
                let why = format!("admission webhook {name:?} does not support dry run");
                return Err(CallFailure::Refused(Status::bad_request(why)));
            }
        }
    }
    let unknown = "could not create admission objects: webhook does not accept known AdmissionReview versions \
                   (v1, v1beta1)";
    let version = Version::choose(&webhook.review_versions).ok_or_else(|| failed(unknown.to_owned()))?;
    let client = webhook
        .client
        .as_ref()
        .map_err(|why| failed(format!("could not get REST client: {why}")))?;
    let review = Review::new(version, attributes, matched, versioned);
    let request = attributes.request;
    let deadline = Instant::now() + webhook.timeout;
    let deadline = request.deadline.map_or(deadline, |end| end.min(deadline));
    let body = request.server.webhooks().post(client, review.body.clone(), deadline).await;
    let body = body.map_err(|why| failed(format!("failed to call webhook: {why}")))?;
    let answer = review.decode(&body).map_err(|why| failed(format!("failed to call webhook: {why}")))?;
    let answer = review.verify(step, answer);
    let answer = answer.map_err(|why| failed(format!("received invalid webhook response: {why}")))?;
    for (key, value) in &answer.audit_annotations {
        annotate(attributes, format!("{name}/{key}"), value);
    }
    answer.warnings.iter().for_each(|warning| request.warn(warning.as_str()));
    match answer.allowed {
        true => Ok(answer),
        false => Err(CallFailure::Refused(denied(name, &answer.result))),
    }
}

/// Adds an audit annotation, if its key is one.
// apiserver/pkg/admission/attributes.go, checkKeyFormat
pub(super) fn annotate(attributes: &Attributes<'_>, key: String, value: impl Into<String>) {
    let is_key = key.split('/').count() == 2 && names::qualified_name(&key).is_empty();
    match is_key {
        true => attributes.request.annotate(key, value),
        false => tracing::warn!(key, "ignore an audit annotation of a webhook: the key is no qualified name"),
    }
}

/// 500: a webhook could not be called.
pub(super) fn uncalled(name: &str, why: &str) -> Status {
    Status::internal(format!("failed calling webhook {name:?}: {why}"))
}

/// 504: the request took too long.
pub(super) fn late() -> Status {
    Status::timeout("request did not complete within requested timeout")
}

/// The refusal of a webhook.
// errors/statuserror.go, ToStatusErr
fn denied(name: &str, result: &Value) -> Status {
    let text = |field: &str| result[field].as_str().unwrap_or_default();
    let denied = format!("admission webhook {name:?} denied the request");
    let message = match (text("message"), text("reason")) {
        ("", "") => format!("{denied} without explanation"),
        ("", reason) => format!("{denied}: {reason}"),
        (message, _) => format!("{denied}: {message}"),
    };
    let code = result["code"]
        .as_u64()
        .and_then(|code| u16::try_from(code).ok())
        .filter(|code| *code >= 400);
    let code = code.and_then(|code| StatusCode::from_u16(code).ok()).unwrap_or(StatusCode::BAD_REQUEST);
    let mut status = Status::without_reason(code, message);
    status.reason = Some(text("reason"))
        .filter(|reason| !reason.is_empty())
        .map(|reason| Reason::Other(reason.into()));
    match serde_json::from_value::<Details>(result["details"].clone()) {
        Ok(details) => status.with(details),
        Err(_) => status,
    }
}
