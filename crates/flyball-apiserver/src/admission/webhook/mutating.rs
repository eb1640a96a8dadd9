//! Mutating webhooks: called one after the other, each with the object as the ones before it left it.
// apiserver/pkg/admission/plugin/webhook/mutating/dispatcher.go

use crate::admission::Attributes;
use crate::admission::matching::Match;
use crate::admission::webhook::call::{self, CallFailure};
use crate::admission::webhook::configuration::{List, Webhook};
use crate::admission::webhook::review::{Answer, Step};
use crate::status::{Result, Status};
use flyball_schema::json_patch::JsonPatch;
use serde_json::{Value, json};
use tokio::time::Instant;

/// Calls the webhooks that match a write; in the second round only those that are due again.
pub(super) async fn dispatch(attributes: &mut Attributes<'_>, webhooks: &List) -> Result<()> {
    let is_second = attributes.reinvocation.is_second_round;
    if is_second && attributes.reinvocation.last_output != attributes.object {
        attributes.reinvocation.require_invoked();
    }
    for (index, webhook) in webhooks.iter().enumerate() {
        let Some(matched) = webhook.matches(attributes).await? else {
            continue;
        };
        // A webhook that did not match in the first round is not called in the second.
        if is_second && !attributes.reinvocation.is_due(&webhook.uid) {
            continue;
        }
        let outcome = mutate(attributes, webhook, &matched, index).await;
        if let Ok(true) = outcome {
            attributes.reinvocation.require_invoked();
            attributes.reinvocation.is_required = true;
        }
        if webhook.is_reinvocable {
            attributes.reinvocation.invoked.insert(webhook.uid.clone());
        }
        match outcome {
            Ok(_) => {}
            Err(CallFailure::Refused(status)) => return Err(status),
            Err(CallFailure::Failed(why)) => fail(attributes, webhook, index, &why)?,
        }
    }
    if attributes.reinvocation.is_required && !is_second {
        attributes.reinvocation.last_output = attributes.object.clone();
    }
    Ok(())
}

/// Applies the failure policy of a webhook that could not be called.
fn fail(attributes: &Attributes<'_>, webhook: &Webhook, index: usize, why: &str) -> Result<()> {
    if !webhook.ignores_failures() {
        return Err(call::uncalled(&webhook.name, why));
    }
    tracing::warn!(webhook = webhook.name, why, "a webhook failed, and its failure policy is Ignore");
    let key = key(attributes, "failed-open.mutation.webhook.admission.k8s.io", index);
    call::annotate(attributes, key, &webhook.name);
    match attributes.request.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
        true => Err(call::late()),
        false => Ok(()),
    }
}

fn key(attributes: &Attributes<'_>, prefix: &str, index: usize) -> String {
    let round = u8::from(attributes.reinvocation.is_second_round);
    format!("{prefix}/round_{round}_index_{index}")
}

/// Calls a webhook and applies its patch; returns whether that changed the object.
async fn mutate(
    attributes: &mut Attributes<'_>,
    webhook: &Webhook,
    matched: &Match,
    index: usize,
) -> Result<bool, CallFailure> {
    let outcome = try_mutate(attributes, webhook, matched, index).await;
    let about = json!({"configuration": webhook.configuration, "webhook": webhook.name,
        "mutated": matches!(outcome, Ok(true))});
    call::annotate(attributes, key(attributes, "mutation.webhook.admission.k8s.io", index), about.to_string());
    outcome
}

async fn try_mutate(
    attributes: &mut Attributes<'_>,
    webhook: &Webhook,
    matched: &Match,
    index: usize,
) -> Result<bool, CallFailure> {
    let versioned = attributes.versioned(matched).await.map_err(CallFailure::Refused)?;
    let answer = call::call(webhook, Step::Mutating, attributes, matched, &versioned).await?;
    let Some(patch) = read_patch(webhook, &answer)? else {
        return Ok(false);
    };
    let internal = |why: &dyn std::fmt::Display| CallFailure::Refused(Status::internal(why));
    let before = versioned.object().clone();
    if before.is_null() {
        let name = &webhook.name;
        return Err(internal(&format!(
            "admission webhook {name:?} attempted to modify the object, which is not supported for this operation"
        )));
    }
    let mut object = before.clone();
    patch.apply(&mut object).map_err(|error| internal(&error))?;
    let object = attributes.decode_patched(matched, object).map_err(|error| internal(&error))?;
    let is_changed = object != before;
    let patch: Value = serde_json::from_slice(&answer.patch).unwrap_or_default();
    let about = json!({"configuration": webhook.configuration, "webhook": webhook.name, "patch": patch,
        "patchType": "JSONPatch"});
    call::annotate(attributes, key(attributes, "patch.webhook.admission.k8s.io", index), about.to_string());
    attributes.replace(matched, object).await.map_err(CallFailure::Refused)?;
    Ok(is_changed)
}

/// The patch of an answer; none if it is empty.
fn read_patch(webhook: &Webhook, answer: &Answer) -> Result<Option<JsonPatch>, CallFailure> {
    if answer.patch.is_empty() {
        return Ok(None);
    }
    // Upstream decodes the patches of clients and of webhooks into different types, which its messages name.
    let undecodable = |why: String| {
        let why = why
            .trim_start_matches("error decoding patch: ")
            .replace("[]handlers.jsonPatchOp", "jsonpatch.Patch");
        CallFailure::Failed(format!("received undecodable patch in webhook response: {why}"))
    };
    let patch = JsonPatch::read(&answer.patch).map_err(|error| undecodable(error.to_string()))?;
    if patch.is_empty() {
        return Ok(None);
    }
    match answer.patch_type.as_str() {
        "JSONPatch" => Ok(Some(patch)),
        other => {
            tracing::warn!(
                webhook = webhook.name,
                patch_type = other,
                "a webhook answered with an unknown patch type"
            );
            Err(CallFailure::Failed(format!("unsupported patch type {other:?}")))
        }
    }
}
