//! The server's own limits, and what else it is started with.

use crate::audit::{AuditSink, Level, Policy};
use crate::authn::oidc::Oidc;
use crate::authn::token::StaticToken;
use crate::authn::token_keys::TokenKeys;
use crate::server::ApiServer;
use crate::status::Result;
use flyball_store::Store;
use std::sync::Arc;
use std::time::Duration;

/// How an API server is to run; the defaults are kube-apiserver's.
#[derive(Clone)]
pub struct ServerOptions {
    /// The most requests that are handled at a time, shared out to the priority levels; 0 sets no limit.
    pub max_requests_in_flight: usize,
    /// The longest time that a request may take, unless it is long-running.
    pub request_timeout: Duration,
    /// Takes the audit events that `audit_policy` selects.
    pub audit_sink: Option<Arc<dyn AuditSink>>,
    /// How much of which requests the audit sink gets; by default everything but the objects.
    pub audit_policy: Policy,
    /// The keys of service account tokens; a new one if there are none.
    pub token_keys: Option<Arc<TokenKeys>>,
    /// The certificate of the authority that signed the server's certificate, in PEM: pods get it beside their token.
    pub root_ca: Option<String>,
    /// Built-in admission plugins that are not asked, by name.
    pub disabled_admission_plugins: Vec<String>,
    /// Verifies the ID tokens of an OpenID Connect issuer.
    pub oidc: Option<Arc<Oidc>>,
    /// Tokens that stand for users.
    pub static_tokens: Vec<StaticToken>,
}

impl Default for ServerOptions {
    fn default() -> ServerOptions {
        ServerOptions {
            max_requests_in_flight: 600,
            request_timeout: Duration::from_secs(60),
            audit_sink: None,
            audit_policy: Policy::every(Level::Metadata),
            token_keys: None,
            root_ca: None,
            disabled_admission_plugins: Vec::new(),
            oidc: None,
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
