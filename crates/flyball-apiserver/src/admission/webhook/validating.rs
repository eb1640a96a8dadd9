//! Validating webhooks: all that match are called at a time; the first refusal, in their order, is the answer.
// apiserver/pkg/admission/plugin/webhook/validating/dispatcher.go

use crate::admission::Attributes;
use crate::admission::matching::Match;
use crate::admission::webhook::call::{self, CallFailure};
use crate::admission::webhook::configuration::{List, Webhook};
use crate::admission::webhook::review::Step;
use crate::status::Result;
use futures::future::join_all;
use tokio::time::Instant;

/// Calls the webhooks that match a write.
pub(super) async fn dispatch(attributes: &Attributes<'_>, webhooks: &List) -> Result<()> {
    let mut matching = Vec::new();
    for webhook in webhooks.iter() {
        if let Some(matched) = webhook.matches(attributes).await? {
            matching.push((webhook, matched));
        }
    }
    if matching.is_empty() {
        return Ok(());
    }
    if attributes.request.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
        return Err(call::late());
    }
    let calls = matching.iter().enumerate();
    let calls = calls.map(|(index, (webhook, matched))| validate(attributes, webhook, matched, index));
    join_all(calls).await.into_iter().collect()
}

async fn validate(attributes: &Attributes<'_>, webhook: &Webhook, matched: &Match, index: usize) -> Result<()> {
    let versioned = attributes.versioned(matched).await?;
    match call::call(webhook, Step::Validating, attributes, matched, &versioned).await {
        Ok(_) => Ok(()),
        Err(CallFailure::Refused(status)) => Err(status),
        Err(CallFailure::Failed(why)) if webhook.ignores_failures() => {
            tracing::warn!(webhook = webhook.name, why, "a webhook failed, and its failure policy is Ignore");
            let key = format!("failed-open.validating.webhook.admission.k8s.io/round_0_index_{index}");
            call::annotate(attributes, key, &webhook.name);
            Ok(())
        }
        Err(CallFailure::Failed(why)) => Err(call::uncalled(&webhook.name, &why)),
    }
}
