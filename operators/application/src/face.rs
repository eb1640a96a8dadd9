//! The HTTP face: Applications for whoever has curl and no kubectl. It keeps nothing; the API server answers.

mod refusal;
mod watch;
mod write;

use crate::api::Application;
use axum::{
    Json, Router,
    extract::{Path, State},
    routing::get,
};
use kube::{
    Api, Client, CustomResourceExt, Resource,
    api::{ApiResource, DynamicObject, ListParams},
};
use refusal::Refusal;
use serde_json::{Value, json};
use std::net::SocketAddr;
use tokio::net::TcpListener;

const COLLECTION: &str = "/apis/cloudnative.elide.dev/v1/namespaces/{namespace}/applications";
const OBJECT: &str = "/apis/cloudnative.elide.dev/v1/namespaces/{namespace}/applications/{name}";

/// The routes, answered through the given client.
pub fn router(client: Client) -> Router {
    Router::new()
        .route("/", get(about))
        .route("/healthz", get(healthz))
        .route("/crd", get(async || Json(Application::crd())))
        .route("/events", get(events))
        .route("/watch", get(watch::watch))
        .route("/apis/cloudnative.elide.dev/v1/applications", get(list_all))
        .route(COLLECTION, get(list).post(write::create))
        .route(OBJECT, get(read).put(write::replace).delete(write::delete))
        .fallback(async || Refusal::not_found("this path leads nowhere; GET / lists those that do"))
        .method_not_allowed_fallback(async || Refusal::method_not_allowed())
        .with_state(client)
}

/// Serves the routes on `HOST` and `PORT` until it is dropped.
pub async fn run(client: Client) -> flyball::Result<()> {
    axum::serve(listen().await?, router(client)).await?;
    Ok(())
}

/// Takes `HOST` and `PORT`, or says who to ask: a program checks this before it promises anything.
pub async fn listen() -> flyball::Result<TcpListener> {
    let address = address()?;
    let taken = |error| flyball::Error::permanent(format!("listen on {address}: {error}; set PORT to a free one"));
    TcpListener::bind(address).await.map_err(taken)
}

/// `HOST` and `PORT` of the environment, else loopback and 3000: the face asks nobody who they are.
pub fn address() -> flyball::Result<SocketAddr> {
    let variable = |name: &str, default: &str| std::env::var(name).unwrap_or_else(|_| default.into());
    let text = format!("{}:{}", variable("HOST", "127.0.0.1"), variable("PORT", "3000"));
    text.parse().map_err(|_| {
        flyball::Error::permanent(format!("`{text}` is no address: set HOST to an IP address and PORT to 0–65535"))
    })
}

/// Applications of one namespace, or of all, as the API server has them: nothing is lost in a round trip.
fn applications(client: Client, namespace: Option<&str>) -> Api<DynamicObject> {
    let resource = ApiResource::erase::<Application>(&());
    match namespace {
        Some(namespace) => Api::namespaced_with(client, namespace, &resource),
        None => Api::all_with(client, &resource),
    }
}

async fn about() -> Json<Value> {
    Json(json!({
        "name": "application",
        "version": env!("CARGO_PKG_VERSION"),
        "kind": Application::kind(&()),
        "apiVersion": Application::api_version(&()),
        "endpoints": [
            "GET /", "GET /healthz", "GET /crd", "GET /events", "GET /watch",
            "GET /apis/cloudnative.elide.dev/v1/applications",
            format!("GET {COLLECTION}"), format!("POST {COLLECTION}"),
            format!("GET {OBJECT}"), format!("PUT {OBJECT}"), format!("DELETE {OBJECT}"),
        ],
    }))
}

async fn healthz(State(client): State<Client>) -> Result<Json<Value>, Refusal> {
    client.apiserver_version().await?;
    Ok(Json(json!({ "status": "healthy" })))
}

async fn events(State(client): State<Client>) -> Result<Json<Value>, Refusal> {
    let events: Api<k8s_openapi::api::core::v1::Event> = Api::all(client);
    let ours = ListParams::default().fields("involvedObject.kind=Application");
    Ok(Json(json!({ "events": events.list(&ours).await?.items })))
}

async fn list_all(State(client): State<Client>) -> Result<Json<Value>, Refusal> {
    answer_list(applications(client, None)).await
}

async fn list(State(client): State<Client>, Path(namespace): Path<String>) -> Result<Json<Value>, Refusal> {
    answer_list(applications(client, Some(&namespace))).await
}

async fn answer_list(api: Api<DynamicObject>) -> Result<Json<Value>, Refusal> {
    Ok(Json(json!(api.list(&ListParams::default()).await?)))
}

async fn read(
    State(client): State<Client>,
    Path((namespace, name)): Path<(String, String)>,
) -> Result<Json<DynamicObject>, Refusal> {
    Ok(Json(applications(client, Some(&namespace)).get(&name).await?))
}
