//! The API server: a value that answers requests. What it knows is in its store; the registry follows from that.

use crate::authn::user::User;
use crate::client::InProcessClient;
use crate::clock::Clock;
use crate::crd;
use crate::encoding::output;
use crate::http::body::Body;
use crate::nonresource;
use crate::registry::{Kind, Registry};
use crate::request::context::{RequestContext, ResourceRequest};
use crate::request::info::RequestInfo;
use crate::routing::{self, Route};
use crate::status::{Result, Status};
use crate::watch_cache::EncodedEventCache;
use crate::{bootstrap, dispatch};
use bytes::Bytes;
use flyball_schema::kinds;
use flyball_store::Store;
use futures::future::BoxFuture;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use std::convert::Infallible;
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Context, Poll};

/// The most bytes that the body of a request may have.
pub const MOST_BODY_BYTES: usize = 3 * 1024 * 1024;

/// A Kubernetes API server over a store; clones share it.
#[derive(Clone)]
pub struct ApiServer(Arc<Inner>);

pub(crate) struct Inner {
    store: Store,
    registry: Registry,
    clock: Clock,
    frames: EncodedEventCache,
    crds: OnceLock<crd::Controller>,
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
        let registry = Registry::new(kinds::builtin().resources.iter().cloned().map(Kind::built_in));
        let server = ApiServer(Arc::new(Inner {
            store,
            registry,
            clock: Clock::start(),
            frames: EncodedEventCache::default(),
            crds: OnceLock::new(),
        }));
        let crds = crd::start(&server).await?;
        server.0.crds.get_or_init(|| crds);
        bootstrap::seed(&server).await?;
        Ok(server)
    }

    /// A client in this process that makes its requests as that user.
    pub fn as_user(&self, user: User) -> InProcessClient {
        InProcessClient::new(self.clone(), user)
    }

    /// Where objects are kept.
    pub fn store(&self) -> &Store {
        &self.0.store
    }

    /// Which kinds are served.
    pub fn registry(&self) -> &Registry {
        &self.0.registry
    }

    /// What time it is.
    pub fn clock(&self) -> Clock {
        self.0.clock
    }

    /// The lines of watches.
    pub(crate) fn frames(&self) -> &EncodedEventCache {
        &self.0.frames
    }

    /// The controller of CustomResourceDefinitions; none while the server starts.
    pub(crate) fn crds(&self) -> Option<&crd::Controller> {
        self.0.crds.get()
    }

    /// Answers a request.
    pub async fn respond<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Error: Into<tower::BoxError>,
    {
        let (mut parts, body) = request.into_parts();
        let info = RequestInfo::read(&parts.method, &parts.uri);
        let mut context = RequestContext::new(info, output::audit_id(&parts.headers));
        if let Some(user) = parts.extensions.remove::<User>() {
            context.user = user;
        }
        let audit_id = context.audit_id.clone();
        let response = self.routed(context, &parts.headers, body).await;
        output::finish(&parts.headers, audit_id, response)
    }

    async fn routed<B>(&self, context: RequestContext, headers: &HeaderMap, body: B) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Error: Into<tower::BoxError>,
    {
        let served = self.registry().served();
        let info = &context.info;
        match routing::route(&served, info) {
            Route::Resource(kind, target) => {
                let target = target.clone();
                let request = ResourceRequest::new(self.clone(), kind, target, context, headers.clone());
                dispatch::dispatch(request, read(body)).await
            }
            Route::Refused(status) => output::refuse(headers, &info.query, &status),
            Route::Missing(target) => nonresource::not_found(headers, &info.query, target),
            Route::NonResource => nonresource::respond(&served, &self.0.clock, headers, info),
        }
    }
}

async fn read<B>(body: B) -> Result<Bytes>
where
    B: http_body::Body<Data = Bytes> + Send,
    B::Error: Into<tower::BoxError>,
{
    match Limited::new(body, MOST_BODY_BYTES).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Status::too_large(MOST_BODY_BYTES)),
        Err(error) => Err(Status::bad_request(format!("read the body: {error}"))),
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
