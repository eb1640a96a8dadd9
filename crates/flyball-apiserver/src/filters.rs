//! The filters that every request passes, outermost first, in kube-apiserver's order (`DefaultBuildHandlerChain`).
//! A filter is one file of this directory and one line of `run`.

mod audit;
mod audit_init;
mod authentication;
mod authorization;
mod cache_control;
mod impersonation;
mod panic_recovery;
mod priority_and_fairness;
mod request_deadline;
mod request_info;

use crate::dispatch;
use crate::encoding::output;
use crate::http::body::Body;
use crate::request::context::RequestContext;
use crate::status::Status;
use ::http::HeaderValue;
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http_body_util::combinators::UnsyncBoxBody;
use std::convert::Infallible;
use std::task::{Context, Poll};
use tower::{Layer, Service, ServiceBuilder, service_fn};

/// The body of a request in the pipeline.
pub(crate) type RequestBody = UnsyncBoxBody<Bytes, tower::BoxError>;
/// A request in the pipeline.
pub(crate) type Request = http::Request<RequestBody>;
/// A response in the pipeline.
pub(crate) type Response = http::Response<Body>;

/// The future of a response.
type Answer = BoxFuture<'static, Result<Response, Infallible>>;

/// Passes a request through the filters to its endpoint.
pub(crate) async fn run(request: Request) -> Response {
    let mut pipeline = ServiceBuilder::new()
        .layer(Filter(audit_init::filter))
        .layer(Filter(panic_recovery::filter))
        .layer(Filter(request_info::filter))
        .layer(Filter(cache_control::filter))
        .layer(Filter(request_deadline::filter))
        .layer(Filter(authentication::filter))
        .layer(Filter(audit::filter))
        .layer(Filter(impersonation::filter))
        .layer(Filter(priority_and_fairness::filter))
        .layer(Filter(authorization::filter))
        .service(service_fn(endpoint));
    let Ok(response) = pipeline.call(request).await;
    response
}

fn endpoint(request: Request) -> Answer {
    Box::pin(dispatch::dispatch(request).map(Ok))
}

/// The layer of a filter: an async function that answers a request itself or calls [`Next::run`].
#[derive(Clone, Copy)]
struct Filter<F>(F);

impl<F: Copy, S> Layer<S> for Filter<F> {
    type Service = Filtered<F, S>;

    fn layer(&self, inner: S) -> Filtered<F, S> {
        Filtered { filter: self.0, inner }
    }
}

/// A service behind a filter.
#[derive(Clone, Copy)]
struct Filtered<F, S> {
    filter: F,
    inner: S,
}

impl<F, A, S> Service<Request> for Filtered<F, S>
where
    F: Fn(Request, Next) -> A,
    A: Future<Output = Response> + Send + 'static,
    S: Service<Request, Response = Response, Error = Infallible, Future = Answer> + Clone + Send + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, _ctx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    // The filters are functions without state, so that the closure has no size: the only allocation is the answer's.
    fn call(&mut self, request: Request) -> Answer {
        let mut inner = self.inner.clone();
        let next = Next(Box::new(move |request| inner.call(request)));
        Box::pin((self.filter)(request, next).map(Ok))
    }
}

/// The rest of the pipeline, behind a filter.
pub(crate) struct Next(Box<dyn FnOnce(Request) -> Answer + Send>);

impl Next {
    /// Passes the request on.
    pub async fn run(self, request: Request) -> Response {
        let Ok(response) = (self.0)(request).await;
        response
    }
}

/// The context of a request, as the filters so far have filled it in.
pub(crate) fn context(request: &Request) -> &RequestContext {
    request.extensions().get().expect("request_info makes the context")
}

fn context_mut(request: &mut Request) -> &mut RequestContext {
    request.extensions_mut().get_mut().expect("request_info makes the context")
}

/// The response to a request that a filter does not pass on.
fn refuse(request: &Request, status: &Status) -> Response {
    if let Some(record) = &context(request).audit {
        record.refused(status);
    }
    output::refuse(request.headers(), &context(request).info.query, status)
}

/// The same, with the header that keeps browsers from guessing its type.
fn refuse_without_sniffing(request: &Request, status: &Status) -> Response {
    let mut response = refuse(request, status);
    response
        .headers_mut()
        .insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    response
}
