//! `/debug`: queued objects and why, failures, caches, the log's level, and a reconcile on demand.

use crate::engine::runtime::{ControllerHandle, Runtime};
use crate::program::log;
use crate::{EventFilter, Key, QueuePosition, Queued};
use axum::{
    Json, Router,
    extract::{Query, State},
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::time::Instant;

/// Default of `limit`: objects per controller in an answer.
const LIMIT: usize = 100;

pub(crate) fn router() -> Router<Arc<Runtime>> {
    Router::new()
        .route("/", get(index))
        .route("/queues", get(queues))
        .route("/errors", get(errors))
        .route("/caches", get(caches))
        .route("/events", get(events))
        .route("/log", get(log_level).put(set_log_level))
        .route("/reconcile", post(reconcile))
}

const INDEX: &str = "\
GET  /debug/queues?controller=NAME&limit=100    what is being reconciled and what is queued, until when, and why
GET  /debug/errors?controller=NAME&limit=100    the last error of each object that fails
GET  /debug/caches                              what is cached, and the state of its watches
GET  /debug/events?kind=KIND&object=NAMESPACE/NAME&reason=REASON&limit=100    the last events that the operator published
GET  /debug/log                                 what is logged
PUT  /debug/log                                 log what the body says from now on: debug, or info,kube=debug
POST /debug/reconcile?controller=NAME&object=NAMESPACE/NAME    reconcile one object now
POST /debug/reconcile?controller=NAME&all                      reconcile all objects now
";

pub(crate) async fn index() -> &'static str {
    INDEX
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Which {
    controller: Option<String>,
    limit: Option<usize>,
}

impl Which {
    fn names(&self, controller: &str) -> bool {
        self.controller.as_deref().is_none_or(|name| name == controller)
    }
}

async fn queues(State(operator): State<Arc<Runtime>>, Query(which): Query<Which>) -> Response {
    let queues = operator.queues(which.limit.unwrap_or(LIMIT));
    let queues = queues.iter().filter(|queue| which.names(&queue.controller)).map(|queue| {
        json!({
            "controller": queue.controller,
            "kind": queue.kind,
            "ready": queue.ready,
            "waiting": queue.waiting,
            "running": queue.running,
            "held": held(&operator, &queue.controller),
            "objects": queue.objects.iter().map(object).collect::<Vec<_>>(),
        })
    });
    Json(queues.collect::<Vec<_>>()).into_response()
}

/// Why nothing is taken from a queue, if that is so.
fn held(operator: &Runtime, controller: &str) -> Option<String> {
    let handles = operator.handles();
    let held = |handle: &&Arc<ControllerHandle>| handle.name == controller && !handle.leadership.is_leading();
    let leadership = &handles.iter().find(held)?.leadership;
    Some(format!("this process does not lead {}", leadership.election().unwrap_or_default()))
}

fn object(queued: &Queued) -> Value {
    let now = Instant::now();
    let (state, seconds) = match queued.position {
        QueuePosition::Ready(since) => ("ready", -seconds(since, now)),
        QueuePosition::Until(until) => ("waiting", seconds(now, until)),
        QueuePosition::Running { since, .. } => ("running", -seconds(since, now)),
    };
    json!({
        "object": queued.key.to_string(),
        "state": state,
        // Negative for what has been so since then, positive for what will be.
        "seconds": seconds,
        "why": queued.why.to_string(),
        "background": queued.background,
        "again": matches!(queued.position, QueuePosition::Running { again: true, .. }),
    })
}

async fn errors(State(operator): State<Arc<Runtime>>, Query(which): Query<Which>) -> Response {
    let queues = operator.queues(which.limit.unwrap_or(LIMIT));
    let failing = queues.iter().filter(|queue| which.names(&queue.controller)).flat_map(|queue| {
        queue.failing.iter().map(|failing| {
            json!({
                "controller": queue.controller,
                "object": failing.key.to_string(),
                "failures": failing.failures,
                "error": failing.error.as_deref(),
                "secondsAgo": seconds(failing.at, Instant::now()),
                "retries": !failing.gave_up,
            })
        })
    });
    let mappers = queues.iter().filter(|queue| which.names(&queue.controller)).filter_map(|queue| {
        let failure = queue.mapper_failure.as_ref()?;
        Some(json!({
            "controller": queue.controller,
            "mapper": failure.kind,
            "object": failure.key.to_string(),
            "error": &*failure.error,
            "secondsAgo": seconds(failure.at, Instant::now()),
        }))
    });
    Json(failing.chain(mappers).collect::<Vec<_>>()).into_response()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WantedEvents {
    kind: Option<String>,
    object: Option<String>,
    reason: Option<String>,
    limit: Option<usize>,
}

/// The newest events last, with how often each happened; also those that were over their object's limit.
async fn events(State(operator): State<Arc<Runtime>>, Query(wanted): Query<WantedEvents>) -> Response {
    let mut records = operator.recorder.events().query(&EventFilter::new());
    let is = |wanted: &Option<String>, value: &str| wanted.as_ref().is_none_or(|wanted| wanted == value);
    records.retain(|record| is(&wanted.kind, &record.kind) && is(&wanted.reason, &record.reason));
    records.retain(|record| is(&wanted.object, &record.object.to_string()));
    let skipped = records.len().saturating_sub(wanted.limit.unwrap_or(LIMIT));
    let records = records.iter().skip(skipped).map(|record| {
        json!({
            "apiVersion": record.api_version,
            "kind": record.kind,
            "object": record.object.to_string(),
            "type": record.severity.event_type(),
            "reason": record.reason,
            "note": record.note,
            "count": record.count,
            "first": record.first,
            "last": record.last,
        })
    });
    Json(records.collect::<Vec<_>>()).into_response()
}

async fn caches(State(operator): State<Arc<Runtime>>) -> Response {
    let caches = operator.cache.mirrors_in_order().into_iter().map(|mirror| {
        let watch = mirror.watch_state();
        json!({
            "apiVersion": watch.api_version,
            "kind": watch.kind,
            "selector": watch.selector,
            "namespaces": watch.namespaces,
            "metadata": watch.metadata,
            "objects": watch.objects,
            "bytes": watch.bytes,
            "installed": watch.installed,
            "listed": watch.synced,
            "lists": watch.lists,
            "watches": watch.watches,
            "failing": watch.failing_since.map(|since| seconds(since, Instant::now())),
            "error": watch.last_error.as_deref(),
        })
    });
    Json(caches.collect::<Vec<_>>()).into_response()
}

async fn log_level() -> Response {
    match log::level() {
        Some(level) => format!("{level}\n").into_response(),
        None => unset(),
    }
}

async fn set_log_level(level: String) -> Response {
    match log::set_level(level.trim()) {
        None => unset(),
        Some(Ok(())) => {
            tracing::info!(levels = level.trim(), "what is logged was changed");
            format!("{}\n", level.trim()).into_response()
        }
        Some(Err(reason)) => (StatusCode::BAD_REQUEST, format!("{reason}\n")).into_response(),
    }
}

/// The log is the program's, and this one did not set it up through the framework.
fn unset() -> Response {
    (StatusCode::NOT_IMPLEMENTED, "the log was not set up by `flyball::run`\n").into_response()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    controller: String,
    object: Option<String>,
    all: Option<String>,
}

async fn reconcile(State(operator): State<Arc<Runtime>>, Query(wanted): Query<Wanted>) -> Response {
    let refused = |text: String| (StatusCode::BAD_REQUEST, text).into_response();
    let key = match (&wanted.object, &wanted.all) {
        (Some(object), None) => Some(key(object)),
        (None, Some(all)) if matches!(all.as_str(), "" | "true") => None,
        _ => return refused("say either object=NAMESPACE/NAME or all\n".into()),
    };
    let controllers: Vec<_> = operator.handles().iter().map(|handle| handle.name.clone()).collect();
    if !controllers.contains(&wanted.controller) {
        return refused(format!(
            "there is no controller {:?}; there are {}\n",
            wanted.controller,
            controllers.join(", ")
        ));
    }
    match (operator.reconcile(&wanted.controller, key.as_ref(), "/debug/reconcile"), key) {
        (0, Some(key)) => (StatusCode::NOT_FOUND, format!("{key} is not cached\n")).into_response(),
        (objects, _) => (StatusCode::ACCEPTED, format!("{objects} to be reconciled\n")).into_response(),
    }
}

fn key(text: &str) -> Key {
    match text.split_once('/') {
        Some((namespace, name)) => Key::namespaced(namespace, name),
        None => Key::cluster(text),
    }
}

fn seconds(from: Instant, to: Instant) -> f64 {
    (to.saturating_duration_since(from).as_secs_f64() * 1_000.0).round() / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;
    use tower::ServiceExt;
    use tracing::Level;

    async fn ask(method: &str, body: &str) -> (u16, String) {
        let log = Router::new().route("/log", get(log_level).put(set_log_level));
        let request = http::Request::builder()
            .method(method)
            .uri("/log")
            .body(axum::body::Body::from(body.to_owned()));
        let response = log.oneshot(request.unwrap()).await.unwrap();
        let code = response.status().as_u16();
        let text = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (code, String::from_utf8(text.to_vec()).unwrap())
    }

    /// The only test of this process that sets up its log: there is one per process.
    #[tokio::test(start_paused = true)]
    async fn what_is_logged_can_be_changed_while_it_runs() {
        let (code, text) = ask("PUT", "debug").await;
        assert_eq!((code, &*text), (501, "the log was not set up by `flyball::run`\n"));
        let mut config = Config::default();
        config.logging.level = "error".into();
        assert!(log::start(&config, "logged").unwrap().is_none());
        let debugs = || tracing::enabled!(target: "flyball", Level::DEBUG);
        assert_eq!((ask("GET", "").await, debugs()), ((200, "error\n".into()), false));
        assert_eq!((ask("PUT", "error,flyball=debug\n").await.0, debugs()), (200, true));
        let (code, text) = ask("PUT", "a=b=c").await;
        assert_eq!(
            (code, text.starts_with("invalid level `a=b=c`: expected error, warn")),
            (400, true),
            "{text}"
        );
        assert_eq!(ask("PUT", "").await.0, 400);
        assert_eq!(
            (ask("GET", "").await.1.contains("flyball=debug"), debugs()),
            (true, true),
            "a mistake changes nothing"
        );
        assert_eq!((ask("PUT", "error").await, debugs()), ((200, "error\n".into()), false));
    }
}
