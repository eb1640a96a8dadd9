//! The client of webhooks: POSTs a review and reads the answer, within a deadline. Connections are kept for the next call.

use crate::clock::Clock;
use crate::webhook::connector::Connector;
use crate::webhook::error::{self, CallError};
use crate::webhook::services::MAX_ANSWER_BYTES;
use crate::webhook::{ClientConfig, WebhookServices};
use bytes::Bytes;
use flyball_store::Store;
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::{Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// For how many webhooks connections are kept.
// apiserver/pkg/util/webhook/client.go, defaultCacheSize
const MAX_CLIENTS: usize = 200;
/// How long a connection without a call is kept.
const MAX_IDLE: Duration = Duration::from_secs(90);
/// How many connections without a call are kept for one webhook.
const MAX_IDLE_CONNECTIONS: usize = 8;

type HttpClient = Client<Connector, Full<Bytes>>;

/// Calls webhooks; clones share connections.
#[derive(Clone)]
pub(crate) struct WebhookClient(Arc<Inner>);

struct Inner {
    store: Store,
    clock: Clock,
    services: WebhookServices,
    clients: Mutex<HashMap<ClientConfig, HttpClient>>,
}

impl std::fmt::Debug for WebhookClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WebhookClient")
    }
}

impl WebhookClient {
    /// A client that finds Services in a store.
    pub fn new(store: Store, clock: Clock) -> WebhookClient {
        WebhookClient(Arc::new(Inner {
            store,
            clock,
            services: WebhookServices::default(),
            clients: Mutex::default(),
        }))
    }

    /// The webhooks in this process.
    pub fn services(&self) -> &WebhookServices {
        &self.0.services
    }

    /// POSTs a review, and returns the body of a successful response.
    ///
    /// # Errors
    /// If there is none until the deadline, in the words of Go's client.
    pub async fn post(&self, config: &ClientConfig, body: Bytes, deadline: Instant) -> Result<Bytes, CallError> {
        let url = config.url(deadline.saturating_duration_since(Instant::now()));
        let calling = self.call(config, &url, body);
        let Ok(called) = tokio::time::timeout_at(deadline, calling).await else {
            return Err(CallError::transport(&url, "context deadline exceeded"));
        };
        let response = called?;
        match response.status().as_u16() {
            200..=206 if response.body().is_empty() => Err(CallError::empty(&response)),
            200..=206 => Ok(response.into_body()),
            _ => Err(CallError::response(&response)),
        }
    }

    async fn call(&self, config: &ClientConfig, url: &str, body: Bytes) -> Result<Response<Bytes>, CallError> {
        let request = Request::post(url)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, */*")
            .header(USER_AGENT, "flyball-apiserver")
            .body(Full::new(body))
            .map_err(|error| CallError::transport(url, error))?;
        if let Some(called) = self.0.services.call(&config.target, request.clone()).await {
            return called.map_err(|error| CallError::transport(url, error));
        }
        let client = self.client(config).map_err(|why| CallError::transport(url, why))?;
        let failed = |error: &(dyn std::error::Error + 'static)| CallError::transport(url, error::cause(error));
        let response = client.request(request).await.map_err(|error| failed(&error))?;
        let (parts, body) = response.into_parts();
        let body = Limited::new(body, MAX_ANSWER_BYTES).collect().await.map_err(|error| failed(&*error))?;
        Ok(Response::from_parts(parts, body.to_bytes()))
    }

    /// The client that keeps the connections to a webhook.
    fn client(&self, config: &ClientConfig) -> Result<HttpClient, String> {
        let mut clients = self.0.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(config) {
            return Ok(client.clone());
        }
        let connector = Connector::new(self.0.store.clone(), self.0.clock, config)?;
        if clients.len() >= MAX_CLIENTS {
            clients.clear();
        }
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(MAX_IDLE)
            .pool_max_idle_per_host(MAX_IDLE_CONNECTIONS)
            .build(connector);
        clients.insert(config.clone(), client.clone());
        Ok(client)
    }
}
