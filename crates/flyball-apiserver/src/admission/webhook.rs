//! MutatingAdmissionWebhook and ValidatingAdmissionWebhook: the webhooks that configurations in the store name.
// apiserver/pkg/admission/plugin/webhook

mod call;
mod configuration;
mod mutating;
mod review;
mod validating;

use crate::admission::Attributes;
use crate::admission::chain::Plugin;
use crate::admission::matching;
use crate::status::Result;
use crate::store_index::StoreIndex;
use configuration::Configurations;
use futures::future::{BoxFuture, FutureExt};

/// The API group of webhook configurations.
pub(crate) const GROUP: &str = "admissionregistration.k8s.io";

/// The webhook configurations of a store, indexed for every write.
pub(crate) type Webhooks = StoreIndex<Configurations>;

/// Calls mutating webhooks, one after the other.
pub(super) struct MutatingAdmissionWebhook;

impl Plugin for MutatingAdmissionWebhook {
    fn handles(&self, attributes: &Attributes<'_>) -> bool {
        let configured = attributes.request.server.admission_webhooks().read_loaded();
        configured.is_some_and(|all| !all.mutating().is_empty()) && !matching::is_exempt(attributes)
    }

    fn admit<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> BoxFuture<'a, Result<()>> {
        async move {
            let store = attributes.request.store();
            let webhooks = attributes.request.server.admission_webhooks().read(store).await?.mutating();
            mutating::dispatch(attributes, &webhooks).await
        }
        .boxed()
    }
}

/// Calls validating webhooks, all at a time.
pub(super) struct ValidatingAdmissionWebhook;

impl Plugin for ValidatingAdmissionWebhook {
    fn handles(&self, attributes: &Attributes<'_>) -> bool {
        let configured = attributes.request.server.admission_webhooks().read_loaded();
        configured.is_some_and(|all| !all.validating().is_empty()) && !matching::is_exempt(attributes)
    }

    fn validate<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> BoxFuture<'a, Result<()>> {
        async move {
            let store = attributes.request.store();
            let webhooks = attributes.request.server.admission_webhooks().read(store).await?.validating();
            validating::dispatch(attributes, &webhooks).await
        }
        .boxed()
    }
}
