//! Webhooks in this process: they are called as tower services, without a socket.

use crate::webhook::client_config::Target;
use bytes::Bytes;
use futures::FutureExt;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use tower::util::BoxCloneService;
use tower::{BoxError, Service, ServiceExt};

/// The most bytes that the answer of a webhook may have.
pub(super) const MAX_ANSWER_BYTES: usize = 32 * 1024 * 1024;

/// The address of a webhook, as the `clientConfig` of a configuration names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebhookAddress {
    /// A `service`.
    Service {
        /// The namespace of the Service.
        namespace: String,
        /// The name of the Service.
        name: String,
        /// The port; any if none.
        port: Option<u16>,
    },
    /// The host of a `url`, with its port if that is not 443: `hooks.example.dev:8443`.
    Host(String),
}

impl WebhookAddress {
    /// A Service, on any port.
    pub fn service(namespace: impl Into<String>, name: impl Into<String>) -> WebhookAddress {
        WebhookAddress::Service { namespace: namespace.into(), name: name.into(), port: None }
    }

    fn is(&self, target: &Target) -> bool {
        match (self, target) {
            (
                WebhookAddress::Service { namespace, name, port },
                Target::Service { namespace: its_namespace, name: its_name, port: its_port, .. },
            ) => namespace == its_namespace && name == its_name && port.is_none_or(|port| port == *its_port),
            (WebhookAddress::Host(host), Target::Url { authority, .. }) => {
                host == authority || authority.strip_suffix(":443") == Some(host)
            }
            _ => false,
        }
    }
}

/// The webhooks in this process. A webhook configuration, or a definition with a conversion webhook, refers to them by the
/// address of their Service or URL as it would to any other; they are called without a socket and without TLS, so that
/// tests on a paused clock and operators beside the server need neither ports nor certificates.
///
/// ```
/// use flyball_apiserver::ApiServer;
/// use flyball_apiserver::webhook::WebhookAddress;
/// use flyball_store::Store;
/// use http::{Request, Response};
/// use http_body_util::Full;
/// use bytes::Bytes;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = ApiServer::start(Store::memory()).await?;
/// let service = tower::service_fn(|review: Request<Full<Bytes>>| async move {
///     assert_eq!(review.uri().path(), "/validate");
///     Ok::<_, std::convert::Infallible>(Response::new(Full::new(Bytes::from_static(b"{}"))))
/// });
/// let registration = server.webhook_services().register(WebhookAddress::service("default", "greeter"), service);
/// // From here on `clientConfig: {service: {namespace: default, name: greeter, path: /validate}}` is answered by `service`.
/// drop(registration); // And from here on by the endpoints of that Service again.
/// # Ok(()) }
/// ```
#[derive(Clone, Default)]
pub struct WebhookServices(Arc<Mutex<Registrations>>);

type BoxedService = BoxCloneService<Request<Full<Bytes>>, Response<Bytes>, BoxError>;

#[derive(Default)]
struct Registrations {
    next: u64,
    services: Vec<(u64, WebhookAddress, BoxedService)>,
}

/// A webhook in this process; it is called until this is dropped.
#[must_use = "the webhook is called until its registration is dropped"]
pub struct Registration {
    id: u64,
    services: WebhookServices,
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.services.with(|all| all.services.retain(|(id, _, _)| *id != self.id));
    }
}

impl WebhookServices {
    /// Calls a service for the webhooks at an address, until the registration is dropped. Of several at one address the
    /// latest is called.
    pub fn register<S, B>(&self, address: WebhookAddress, service: S) -> Registration
    where
        S: Service<Request<Full<Bytes>>, Response = Response<B>> + Clone + Send + 'static,
        S::Error: Into<BoxError>,
        S::Future: Send,
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<BoxError>,
    {
        let service = service.map_err(Into::into).and_then(collect);
        let id = self.with(|all| {
            all.next += 1;
            all.services.push((all.next, address, BoxCloneService::new(service)));
            all.next
        });
        Registration { id, services: self.clone() }
    }

    /// Calls the service of a webhook; none if there is none in this process. A panic of the service is an error.
    pub(super) async fn call(
        &self,
        target: &Target,
        request: Request<Full<Bytes>>,
    ) -> Option<Result<Response<Bytes>, BoxError>> {
        let found = self.with(|all| {
            let mut matching = all.services.iter().rev().filter(|(_, address, _)| address.is(target));
            matching.next().map(|(_, _, service)| service.clone())
        });
        let calling = AssertUnwindSafe(found?.oneshot(request)).catch_unwind();
        Some(calling.await.unwrap_or_else(|_| Err("the webhook panicked".into())))
    }

    fn with<T>(&self, then: impl FnOnce(&mut Registrations) -> T) -> T {
        then(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

async fn collect<B>(response: Response<B>) -> Result<Response<Bytes>, BoxError>
where
    B: http_body::Body,
    B::Error: Into<BoxError>,
{
    let (parts, body) = response.into_parts();
    let body = Limited::new(body, MAX_ANSWER_BYTES).collect().await?.to_bytes();
    Ok(Response::from_parts(parts, body))
}
