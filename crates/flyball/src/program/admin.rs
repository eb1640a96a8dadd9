//! What an operator answers over HTTP: probes, metrics, who leads, and what it is doing. Services first; sockets are in `serve`.

mod auth;
mod debug;
mod health;
mod serve;

pub use serve::Addresses;

pub(crate) use serve::Servers;

use crate::engine::runtime::Runtime;
use crate::metrics::Format;
use crate::program::config::Config;
use auth::Gate;
use axum::{
    Json, Router,
    extract::State,
    http::{HeaderMap, header},
    middleware,
    response::{IntoResponse, Response},
    routing::get,
};
use kube::Client;
use serde_json::json;
use std::sync::Arc;

/// Everything that an operator serves on its ports, as one service. `client` authorizes readers.
pub(crate) fn service(operator: &Arc<Runtime>, config: &Config, client: Client) -> Router {
    let gate = (!config.metrics.address.is_loopback()).then(|| Arc::new(Gate::new(client)));
    debug_routes(operator, config, gate).merge(probes(operator, config))
}

/// The probes, which need no authorization.
pub(crate) fn probes(operator: &Arc<Runtime>, config: &Config) -> Router {
    let mut router = Router::new();
    let (livez, readyz) = (&*config.health.liveness_path, &*config.health.readiness_path);
    for path in unique(["/livez", "/healthz", livez]) {
        router = router
            .route(path, get(health::live))
            .route(&format!("{}/{{check}}", path.trim_end_matches('/')), get(health::live_one));
    }
    for path in unique(["/readyz", readyz]) {
        router = router
            .route(path, get(health::ready))
            .route(&format!("{}/{{check}}", path.trim_end_matches('/')), get(health::ready_one));
    }
    router.with_state(operator.clone())
}

/// Metrics, the leader and `/debug`, for clients that `gate` authorizes.
pub(crate) fn debug_routes(operator: &Arc<Runtime>, config: &Config, gate: Option<Arc<Gate>>) -> Router {
    let router = Router::new()
        .route(&config.metrics.path, get(metrics))
        .route("/leader", get(leader))
        .route("/debug/", get(debug::index))
        .nest("/debug", debug::router())
        .with_state(operator.clone());
    match gate {
        Some(gate) => router.layer(middleware::from_fn_with_state(gate, auth::admit)),
        None => router,
    }
}

async fn metrics(State(operator): State<Arc<Runtime>>, headers: HeaderMap) -> Response {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    let format = Format::accepted(accept);
    ([(header::CONTENT_TYPE, format.content_type())], operator.metrics.text(format)).into_response()
}

async fn leader(State(operator): State<Arc<Runtime>>) -> Response {
    let elections = operator.elections.iter().map(|leadership| {
        json!({
            "lease": leadership.election(),
            "identity": leadership.identity(),
            "leads": leadership.is_leading(),
            "leader": leadership.leader(),
        })
    });
    Json(json!({ "operator": operator.name, "elections": elections.collect::<Vec<_>>() })).into_response()
}

fn unique<const N: usize>(paths: [&str; N]) -> Vec<&str> {
    let mut unique = Vec::with_capacity(N);
    for path in paths {
        if !unique.contains(&path) {
            unique.push(path);
        }
    }
    unique
}
