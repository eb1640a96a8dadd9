//! All webhooks of an operator as one tower service, with limits on body, time and concurrency. It opens no socket.

use crate::metrics::Metrics;
use crate::webhook::admission::{AdmissionSpec, Malformed, malformed};
use crate::webhook::conversion::{ConversionSpec, review as conversion};
use crate::webhook::endpoint::CONVERT;
use crate::webhook::review::{self, Answer, Request as Reviewed};
use crate::{Error, Operator, Result};
use bytes::Bytes;
use futures::{FutureExt, future::BoxFuture};
use http::{Method, Request, Response, StatusCode, header};
use http_body::Body;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use kube::{Client, core::admission::Operation};
use std::{
    collections::HashMap,
    convert::Infallible,
    panic::AssertUnwindSafe,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio::{sync::Semaphore, time::timeout};

/// As controller-runtime's: the API server's limit of a request is 3 MiB, and a review has two objects.
const MAX_ADMISSION_BODY: usize = 7 << 20;
/// The API server converts a list by one review.
const MAX_CONVERSION_BODY: usize = 64 << 20;
/// Reviews that are answered at a time; further ones wait, as long as they may take.
const MAX_CONCURRENCY: usize = 64;
/// The longest that a review may take; the API server asks for less in `?timeout=`.
const MAX_TIMEOUT: Duration = Duration::from_secs(30);

/// All webhooks of an operator: admission at their paths, conversion at `/convert`, `ok` at `/healthz`.
///
/// It is a [`tower::Service`] from HTTP request to response. Clones share their limits.
#[derive(Clone)]
pub struct WebhookService {
    inside: Arc<Inside>,
}

struct Inside {
    admissions: HashMap<String, AdmissionSpec>,
    conversions: Vec<ConversionSpec>,
    client: Client,
    metrics: Metrics,
    room: Semaphore,
}

impl WebhookService {
    /// The webhooks of an operator, whose functions use `client`.
    pub fn new(operator: &Operator, client: Client) -> WebhookService {
        WebhookService::measured(operator, client, operator.own_metrics())
    }

    pub(crate) fn measured(operator: &Operator, client: Client, metrics: Metrics) -> WebhookService {
        let admissions = operator.admissions().iter().map(|spec| (spec.path(), spec.clone())).collect();
        let conversions = operator.conversions().to_vec();
        let room = Semaphore::new(MAX_CONCURRENCY);
        WebhookService {
            inside: Arc::new(Inside { admissions, conversions, client, metrics, room }),
        }
    }

    /// Whether there is nothing to call.
    pub fn is_empty(&self) -> bool {
        self.inside.admissions.is_empty() && self.inside.conversions.is_empty()
    }

    /// Answers one request.
    pub async fn respond<B>(&self, request: Request<B>) -> Response<Full<Bytes>>
    where
        B: Body<Error: Into<Box<dyn std::error::Error + Send + Sync>>>,
    {
        let path = request.uri().path().to_owned();
        match &*path {
            "/healthz" | "/readyz" if request.method() == Method::GET => text(StatusCode::OK, "ok"),
            _ if path != CONVERT && !self.inside.admissions.contains_key(&path) => {
                text(StatusCode::NOT_FOUND, "no such webhook")
            }
            _ if request.method() != Method::POST => text(StatusCode::METHOD_NOT_ALLOWED, "expected POST"),
            _ if !is_json(&request) => {
                text(StatusCode::UNSUPPORTED_MEDIA_TYPE, "expected the content type application/json")
            }
            _ => self.measure(&path, request).await,
        }
    }

    /// Answers a review within its time, and counts it.
    async fn measure<B>(&self, path: &str, request: Request<B>) -> Response<Full<Bytes>>
    where
        B: Body<Error: Into<Box<dyn std::error::Error + Send + Sync>>>,
    {
        let measured = self.inside.metrics.webhook(path);
        let limit = requested_timeout(request.uri().query().unwrap_or_default());
        let review = timeout(limit, self.review(path, request));
        let response = match AssertUnwindSafe(review).catch_unwind().await {
            Ok(Ok(response)) => response,
            Ok(Err(_)) => text(StatusCode::GATEWAY_TIMEOUT, format!("no answer within {limit:?}")),
            Err(_) => {
                measured.panicked();
                tracing::error!(webhook = path, "a webhook panicked");
                text(StatusCode::INTERNAL_SERVER_ERROR, "the webhook panicked")
            }
        };
        measured.answered(response.status());
        response
    }

    async fn review<B>(&self, path: &str, request: Request<B>) -> Response<Full<Bytes>>
    where
        B: Body<Error: Into<Box<dyn std::error::Error + Send + Sync>>>,
    {
        let _permit = self.inside.room.acquire().await.expect("the semaphore is never closed");
        let max = if path == CONVERT {
            MAX_CONVERSION_BODY
        } else {
            MAX_ADMISSION_BODY
        };
        let body = match Limited::new(request.into_body(), max).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => {
                return text(StatusCode::PAYLOAD_TOO_LARGE, format!("the body exceeds {max} bytes"));
            }
            Err(error) => return text(StatusCode::BAD_REQUEST, format!("read the body: {error}")),
        };
        if path == CONVERT {
            return match conversion::answer(&body, &self.inside.conversions) {
                Ok(review) => json(&review),
                Err(why) => text(StatusCode::BAD_REQUEST, why),
            };
        }
        let Some(spec) = self.inside.admissions.get(path) else {
            return text(StatusCode::NOT_FOUND, "no such webhook");
        };
        let request = match review::read(&body) {
            Ok(request) => Arc::new(request),
            Err(why) => return text(StatusCode::BAD_REQUEST, why),
        };
        match admit(spec, &request, self.inside.client.clone()).await {
            Ok(answer) => json(&answer.to_review(&request.uid)),
            Err(error) => failure(path, &error),
        }
    }
}

