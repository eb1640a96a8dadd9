//! The webhooks of operators under test: the API server calls them in the process, at the address of their Service.

use flyball::webhook::WebhookService;
use flyball::{Config, Operator};
use flyball_apiserver::ApiServer;
use flyball_apiserver::webhook::{Registration, WebhookAddress};
use kube::Client;
use std::fmt;

/// The namespace of the Services. It is not the one of the objects: webhooks leave the namespace of their operator alone.
const NAMESPACE: &str = "flyball-test";

/// Webhooks that answer until this is dropped.
pub(crate) struct Webhooks {
    _registration: Registration,
}

impl Webhooks {
    /// Answers for the Service of an operator, if it has webhooks.
    pub(crate) fn register(server: &ApiServer, operator: &Operator, client: &Client) -> Option<Webhooks> {
        let service = operator.configuration()?.webhook.service.clone()?;
        let (namespace, name) = service.split_once('/')?;
        let address = WebhookAddress::service(namespace, name);
        let service = WebhookService::new(operator, client.clone());
        let registered = || server.webhook_services().register(address, service.clone());
        (!service.is_empty()).then(|| Webhooks { _registration: registered() })
    }
}

impl fmt::Debug for Webhooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Webhooks")
    }
}

/// Opens no port, and names the Service.
pub(crate) fn configure(operator: &Operator, config: &mut Config) {
    config.webhook.enabled = false;
    config.webhook.url = None;
    config
        .webhook
        .service
        .get_or_insert_with(|| format!("{NAMESPACE}/{}-webhook", operator.name()));
}
