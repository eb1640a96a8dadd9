//! Sends traces to a collector: OTLP, protobuf over HTTP. What waits is sent by a thread of OpenTelemetry's, over connections of ours.

use crate::program::config::Tracing;
use crate::{Error, Result};
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use kube::client::ConfigExt;
use opentelemetry::{Key, trace::TracerProvider};
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::{
    Resource,
    trace::{BatchConfigBuilder, BatchSpanProcessor, SdkTracerProvider},
};
use std::time::Duration;
use tokio::{runtime::Handle, task::spawn_blocking, time::timeout};
use tracing::{Level, Metadata, Subscriber};
use tracing_subscriber::{Layer, filter::filter_fn, registry::LookupSpan};

/// So many spans may wait: more than a burst of reconciles makes while one batch is sent. `OTEL_BSP_MAX_QUEUE_SIZE` is heard over it.
const WAITING: usize = 65_536;
/// A collector answers within this time, or the batch is tried again. `OTEL_EXPORTER_OTLP_TIMEOUT` is heard over it.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the last batches may take.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(15);
/// A collector answers with next to nothing.
const MOST: usize = 1 << 20;

/// Traces on their way to a collector.
///
/// [`run`](crate::program::run) sets this up as the configuration says. A program that sets up its log itself adds the [`layer`](Traces::layer)
/// to it, and calls [`end`](Traces::end) last.
#[derive(Debug)]
pub struct Traces {
    provider: SdkTracerProvider,
}

impl Traces {
    /// Starts sending where the configuration says, or nothing if it says nowhere. It must be called on a tokio runtime.
    pub fn start(tracing: &Tracing, operator: &str) -> Result<Option<Traces>> {
        let Some(endpoint) = &tracing.endpoint else {
            return Ok(None);
        };
        check(|name| std::env::var(name).ok())?;
        let endpoint = traces_of(endpoint);
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(Sender::new(&endpoint)?)
            .with_endpoint(&endpoint)
            .build()
            .map_err(|error| Error::permanent(format!("send traces to {endpoint}: {error}")))?;
        let mut batches = BatchConfigBuilder::default();
        if std::env::var_os("OTEL_BSP_MAX_QUEUE_SIZE").is_none() {
            batches = batches.with_max_queue_size(WAITING);
        }
        let processor = BatchSpanProcessor::builder(exporter).with_batch_config(batches.build()).build();
        let resource = resource(tracing.service_name.as_deref(), operator);
        let provider = SdkTracerProvider::builder()
            .with_span_processor(processor)
            .with_resource(resource)
            .build();
        Ok(Some(Traces { provider }))
    }

    /// Makes traces of spans: those of the framework, and those of level info and above from anywhere else.
    pub fn layer<S>(&self) -> impl Layer<S> + Send + Sync + use<S>
    where
        S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
    {
        let tracer = self.provider.tracer("flyball");
        tracing_opentelemetry::layer()
            .with_tracer(tracer)
            .with_location(false)
            .with_threads(false)
            .with_filter(filter_fn(is_traced))
    }

    /// Sends what has ended, and ends.
    pub async fn end(self) {
        let ended = spawn_blocking(move || self.provider.shutdown_with_timeout(SHUTDOWN_TIMEOUT)).await;
        match ended {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "traces were lost"),
            Err(error) => tracing::warn!(%error, "traces were lost"),
        }
    }
}

/// Not what OpenTelemetry says about itself.
fn is_traced(metadata: &Metadata<'_>) -> bool {
    let target = metadata.target();
    let ours = target == "flyball" || target.starts_with("flyball::");
    (*metadata.level() <= Level::INFO || ours && metadata.is_span()) && !target.starts_with("opentelemetry")
}

/// Where a collector takes traces (OTLP 1.7, "OTLP/HTTP Request").
fn traces_of(endpoint: &str) -> String {
    match endpoint.trim_end_matches('/') {
        whole if whole.ends_with("/v1/traces") => whole.to_owned(),
        base => format!("{base}/v1/traces"),
    }
}

