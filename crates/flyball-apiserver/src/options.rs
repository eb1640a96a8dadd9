//! The server's own limits, and what else it is started with.

use crate::authn::token::StaticToken;
use crate::authn::token_keys::TokenKeys;
use crate::filters::AuditSink;
use crate::server::ApiServer;
use crate::status::Result;
use flyball_store::Store;
use std::sync::Arc;
use std::time::Duration;

/// How an API server is to run; the defaults are kube-apiserver's.
#[derive(Clone)]
pub struct ServerOptions {
    /// The most read requests that are handled at a time; 0 sets no limit.
    pub max_requests_in_flight: usize,
    /// The most write requests that are handled at a time; 0 sets no limit.
    pub max_mutating_requests_in_flight: usize,
    /// The longest time that a request may take, unless it is long-running.
    pub request_timeout: Duration,
    /// Takes the audit events of every request.
    pub audit_sink: Option<Arc<dyn AuditSink>>,
    /// The keys of service account tokens; a new one if there are none.
    pub token_keys: Option<Arc<TokenKeys>>,
    /// Tokens that stand for users.
    pub static_tokens: Vec<StaticToken>,
}

impl Default for ServerOptions {
    fn default() -> ServerOptions {
        ServerOptions {
            max_requests_in_flight: 400,
            max_mutating_requests_in_flight: 200,
            request_timeout: Duration::from_secs(60),
            audit_sink: None,
            token_keys: None,
            static_tokens: Vec::new(),
        }
    }
}

impl ServerOptions {
    /// Serves what a store holds, and first adds what every cluster has.
    pub async fn start(self, store: Store) -> Result<ApiServer> {
        ApiServer::start_with(store, self).await
    }
}
