//! The HTTP API, used as with curl.

use application::{api::Application, http_api, operator, operator_with_http_api};
use axum::{
    Router,
    body::Body,
    http::{HeaderValue, Request, Response, StatusCode},
};
use flyball::Manifests;
use flyball_test::{Answer, Cluster};
use futures::StreamExt;
use http_body_util::BodyExt;
use kube::{
    Client,
    core::{ApiResource, GroupVersionKind},
};
use serde_json::{Value, json};
use tower::ServiceExt;

const APPLICATIONS: &str = "/apis/cloudnative.elide.dev/v1/namespaces/default/applications";

/// A client with the rights that the operator's manifests grant, and no others.
async fn with_printed_rights(cluster: &Cluster) -> Client {
    let operator = operator_with_http_api();
    for mut object in Manifests::of(&operator).rbac() {
        // Beside those of the operator that runs in the cluster.
        object.metadata.name = object.metadata.name.map(|name| format!("{name}-printed"));
        if let Some(role) = object.data.get_mut("roleRef") {
            role["name"] = format!("{}-printed", role["name"].as_str().unwrap_or_default()).into();
        }
        let types = object.types.clone().expect("a manifest has a kind");
        let (group, version) = types.api_version.split_once('/').unwrap_or(("", &types.api_version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &types.kind));
        match object.metadata.namespace {
            // Its namespace is not created here; the rights of its own namespace are for elections.
            Some(_) => {}
            None => drop(cluster.dynamic(&resource).cluster_wide().create(object).await),
        }
    }
    let admin = cluster.client();
    let service = tower::service_fn(move |mut request: Request<kube::client::Body>| {
        let account = HeaderValue::from_static("system:serviceaccount:application-system:application");
        request.headers_mut().insert("Impersonate-User", account);
        let admin = admin.clone();
        async move { admin.send(request).await }
    });
    Client::new(service, "default")
}

/// A create that asked for the namespace first was forbidden everywhere.
#[tokio::test(start_paused = true)]
async fn the_api_needs_no_more_than_the_printed_rights() {
    let cluster = Cluster::with(operator()).await;
    let api = http_api::router(with_printed_rights(&cluster).await, &[]);
    assert_eq!(ask(&api, "POST", APPLICATIONS, my_app(1)).await.0, 201);
    let object = format!("{APPLICATIONS}/my-app");
    assert_eq!(ask(&api, "GET", &object, Value::Null).await.0, 200);
    assert_eq!(ask(&api, "PUT", &object, my_app(2)).await.0, 200);
    assert_eq!(ask(&api, "GET", "/events", Value::Null).await.0, 200);
    assert_eq!(ask(&api, "DELETE", &object, Value::Null).await.0, 200);
    let elsewhere = APPLICATIONS.replace("/default/", "/new/");
    assert_eq!(ask(&api, "POST", &elsewhere, my_app(1)).await.0, 201, "the namespace is created");
}

fn router(cluster: &Cluster) -> Router {
    http_api::router(cluster.client(), &[])
}

async fn ask(api: &Router, method: &str, path: &str, body: Value) -> (u16, Value) {
    let body = if body.is_null() {
        Body::empty()
    } else {
        Body::from(body.to_string())
    };
    let request = Request::builder().method(method).uri(path).header("host", "127.0.0.1:3000");
    send(api, request.header("content-type", "application/json").body(body).expect("a request")).await
}

