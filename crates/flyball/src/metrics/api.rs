//! Counts what an operator asks of the API server.

use crate::cache::client::as_client;
use crate::engine::trace;
use crate::metrics::Metrics;
use http::{Method, Request, Response};
use kube::{Client, client::Body};
use std::sync::Arc;
use tokio::time::Instant;
use tracing::Instrument;

/// A client that counts its requests.
#[derive(Clone)]
pub(crate) struct MeasuredClient {
    client: Client,
    metrics: Metrics,
    /// The host that requests go to, as client-go's metrics name it; empty where only the client knows.
    host: Arc<str>,
}

impl MeasuredClient {
    pub(crate) fn new(client: Client, metrics: Metrics, host: &str) -> MeasuredClient {
        MeasuredClient { client, metrics, host: host.into() }
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> kube::Result<Response<Body>> {
        let (call, started) = (Call::read(&request), Instant::now());
        let span = trace::call(call.verb, &call.resource, request.uri().path());
        let answer = self.client.send(request).instrument(span.clone()).await;
        let code = answer.as_ref().map_or("<error>".into(), |answer| answer.status().as_u16().to_string());
        trace::answered(&span, &answer);
        call.count(&self.metrics, &self.host, &code, started);
        answer
    }

    /// The default namespace.
    pub(crate) fn namespace(&self) -> &str {
        self.client.default_namespace()
    }

    /// The same as kube's own type, which puts one more task between caller and server.
    pub(crate) fn to_client(&self) -> Client {
        let send = |this: Arc<MeasuredClient>, request| async move { this.send(request).await };
        as_client(Arc::new(self.clone()), self.namespace(), send)
    }
}

/// A request as metrics tell of it.
struct Call {
    method: Method,
    verb: &'static str,
    resource: String,
}

impl Call {
    fn read<B>(request: &Request<B>) -> Call {
        let (uri, method) = (request.uri(), request.method().clone());
        let (resource, named) = resource(uri.path());
        let watches = uri.query().is_some_and(|query| query.contains("watch=true") || query.contains("watch=1"));
        let verb = match (&method, named) {
            (&Method::GET, _) if watches => "watch",
            (&Method::GET, true) => "get",
            (&Method::GET, false) => "list",
            (&Method::POST, _) => "create",
            (&Method::PUT, _) => "update",
            (&Method::PATCH, _) => "patch",
            (&Method::DELETE, true) => "delete",
            (&Method::DELETE, false) => "deletecollection",
            _ => "other",
        };
        Call { method, verb, resource }
    }

    fn count(&self, metrics: &Metrics, host: &str, code: &str, started: Instant) {
        let instruments = metrics.instruments();
        instruments.rest_requests.with([code, self.method.as_str(), host]).inc();
        instruments.api_requests.with([self.verb, &self.resource, code]).inc();
        let seconds = started.elapsed().as_secs_f64();
        instruments.rest_durations.with([self.verb, host]).observe(seconds);
    }
}

/// `deployments/status` and whether one object is meant, from a path; nothing for paths of no resource.
fn resource(path: &str) -> (String, bool) {
    let segments: Vec<_> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let rest = match &*segments {
        ["api", _, rest @ ..] | ["apis", _, _, rest @ ..] => rest,
        _ => return (String::new(), true),
    };
    let rest = match rest {
        ["namespaces", _, rest @ ..] if !matches!(rest, [] | ["status" | "finalize"]) => rest,
        rest => rest,
    };
    match rest {
        [] => (String::new(), true),
        [plural] => ((*plural).to_owned(), false),
        [plural, _] => ((*plural).to_owned(), true),
        [plural, _, subresource, ..] => (format!("{plural}/{subresource}"), true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Connection;

    #[tokio::test]
    async fn requests_are_counted_by_the_host_that_they_go_to() {
        let answer = |_: Request<Body>| async { Ok::<_, std::convert::Infallible>(Response::new(Body::empty())) };
        let (client, metrics) = (Client::new(tower::service_fn(answer), "default"), Metrics::default());
        let cluster = kube::Config::new("https://10.96.0.1:443/cluster".parse().unwrap());
        let client = MeasuredClient::new(client, metrics.clone(), Connection::from(cluster).host());
        client.send(Request::get("/api/v1/pods").body(Body::empty()).unwrap()).await.unwrap();
        let text = metrics.text(crate::metrics::Format::Prometheus);
        let series = r#"rest_client_requests_total{code="200",method="GET",host="10.96.0.1:443"} 1"#;
        assert!(text.contains(series), "{text}");
    }

    #[test]
    fn a_call_is_read_off_its_request() {
        let read = |method, uri: &str| {
            let call = Call::read(&Request::builder().method(method).uri(uri).body(()).unwrap());
            format!("{} {}", call.verb, call.resource)
        };
        assert_eq!(read("GET", "/api/v1/namespaces/a/pods?limit=500"), "list pods");
        assert_eq!(read("GET", "/api/v1/pods?watch=true"), "watch pods");
        assert_eq!(
            read("PATCH", "/apis/apps/v1/namespaces/a/deployments/b/status"),
            "patch deployments/status"
        );
        assert_eq!(read("GET", "/api/v1/namespaces/a"), "get namespaces");
        assert_eq!(read("DELETE", "/api/v1/nodes/a"), "delete nodes");
        assert_eq!(read("GET", "/version"), "get ");
    }
}
