//! Traces, as a collector on a socket takes them. Time is real: a paused clock would run ahead of the socket.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use axum::{Router, body::Bytes, http::StatusCode, routing::post};
use flyball::{Action, Context, Controller, Error, Operator, Traces, config::Tracing};
use flyball_apiserver::{ApiServer, User};
use flyball_store::Store;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Api, Client, ResourceExt, api::PostParams};
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::{KeyValue, any_value::Value},
    trace::v1::{ResourceSpans, Span, status::StatusCode as Code},
};
use prost::Message;
use serde_json::json;
use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{net::TcpListener, sync::mpsc, time::timeout};
use tracing_subscriber::{layer::SubscriberExt, util::SubscriberInitExt};

const COUNT: usize = 300;

/// What a collector was sent.
#[derive(Clone, Default)]
struct Collector {
    taken: Arc<Mutex<Vec<ResourceSpans>>>,
    asked: Arc<AtomicUsize>,
}

impl Collector {
    /// Listens; the first batch is refused for the moment.
    async fn start(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let collector = self.clone();
        let take = async move |body: Bytes| collector.take(&body);
        let router = Router::new().route("/v1/traces", post(take));
        tokio::spawn(async move { axum::serve(listener, router).await });
        format!("http://{address}")
    }

    fn take(&self, body: &[u8]) -> StatusCode {
        if self.asked.fetch_add(1, Ordering::SeqCst) == 0 {
            return StatusCode::SERVICE_UNAVAILABLE;
        }
        let request = ExportTraceServiceRequest::decode(body).unwrap();
        self.taken.lock().unwrap().extend(request.resource_spans);
        StatusCode::OK
    }

    fn spans(&self) -> Vec<Span> {
        let taken = self.taken.lock().unwrap();
        let scopes = taken.iter().flat_map(|resource| &resource.scope_spans);
        scopes.flat_map(|scope| scope.spans.clone()).collect()
    }
}

fn text<'a>(attributes: &'a [KeyValue], key: &str) -> &'a str {
    let found = attributes.iter().find(|attribute| attribute.key == key);
    match found.and_then(|attribute| attribute.value.as_ref()?.value.as_ref()) {
        Some(Value::StringValue(text)) => text,
        other => panic!("{key}: {other:?}"),
    }
}

/// Applies a Secret, except for the last, which fails.
fn operator(done: mpsc::UnboundedSender<()>) -> Operator {
    let reconcile = move |map: Arc<ConfigMap>, ctx: Context| {
        let done = done.clone();
        async move {
            let last = map.name_any() == format!("map-{COUNT}");
            if !last {
                ctx.apply(Secret::default()).await?;
            }
            done.send(()).map_err(|_| "nobody waits any more")?;
            match last {
                true => Err(Error::permanent("no luck")),
                false => Ok(Action::await_change()),
            }
        }
    };
    Operator::new("traced").controller(Controller::new(reconcile).needs::<Secret>(["patch"]))
}

async fn create_maps(client: &Client) {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    for number in 1..=COUNT {
        let map = json!({ "metadata": { "name": format!("map-{number}") } });
        maps.create(&PostParams::default(), &serde_json::from_value(map).unwrap()).await.unwrap();
    }
}

#[tokio::test]
async fn a_collector_is_sent_every_reconcile_and_its_calls_and_none_is_lost_at_the_end() {
    let collector = Collector::default();
    let tracing = Tracing { endpoint: Some(collector.start().await), service_name: None };
    let traces = Traces::start(&tracing, "traced").unwrap().unwrap();
    tracing_subscriber::registry().with(traces.layer()).try_init().unwrap();
    let server = ApiServer::start(Store::memory()).await.unwrap();
    let client = Client::new(server.as_user(User::admin()), "default");
    let (sender, mut done) = mpsc::unbounded_channel();
    let running = operator(sender).start(client.clone()).await.unwrap();
    create_maps(&client).await;
    for _ in 0..COUNT {
        timeout(Duration::from_secs(60), done.recv()).await.unwrap().unwrap();
    }
    running.stop().await;
    traces.end().await;

    let spans = collector.spans();
    let reconciles: Vec<_> = spans.iter().filter(|span| span.name == "reconcile").collect();
    let keys: HashSet<_> = reconciles.iter().map(|span| text(&span.attributes, "key")).collect();
    assert_eq!((keys.len(), reconciles.len()), (COUNT, COUNT));
    let ids: HashSet<_> = reconciles.iter().map(|span| text(&span.attributes, "id")).collect();
    assert_eq!(ids.len(), COUNT, "each has an id of its own");

    let of = |name: &str| *reconciles.iter().find(|span| text(&span.attributes, "key") == name).unwrap();
    let first = of("default/map-1");
    let said = ["operator", "controller", "kind", "why", "result"].map(|key| text(&first.attributes, key));
    assert_eq!(said, ["traced", "configmap", "ConfigMap", "created", "success"]);
    let calls: Vec<_> = spans.iter().filter(|span| span.parent_span_id == first.span_id).collect();
    let names: Vec<_> = calls.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(names, ["patch secrets"]);
    assert_eq!(calls[0].trace_id, first.trace_id);

    let failed = of(&format!("default/map-{COUNT}"));
    assert_eq!(text(&failed.attributes, "result"), "error");
    let status = failed.status.as_ref().unwrap();
    assert_eq!((status.code(), status.message.as_str()), (Code::Error, "no luck"));
    let taken = collector.taken.lock().unwrap();
    let resource = taken[0].resource.as_ref().unwrap();
    assert_eq!(text(&resource.attributes, "service.name"), "traced");
    assert!(spans.iter().all(|span| !span.parent_span_id.is_empty() || span.name == "reconcile"));
}
