//! The HTTP face, asked as the seed's curl commands ask it.

use application::{face::router, operator};
use axum::{Router, body::Body, http::Request};
use flyball_test::Cluster;
use futures::StreamExt;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;

const APPLICATIONS: &str = "/apis/cloudnative.elide.dev/v1/namespaces/default/applications";

async fn ask(face: &Router, method: &str, path: &str, body: Value) -> (u16, Value) {
    let body = if body.is_null() {
        Body::empty()
    } else {
        Body::from(body.to_string())
    };
    send(face, Request::builder().method(method).uri(path).body(body).expect("a request")).await
}

async fn send(face: &Router, request: Request<Body>) -> (u16, Value) {
    let response = face.clone().oneshot(request).await.expect("an answer");
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.expect("a body").to_bytes();
    (code, serde_json::from_slice(&bytes).expect("JSON"))
}

fn my_app(replicas: i32) -> Value {
    json!({
        "apiVersion": "cloudnative.elide.dev/v1",
        "kind": "Application",
        "metadata": { "name": "my-app" },
        "spec": { "replicas": replicas, "image": "nginx:latest", "strategy": "RollingUpdate" },
    })
}

#[tokio::test(start_paused = true)]
async fn an_application_is_created_read_listed_replaced_and_deleted() {
    let cluster = Cluster::with(operator()).await;
    let face = router(cluster.client());

    let (code, created) = ask(&face, "POST", APPLICATIONS, my_app(3)).await;
    assert_eq!((code, &created["metadata"]["generation"]), (201, &json!(1)));
    let path = format!("{APPLICATIONS}/my-app");
    let (code, read) = ask(&face, "GET", &path, Value::Null).await;
    assert_eq!((code, &read["spec"]["replicas"]), (200, &json!(3)));
    let (code, list) = ask(&face, "GET", APPLICATIONS, Value::Null).await;
    assert_eq!((code, list["items"].as_array().unwrap().len()), (200, 1));

    let (code, replaced) = ask(&face, "PUT", &path, my_app(5)).await;
    assert_eq!((code, &replaced["spec"]["replicas"]), (200, &json!(5)));

    let (code, _) = ask(&face, "DELETE", &path, Value::Null).await;
    assert_eq!(code, 200);
    let (code, gone) = ask(&face, "GET", &path, Value::Null).await;
    assert_eq!((code, &gone["reason"]), (404, &json!("NotFound")));
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_is_not_there_yet_is_made() {
    let cluster = Cluster::with(operator()).await;
    let face = router(cluster.client());
    let path = "/apis/cloudnative.elide.dev/v1/namespaces/test/applications";
    let (code, created) = ask(&face, "POST", path, my_app(1)).await;
    assert_eq!((code, &created["metadata"]["namespace"]), (201, &json!("test")));
}

#[tokio::test(start_paused = true)]
async fn a_stale_version_is_a_conflict() {
    let cluster = Cluster::with(operator()).await;
    let face = router(cluster.client());
    let (_, created) = ask(&face, "POST", APPLICATIONS, my_app(1)).await;
    let path = format!("{APPLICATIONS}/my-app");
    ask(&face, "PUT", &path, my_app(2)).await;
    let mut stale = my_app(3);
    stale["metadata"]["resourceVersion"] = created["metadata"]["resourceVersion"].clone();
    let (code, refusal) = ask(&face, "PUT", &path, stale).await;
    assert_eq!((code, &refusal["reason"]), (409, &json!("Conflict")));
}

#[tokio::test(start_paused = true)]
async fn bad_input_is_refused_with_the_servers_own_words() {
    let cluster = Cluster::with(operator()).await;
    let face = router(cluster.client());
    let (code, refusal) = ask(&face, "POST", APPLICATIONS, my_app(101)).await;
    assert_eq!(code, 422);
    assert!(refusal["message"].as_str().unwrap().contains("less than or equal to 100"), "{refusal}");

    let request = Request::post(APPLICATIONS).body(Body::from("not JSON")).unwrap();
    let (code, refusal) = send(&face, request).await;
    assert_eq!((code, &refusal["reason"]), (400, &json!("BadRequest")));
    let (code, _) = ask(&face, "GET", "/nowhere", Value::Null).await;
    assert_eq!(code, 404);
    let (code, _) = ask(&face, "PATCH", APPLICATIONS, Value::Null).await;
    assert_eq!(code, 405);
}

#[tokio::test(start_paused = true)]
async fn changes_arrive_as_server_sent_events() {
    let cluster = Cluster::with(operator()).await;
    let face = router(cluster.client());
    let response = face.clone().oneshot(Request::get("/watch").body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut frames = response.into_body().into_data_stream();

    ask(&face, "POST", APPLICATIONS, my_app(1)).await;
    let event = loop {
        let frame = String::from_utf8(frames.next().await.unwrap().unwrap().to_vec()).unwrap();
        if let Some(data) = frame.strip_prefix("data: ") {
            break serde_json::from_str::<Value>(data.trim()).unwrap();
        }
    };
    assert_eq!(event["type"], "ADDED");
    assert_eq!(event["object"]["metadata"]["name"], "my-app");
}

#[tokio::test(start_paused = true)]
async fn the_face_says_what_it_is_and_how_it_is() {
    let cluster = Cluster::with(operator()).await;
    let face = router(cluster.client());
    let (code, about) = ask(&face, "GET", "/", Value::Null).await;
    assert_eq!((code, &about["kind"]), (200, &json!("Application")));
    let (code, health) = ask(&face, "GET", "/healthz", Value::Null).await;
    assert_eq!((code, &health["status"]), (200, &json!("healthy")));
    let (code, crd) = ask(&face, "GET", "/crd", Value::Null).await;
    assert_eq!((code, &crd["spec"]["names"]["kind"]), (200, &json!("Application")));
    let (code, events) = ask(&face, "GET", "/events", Value::Null).await;
    assert_eq!(code, 200);
    assert!(events["events"].is_array());
}