async fn send(api: &Router, request: Request<Body>) -> (u16, Value) {
    let response = api.clone().oneshot(request).await.expect("an answer");
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
    let api = router(&cluster);

    let (code, created) = ask(&api, "POST", APPLICATIONS, my_app(3)).await;
    assert_eq!((code, &created["metadata"]["generation"]), (201, &json!(1)));
    let path = format!("{APPLICATIONS}/my-app");
    let (code, read) = ask(&api, "GET", &path, Value::Null).await;
    assert_eq!((code, &read["spec"]["replicas"]), (200, &json!(3)));
    let (code, list) = ask(&api, "GET", APPLICATIONS, Value::Null).await;
    assert_eq!((code, list["items"].as_array().unwrap().len()), (200, 1));

    let (code, replaced) = ask(&api, "PUT", &path, my_app(5)).await;
    assert_eq!((code, &replaced["spec"]["replicas"]), (200, &json!(5)));

    let (code, _) = ask(&api, "DELETE", &path, Value::Null).await;
    assert_eq!(code, 200);
    let (code, gone) = ask(&api, "GET", &path, Value::Null).await;
    assert_eq!((code, &gone["reason"]), (404, &json!("NotFound")));
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_is_not_there_yet_is_made() {
    let cluster = Cluster::with(operator()).await;
    let api = router(&cluster);
    let path = "/apis/cloudnative.elide.dev/v1/namespaces/test/applications";
    let (code, created) = ask(&api, "POST", path, my_app(1)).await;
    assert_eq!((code, &created["metadata"]["namespace"]), (201, &json!("test")));
}

#[tokio::test(start_paused = true)]
async fn a_stale_version_is_a_conflict() {
    let cluster = Cluster::with(operator()).await;
    let api = router(&cluster);
    let (_, created) = ask(&api, "POST", APPLICATIONS, my_app(1)).await;
    let path = format!("{APPLICATIONS}/my-app");
    ask(&api, "PUT", &path, my_app(2)).await;
    let mut stale = my_app(3);
    stale["metadata"]["resourceVersion"] = created["metadata"]["resourceVersion"].clone();
    let (code, refusal) = ask(&api, "PUT", &path, stale).await;
    assert_eq!((code, &refusal["reason"]), (409, &json!("Conflict")));
}

#[tokio::test(start_paused = true)]
async fn bad_input_is_refused_with_the_message_of_the_api_server() {
    let cluster = Cluster::with(operator()).await;
    let api = router(&cluster);
    let (code, refusal) = ask(&api, "POST", APPLICATIONS, my_app(101)).await;
    assert_eq!(code, 422);
    assert!(refusal["message"].as_str().unwrap().contains("less than or equal to 100"), "{refusal}");

    let (code, refusal) = send(&api, post("not JSON")).await;
    assert_eq!((code, &refusal["reason"]), (400, &json!("BadRequest")));
}

fn post(body: impl Into<Body>) -> Request<Body> {
    let request = Request::post(APPLICATIONS).header("host", "localhost");
    request.header("content-type", "application/json").body(body.into()).expect("a request")
}

#[tokio::test(start_paused = true)]
async fn every_refusal_is_a_status() {
    let cluster = Cluster::with(operator()).await;
    let api = router(&cluster);
    for (method, path, expected) in [
        ("GET", "/nowhere", 404),
        ("GET", "/apis/cloudnative.elide.dev/v1/namespaces//applications", 400),
        ("PATCH", APPLICATIONS, 405),
        ("GET", "/apis/cloudnative.elide.dev/v1/namespaces/%FF/applications", 400),
    ] {
        let (code, status) = ask(&api, method, path, Value::Null).await;
        assert_eq!(
            (code, &status["kind"], &status["code"]),
            (expected, &json!("Status"), &json!(expected)),
            "{path}"
        );
    }
    let (code, status) = send(&api, post("x".repeat(3 << 20))).await;
    assert_eq!((code, &status["reason"]), (413, &json!("RequestEntityTooLarge")));
    let silent = futures::stream::pending::<Result<Vec<u8>, std::io::Error>>();
    let (code, status) = send(&api, post(Body::from_stream(silent))).await;
    assert_eq!((code, &status["reason"]), (408, &json!("Timeout")));
}

#[tokio::test(start_paused = true)]
async fn path_parameters_cannot_change_the_request_to_the_api_server() {
    let cluster = Cluster::with(operator()).await;
    let api = router(&cluster);
    ask(&api, "POST", APPLICATIONS, my_app(1)).await;
    let namespaces = "/apis/cloudnative.elide.dev/v1/namespaces";
    let long = "a".repeat(64);
    for (method, path, parameter) in [
        ("DELETE", format!("{APPLICATIONS}/%3Fx"), "name"),
        ("PUT", format!("{APPLICATIONS}/my-app%2fstatus"), "name"),
        ("GET", format!("{APPLICATIONS}/my-app%23frag"), "name"),
        ("GET", format!("{APPLICATIONS}/my-app%2fstatus"), "name"),
        ("GET", format!("{APPLICATIONS}/My-App"), "name"),
        ("GET", format!("{APPLICATIONS}/a..b"), "name"),
        ("GET", format!("{APPLICATIONS}/a%0Ab"), "name"),
        (
            "GET",
            format!("{namespaces}/default%2fapplications%3Fwatch=true%26x=/applications"),
            "namespace",
        ),
        ("POST", format!("{namespaces}/default%2fsecrets%3Fwatch=true/applications"), "namespace"),
        (
            "POST",
            format!("{namespaces}/kube-system%2fserviceaccounts%2fdefault/applications"),
            "namespace",
        ),
        ("GET", format!("{namespaces}/..%2f..%2fapi/applications"), "namespace"),
        ("GET", format!("{namespaces}/{long}/applications"), "namespace"),
        ("DELETE", format!("{namespaces}/-a/applications/my-app"), "namespace"),
    ] {
        let (code, status) = ask(&api, method, &path, my_app(1)).await;
        assert_eq!((code, &status["reason"]), (400, &json!("BadRequest")), "{path}: {status}");
        assert_eq!(status["details"]["causes"][0]["field"], parameter, "{path}");
        assert!(
            status["message"].as_str().unwrap().starts_with(&format!("invalid {parameter} \"")),
            "{status}"
        );
    }
    let (_, list) = ask(&api, "GET", APPLICATIONS, Value::Null).await;
    assert_eq!(list["items"].as_array().unwrap().len(), 1, "nothing was deleted");
}

#[tokio::test(start_paused = true)]
async fn web_pages_of_other_sites_are_refused() {
    let cluster = Cluster::with(operator()).await;
    let api = router(&cluster);
    let json = ("content-type", "application/json");
    for (headers, expected) in [
        (vec![("host", "evil.example"), json], 403),
        (vec![("host", "localhost"), ("origin", "http://evil.example"), json], 403),
        (vec![("host", "localhost"), ("origin", "null"), json], 403),
        (vec![("host", "localhost"), ("host", "localhost"), json], 400),
        (vec![json], 400),
        (vec![("host", "localhost"), ("content-type", "text/plain")], 415),
        (
            vec![
                ("host", "localhost"),
                ("content-type", "application/x-www-form-urlencoded"),
            ],
            415,
        ),
        (vec![("host", "localhost")], 415),
        (vec![("host", "localhost:3000"), ("origin", "http://localhost:3000"), json], 201),
    ] {
        let mut request = Request::post(APPLICATIONS);
        for (name, value) in &headers {
            request = request.header(*name, *value);
        }
        let (code, answer) = send(&api, request.body(Body::from(my_app(1).to_string())).unwrap()).await;
        assert_eq!(code, expected, "{headers:?}: {answer}");
        assert!(code == 201 || answer["kind"] == "Status", "{answer}");
    }
    let request = Request::get("/").header("host", "evil.example").body(Body::empty()).unwrap();
    assert_eq!(send(&api, request).await.0, 403);
}

#[tokio::test(start_paused = true)]
async fn health_is_that_of_the_api_server() {
    let cluster = Cluster::with(operator()).await;
    for answer in [Some(StatusCode::OK), Some(StatusCode::INTERNAL_SERVER_ERROR), None] {
        let server = tower::service_fn(move |request: Request<kube::client::Body>| async move {
            assert_eq!(request.uri().path(), "/readyz");
            match answer {
                Some(code) => {
                    let body = kube::client::Body::from(b"[-]store failed".to_vec());
                    Ok::<_, kube::Error>(Response::builder().status(code).body(body).unwrap())
                }
                None => futures::future::pending().await,
            }
        });
        let api = http_api::router(kube::Client::new(server, "default"), &[]);
        let (code, health) = ask(&api, "GET", "/healthz", Value::Null).await;
        match answer {
            Some(StatusCode::OK) => assert_eq!((code, &health["status"]), (200, &json!("healthy"))),
            _ => assert_eq!((code, &health["reason"]), (503, &json!("ServiceUnavailable"))),
        }
    }
    assert_eq!(ask(&router(&cluster), "GET", "/healthz", Value::Null).await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn changes_arrive_as_server_sent_events() {
    let cluster = Cluster::with(operator()).await;
    let api = router(&cluster);
    let response = api
        .clone()
        .oneshot(Request::get("/watch").header("host", "localhost").body(Body::empty()).unwrap())
        .await
        .unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut frames = response.into_body().into_data_stream();

    ask(&api, "POST", APPLICATIONS, my_app(1)).await;
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
async fn the_api_reports_what_it_is_and_its_health() {
    let cluster = Cluster::with(operator()).await;
    let api = router(&cluster);
    let (code, about) = ask(&api, "GET", "/", Value::Null).await;
    assert_eq!((code, &about["kind"]), (200, &json!("Application")));
    let (code, health) = ask(&api, "GET", "/healthz", Value::Null).await;
    assert_eq!((code, &health["status"]), (200, &json!("healthy")));
    let (code, crd) = ask(&api, "GET", "/crd", Value::Null).await;
    assert_eq!((code, &crd["spec"]["names"]["kind"]), (200, &json!("Application")));
}

#[tokio::test(start_paused = true)]
async fn the_api_lists_the_events_of_applications() {
    let cluster = Cluster::with(operator()).await;
    let api = router(&cluster);
    assert_eq!(ask(&api, "GET", "/events", Value::Null).await, (200, json!({ "events": [] })));
    cluster.break_with(|request| {
        let writes = request.method() == "PATCH" && request.uri().path().ends_with("/services/my-app");
        writes.then(|| Answer::refusal(403, "services are forbidden"))
    });
    assert_eq!(ask(&api, "POST", APPLICATIONS, my_app(1)).await.0, 201);
    cluster.until_event::<Application>("my-app", "ReconcileFailed").await;
    let (code, answer) = ask(&api, "GET", "/events", Value::Null).await;
    let events = answer["events"].as_array().expect("a list");
    let about = |event: &&Value| event["involvedObject"]["name"] == "my-app" && event["reason"] == "ReconcileFailed";
    let failed = events.iter().find(about).unwrap_or_else(|| panic!("{answer}"));
    assert_eq!((code, &failed["type"]), (200, &json!("Warning")));
    assert!(
        failed["message"].as_str().is_some_and(|text| text.ends_with("services are forbidden")),
        "{failed}"
    );
}
