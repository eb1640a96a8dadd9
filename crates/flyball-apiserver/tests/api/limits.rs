//! What the server does not take, and says so.

use crate::ask::Server;
use http::Method;
use serde_json::{Value, json};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test(start_paused = true)]
async fn bodies_have_a_limit() {
    let server = Server::start().await;
    let body = format!("{{\"data\": {{\"a\": \"{}\"}}}}", "x".repeat(3 * 1024 * 1024));

    let refused = server.ask(Method::POST, MAPS, &body).await;

    assert_eq!((refused.code, refused.body["reason"].as_str()), (413, Some("RequestEntityTooLarge")));
}

#[tokio::test(start_paused = true)]
async fn a_json_patch_has_a_limit() {
    let server = Server::start().await;
    server.post(MAPS, json!({"metadata": {"name": "a"}})).await;
    let patch: Vec<Value> = (0..10_001)
        .map(|_| json!({"op": "test", "path": "/kind", "value": "ConfigMap"}))
        .collect();

    let refused = server.patch("json-patch+json", &format!("{MAPS}/a"), Value::from(patch)).await;

    assert_eq!(refused.code, 413);
    assert_eq!(
        refused.body["message"],
        "The allowed maximum operations in a JSON patch is 10000, got 10001"
    );
}

#[tokio::test(start_paused = true)]
async fn encodings_that_are_not_supported_are_refused_by_name() {
    let server = Server::start().await;
    server.post(MAPS, json!({"metadata": {"name": "a"}})).await;

    let posted = server.send(Method::POST, MAPS, "application/cbor", "k8s").await;
    let patched = server.patch("apply-patch+cbor", &format!("{MAPS}/a"), json!({})).await;

    assert_eq!((posted.code, patched.code), (415, 415));
    let message = posted.body["message"].as_str().unwrap();
    assert!(message.contains("accepted media types include: application/json"), "{message}");
    assert_eq!(patched.body["message"], "415: Unsupported Media Type");
}

#[tokio::test(start_paused = true)]
async fn what_is_not_there_is_told_apart_from_what_cannot_be_done() {
    let server = Server::start().await;
    server
        .post(
            "/api/v1/namespaces/default/pods",
            json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "a:1"}]}}),
        )
        .await;
    for (method, path, code) in [
        (Method::GET, "/api/v1/foos", 404),
        (Method::GET, "/apis/foo.bar/v1/foos", 404),
        (Method::GET, "/api/v1/namespaces/default/nodes", 404),
        (Method::POST, "/api/v1/pods", 405),
        (Method::DELETE, "/api/v1/pods", 405),
        (Method::PUT, "/api/v1/namespaces/default/pods", 405),
        (Method::HEAD, "/api/v1/namespaces/default", 405),
        (Method::GET, "/api/v1/namespaces/default/bindings", 405),
        (Method::GET, "/api/v1/namespaces/default/pods/a/foo", 404),
        (Method::GET, "/api/v1/namespaces/default/pods/none/log", 404),
        (Method::GET, "/api/v1/namespaces/default/pods/a/log", 405),
        (Method::GET, "/api/v1/namespaces/default/configmaps/a%25b", 400),
        (Method::GET, "/api/v1/namespaces/default/configmaps?timeout=soon", 400),
    ] {
        let answer = server.ask(method.clone(), path, "").await;
        assert_eq!(answer.code, code, "{method} {path}: {}", answer.body);
    }
}

#[tokio::test(start_paused = true)]
async fn many_owner_references_take_time_in_proportion() {
    let server = Server::start().await;
    let object = |count: usize| {
        let owner = |n: usize| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": format!("u{n}")});
        let owners: Vec<Value> = (0..count).map(owner).collect();
        json!({"metadata": {"name": "a", "ownerReferences": owners}})
    };
    let path = format!("{MAPS}?dryRun=All");
    let measure = async |count: usize| {
        let started = std::time::Instant::now();
        assert_eq!(server.post(&path, object(count)).await.code, 201);
        started.elapsed()
    };
    // Eight times as many take eight times as long, give or take; in quadratic time it is sixty-four. Of several
    // measurements the shortest counts, so that a busy machine does not decide.
    let mut took = [std::time::Duration::MAX; 2];
    for _ in 0..5 {
        took = [took[0].min(measure(2_000).await), took[1].min(measure(16_000).await)];
        if took[1] < took[0] * 30 {
            return;
        }
    }
    panic!("{took:?}");
}

#[tokio::test(start_paused = true)]
async fn many_controllers_are_refused_in_a_short_message() {
    let server = Server::start().await;
    let owner =
        |n: usize| json!({"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": format!("u{n}"), "controller": true});
    let owners: Vec<Value> = (0..5_000).map(owner).collect();

    let refused = server.post(MAPS, json!({"metadata": {"name": "a", "ownerReferences": owners}})).await;

    assert_eq!(refused.code, 422);
    assert!(refused.body["details"]["causes"].as_array().unwrap().len() <= 16);
}
