//! The HTTP API: Applications for clients without kubectl. It stores nothing; the API server answers every request.

mod address;
mod guard;
mod input;
mod refusal;
mod watch;
mod write;

use crate::api::Application;
use axum::{Json, Router, extract::State, http::Request, middleware, routing::get};
use flyball::Error;
use flyball_host::{Connections, http1, limits};
use guard::AllowedHosts;
use input::{NamespacePath, ObjectPath};
use kube::{
    Api, Client, CustomResourceExt, Resource,
    api::{ApiResource, DynamicObject, ListParams},
};
use refusal::Refusal;
use serde_json::{Value, json};
use std::{net::SocketAddr, sync::Arc, time::Duration};
use tokio::{net::TcpListener, time::timeout};

const COLLECTION: &str = "/apis/cloudnative.elide.dev/v1/namespaces/{namespace}/applications";
const OBJECT: &str = "/apis/cloudnative.elide.dev/v1/namespaces/{namespace}/applications/{name}";

/// The HTTP API takes at most one in so many of the open files for its connections.
const OPEN_FILES_PARTS: u64 = 8;

/// How long the API server may take to report its readiness.
const MAX_READINESS_WAIT: Duration = Duration::from_secs(5);

/// The routes, answered through the given client, for requests to a loopback address, `localhost` or one of `hosts`.
pub fn router(client: Client, hosts: &[String]) -> Router {
    let guard = middleware::from_fn_with_state(Arc::new(AllowedHosts::new(hosts)), guard::check);
    Router::new()
        .route("/", get(about))
        .route("/healthz", get(healthz))
        .route("/crd", get(async || Json(Application::crd())))
        .route("/events", get(events))
        .route("/watch", get(watch::watch))
        .route("/apis/cloudnative.elide.dev/v1/applications", get(list_all))
        .route(COLLECTION, get(list).post(write::create))
        .route(OBJECT, get(read).put(write::replace).delete(write::delete))
        .fallback(async || Refusal::not_found("no such endpoint: GET / lists the endpoints"))
        .method_not_allowed_fallback(async || Refusal::method_not_allowed())
        .layer(guard)
        .with_state(client)
}

/// The listening socket of the HTTP API, bound before anything is served.
#[derive(Clone)]
pub struct HttpApi {
    listener: Arc<TcpListener>,
    address: SocketAddr,
    hosts: Vec<String>,
}

impl HttpApi {
    /// Binds `HOST` and `PORT` of the environment, by default loopback and 3000: the API has no authentication.
    /// `ALLOWED_HOSTS` names the hosts, comma-separated, that clients may use beside loopback and `HOST`.
    pub async fn listen() -> flyball::Result<HttpApi> {
        let address = address::from_environment()?;
        let failed = |error| Error::permanent(format!("listen on {address}: {error}; set PORT to a free port"));
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let mut hosts = address::allowed_hosts();
        hosts.push(address.ip().to_string());
        Ok(HttpApi {
            address: listener.local_addr()?,
            listener: Arc::new(listener),
            hosts,
        })
    }

    /// The address that clients connect to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves the routes until the future is dropped.
    pub async fn serve(self, client: Client) -> flyball::Result<()> {
        let connections = Connections::new(limits::connections(OPEN_FILES_PARTS));
        http1::serve(&self.listener, router(client, &self.hosts), connections).await;
        Ok(())
    }
}

/// Binds the address of the environment and serves the routes until the future is dropped.
pub async fn run(client: Client) -> flyball::Result<()> {
    HttpApi::listen().await?.serve(client).await
}

/// Applications of one namespace, or of all, as untyped objects, so that a round trip keeps unknown fields.
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

/// Healthy while the API server is ready: without it no other endpoint works.
async fn healthz(State(client): State<Client>) -> Result<Json<Value>, Refusal> {
    let request = Request::get("/readyz").body(Vec::new()).expect("a constant request is valid");
    match timeout(MAX_READINESS_WAIT, client.request_text(request)).await {
        Ok(Ok(_)) => Ok(Json(json!({ "status": "healthy" }))),
        Ok(Err(error)) => Err(Refusal::unavailable(&format!("the API server is not ready: {error}"))),
        Err(_) => Err(Refusal::unavailable("the API server is not ready: /readyz timed out")),
    }
}

async fn events(State(client): State<Client>) -> Result<Json<Value>, Refusal> {
    let events: Api<k8s_openapi::api::core::v1::Event> = Api::all(client);
    let ours = ListParams::default().fields("involvedObject.kind=Application");
    Ok(Json(json!({ "events": events.list(&ours).await?.items })))
}

async fn list_all(State(client): State<Client>) -> Result<Json<Value>, Refusal> {
    answer_list(applications(client, None)).await
}

async fn list(State(client): State<Client>, path: NamespacePath) -> Result<Json<Value>, Refusal> {
    answer_list(applications(client, Some(&path.namespace))).await
}

async fn answer_list(api: Api<DynamicObject>) -> Result<Json<Value>, Refusal> {
    Ok(Json(json!(api.list(&ListParams::default()).await?)))
}

async fn read(State(client): State<Client>, path: ObjectPath) -> Result<Json<DynamicObject>, Refusal> {
    Ok(Json(applications(client, Some(&path.namespace)).get(&path.name).await?))
}