impl<B> tower::Service<Request<B>> for WebhookService
where
    B: Body<Data: Send, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Send + 'static,
{
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Full<Bytes>>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move { Ok(service.respond(request).await) })
    }
}

impl std::fmt::Debug for WebhookService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.inside.admissions.keys()).finish()
    }
}

async fn admit(spec: &AdmissionSpec, request: &Arc<Reviewed>, client: Client) -> Result<Answer> {
    if let Some(kind) = &spec.kind {
        let (wanted, given) = (&kind.resource, &request.kind);
        // A subresource such as `scale` has a kind of its own.
        let is_known = wanted.group == given.group && wanted.kind == given.kind;
        if !is_known {
            let wanted = format!("{} of {}", wanted.kind, wanted.api_version);
            return Err(malformed(format!(
                "request.kind: expected {wanted}, not {} of {:?}",
                given.kind, given.group
            )));
        }
        if is_ending(request) && !spec.rule.terminating {
            return Ok(Answer::default());
        }
    }
    (spec.handler)(request.clone(), client).await
}

/// Whether an object that is being deleted is updated, by which a finalizer may be removed.
fn is_ending(request: &Reviewed) -> bool {
    let is_deleted = |object: &serde_json::Value| !object["metadata"]["deletionTimestamp"].is_null();
    request.operation == Operation::Update && request.old_object.as_ref().is_some_and(is_deleted)
}

fn failure(path: &str, error: &Error) -> Response<Full<Bytes>> {
    if error.find::<Malformed>().is_some() {
        return text(StatusCode::BAD_REQUEST, error.to_string());
    }
    tracing::warn!(webhook = path, %error, "a webhook failed");
    text(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
}

fn is_json<B>(request: &Request<B>) -> bool {
    let content_type = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    content_type.is_some_and(|value| value.split(';').next().unwrap_or_default().trim() == "application/json")
}

/// The time that the API server waits, as in `?timeout=10s`.
fn requested_timeout(query: &str) -> Duration {
    let given = query.split('&').find_map(|parameter| parameter.strip_prefix("timeout="));
    let given = given.and_then(|text| text.parse::<jiff::SignedDuration>().ok());
    let given = given.and_then(|given| Duration::try_from(given).ok()).filter(|given| !given.is_zero());
    given.map_or(MAX_TIMEOUT, |given| given.min(MAX_TIMEOUT))
}

fn json(value: &serde_json::Value) -> Response<Full<Bytes>> {
    response(StatusCode::OK, "application/json", value.to_string())
}

fn text(status: StatusCode, text: impl Into<String>) -> Response<Full<Bytes>> {
    response(status, "text/plain; charset=utf-8", text.into())
}

fn response(status: StatusCode, content_type: &str, body: String) -> Response<Full<Bytes>> {
    let response = Response::builder().status(status).header(header::CONTENT_TYPE, content_type);
    response.body(Full::from(body)).expect("the headers are constant")
}
