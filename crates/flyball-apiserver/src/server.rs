//! The API server: a value that handles requests. Its state is in the store; the registry is derived from it.

use crate::admission;
use crate::admission::policy::PolicyIndex;
use crate::admission::webhook::Webhooks;
use crate::authn::token_keys::TokenKeys;
use crate::authn::user::User;
use crate::authz::rbac::Rbac;
use crate::bootstrap;
use crate::client::InProcessClient;
use crate::clock::Clock;
use crate::crd;
use crate::filters;
use crate::flow_control::FlowControl;
use crate::http::body::Body;
use crate::options::ServerOptions;
use crate::registry::{Kind, Registry};
use crate::status::Result;
use crate::watch_cache::EncodedEventCache;
use crate::webhook::{WebhookClient, WebhookServices};
use crate::writes::Writes;
use bytes::Bytes;
use flyball_schema::kinds;
use flyball_store::Store;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use std::convert::Infallible;
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Context, Poll};

/// A Kubernetes API server over a store; clones share it.
#[derive(Clone)]
pub struct ApiServer(Arc<Inner>);

pub(crate) struct Inner {
    store: Store,
    options: ServerOptions,
    flow_control: FlowControl,
    writes: Writes,
    registry: Registry,
    rbac: Rbac,
    policies: PolicyIndex,
    token_keys: OnceLock<Arc<TokenKeys>>,
    clock: Clock,
    frames: EncodedEventCache,
    crds: OnceLock<crd::Controller>,
    webhooks: WebhookClient,
    admission_webhooks: Webhooks,
}

impl ApiServer {
    /// The server, unless its last clone was dropped.
    pub(crate) fn upgrade(inner: &Weak<Inner>) -> Option<ApiServer> {
        inner.upgrade().map(ApiServer)
    }

    /// A reference that does not keep the server alive.
    pub(crate) fn downgrade(&self) -> Weak<Inner> {
        Arc::downgrade(&self.0)
    }

    /// Serves what the store holds, and first adds what every cluster has.
    pub async fn start(store: Store) -> Result<ApiServer> {
        ServerOptions::default().start(store).await
    }

    pub(crate) async fn start_with(store: Store, options: ServerOptions) -> Result<ApiServer> {
        admission::check_names(&options.disabled_admission_plugins)?;
        let registry = Registry::new(kinds::builtin().resources.iter().cloned().map(Kind::built_in));
        let clock = Clock::start();
        let server = ApiServer(Arc::new(Inner {
            webhooks: WebhookClient::new(store.clone(), clock),
            store,
            flow_control: FlowControl::new(options.max_requests_in_flight),
            options,
            writes: Writes::default(),
            registry,
            rbac: Rbac::default(),
            policies: PolicyIndex::default(),
            token_keys: OnceLock::new(),
            clock,
            frames: EncodedEventCache::default(),
            crds: OnceLock::new(),
            admission_webhooks: Webhooks::default(),
        }));
        let crds = crd::start(&server).await?;
        server.0.crds.get_or_init(|| crds);
        bootstrap::seed(&server).await?;
        server.flow_control().load(server.store()).await?;
        drop(server.admission_webhooks().read(server.store()).await?);
        Ok(server)
    }

    /// A client in this process that makes its requests as that user.
    pub fn as_user(&self, user: User) -> InProcessClient {
        InProcessClient::new(self.clone(), user)
    }

    /// The store that keeps the objects.
    pub fn store(&self) -> &Store {
        &self.0.store
    }

    /// The kinds that are served.
    pub fn registry(&self) -> &Registry {
        &self.0.registry
    }

    /// The roles and bindings that are in force.
    pub(crate) fn rbac(&self) -> &Rbac {
        &self.0.rbac
    }

    /// The admission policies that are in force.
    pub(crate) fn policies(&self) -> &PolicyIndex {
        &self.0.policies
    }

    /// The keys of service account tokens.
    pub(crate) fn token_keys(&self) -> &TokenKeys {
        let given = || self.0.options.token_keys.clone().unwrap_or_else(|| Arc::new(TokenKeys::generate()));
        self.0.token_keys.get_or_init(given)
    }

    /// The server's clock.
    pub fn clock(&self) -> Clock {
        self.0.clock
    }

    /// The certificate of the authority that signed the server's certificate, in PEM; none inside a process.
    pub fn root_ca(&self) -> Option<&str> {
        self.0.options.root_ca.as_deref()
    }

    /// The options that the server was started with.
    pub(crate) fn options(&self) -> &ServerOptions {
        &self.0.options
    }

    /// The priority levels, and the requests that they handle.
    pub(crate) fn flow_control(&self) -> &FlowControl {
        &self.0.flow_control
    }

    /// The writes in progress.
    pub(crate) fn writes(&self) -> &Writes {
        &self.0.writes
    }

    /// The cache of encoded watch events.
    pub(crate) fn frames(&self) -> &EncodedEventCache {
        &self.0.frames
    }

    /// The controller of CustomResourceDefinitions; none while the server starts.
    pub(crate) fn crds(&self) -> Option<&crd::Controller> {
        self.0.crds.get()
    }

    /// The webhook configurations that are in force.
    pub(crate) fn admission_webhooks(&self) -> &Webhooks {
        &self.0.admission_webhooks
    }

    /// The client of webhooks.
    pub(crate) fn webhooks(&self) -> &WebhookClient {
        &self.0.webhooks
    }

    /// The webhooks in this process, which are called without a socket.
    pub fn webhook_services(&self) -> &WebhookServices {
        self.0.webhooks.services()
    }

    /// Handles a request: it passes the filters, then its endpoint. The sender is anonymous, unless the request has an
    /// extension that says otherwise; [`ApiServer::as_user`] adds one.
    pub async fn respond<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<tower::BoxError>,
    {
        let mut request = request.map(|body| UnsyncBoxBody::new(body.map_err(Into::into)));
        request.extensions_mut().insert(self.clone());
        filters::run(request).await
    }

    /// Waits until every write in progress is finished, also those whose clients have disconnected.
    pub async fn finish_writes(&self) {
        self.0.writes.finished().await;
    }
}

impl<B> tower::Service<Request<B>> for ApiServer
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<tower::BoxError>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _ctx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let server = self.clone();
        Box::pin(async move { Ok(server.respond(request).await) })
    }
}