/// Refuses variables of OpenTelemetry's that ask for what is not done.
fn check(variable: impl Fn(&str) -> Option<String>) -> Result<()> {
    for name in ["OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"] {
        if let Some(protocol) = variable(name).filter(|protocol| protocol != "http/protobuf") {
            let text = format!("{name}: `{protocol}` is not spoken, only http/protobuf, on port 4318 as a rule");
            return Err(Error::permanent(text));
        }
    }
    match variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") {
        Some(_) => Err(Error::permanent(
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: give OTEL_EXPORTER_OTLP_ENDPOINT or tracing.endpoint in its place",
        )),
        None => Ok(()),
    }
}

/// What traces say of this process: its name, and whatever `OTEL_RESOURCE_ATTRIBUTES` says.
fn resource(name: Option<&str>, operator: &str) -> Resource {
    let found = Resource::builder().build();
    let named = found.get(&Key::new("service.name")).map(|name| name.to_string());
    let named = named.filter(|name| !name.starts_with("unknown_service"));
    let name = name.map(str::to_owned).or(named).unwrap_or_else(|| operator.to_owned());
    Resource::builder().with_service_name(name).build()
}

/// Sends requests on this program's runtime, from whatever thread it is asked to.
struct Sender {
    send: Box<dyn Fn(Request<Bytes>) -> Sending + Send + Sync>,
    runtime: Handle,
    within: Duration,
}

type Sending = BoxFuture<'static, Result<Response<Bytes>, HttpError>>;

impl Sender {
    fn new(endpoint: &str) -> Result<Sender> {
        let uri: Uri = endpoint.parse()?;
        let client = Client::builder(TokioExecutor::new()).build(kube::Config::new(uri).rustls_https_connector()?);
        let send = move |request: Request<Bytes>| -> Sending {
            let client = client.clone();
            Box::pin(async move {
                let (head, body) = client.request(request.map(Full::new)).await?.into_parts();
                let body = Limited::new(body, MOST).collect().await?;
                Ok(Response::from_parts(head, body.to_bytes()))
            })
        };
        let millis = std::env::var("OTEL_EXPORTER_OTLP_TIMEOUT").ok().and_then(|text| text.parse().ok());
        Ok(Sender {
            send: Box::new(send),
            runtime: Handle::current(),
            within: millis.map_or(EXPORT_TIMEOUT, Duration::from_millis),
        })
    }
}

impl HttpClient for Sender {
    fn send_bytes<'a, 'b>(&'a self, request: Request<Bytes>) -> BoxFuture<'b, Result<Response<Bytes>, HttpError>>
    where
        'a: 'b,
        Self: 'b,
    {
        let (answer, within) = ((self.send)(request), self.within);
        let answer = self.runtime.spawn(async move { timeout(within, answer).await? });
        Box::pin(async move { answer.await? })
    }
}

impl std::fmt::Debug for Sender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sender")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_a_collector_or_where_it_takes_traces() {
        for endpoint in ["http://a:4318", "http://a:4318/", "http://a:4318/v1/traces"] {
            assert_eq!(traces_of(endpoint), "http://a:4318/v1/traces");
        }
        assert_eq!(traces_of("https://a/otlp/"), "https://a/otlp/v1/traces");
    }

    #[test]
    fn variables_that_ask_for_another_protocol_are_refused_by_name() {
        let refusal = |name: &'static str, value: &'static str| {
            let refused = check(|asked| (asked == name).then(|| value.to_owned()));
            refused.map_or_else(|error| error.to_string(), |()| "none".into())
        };
        assert_eq!(refusal("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"), "none");
        for (name, value) in [
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json"),
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://a"),
        ] {
            assert!(refusal(name, value).starts_with(name), "{name}");
        }
    }
}
