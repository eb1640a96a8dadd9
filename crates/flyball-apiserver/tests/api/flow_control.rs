//! Priority and fairness: which level handles a request, how many at a time, and what happens to the others.

use crate::ask::{Answer, Server};
use flyball_apiserver::{ServerOptions, User};
use flyball_store::Store;
use http::{Method, Request};
use http_body_util::StreamBody;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::Instant;

const SCHEMAS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";
const LEVELS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn schema(name: &str, user: &str, level: &str) -> Value {
    let everything =
        json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": true, "namespaces": ["*"]});
    json!({"metadata": {"name": name}, "spec": {
        "priorityLevelConfiguration": {"name": level}, "matchingPrecedence": 50, "distinguisherMethod": {"type": "ByUser"},
        "rules": [{"subjects": [{"kind": "User", "user": {"name": user}}], "resourceRules": [everything]}]}})
}

fn level(name: &str, response: Value) -> Value {
    json!({"metadata": {"name": name}, "spec": {"type": "Limited", "limited": {
        "nominalConcurrencyShares": 1, "borrowingLimitPercent": 0, "limitResponse": response}}})
}

/// A server with one seat for ada's requests, who may do everything; the seat's level responds to further requests as said.
async fn server(response: Value) -> Server {
    let options = ServerOptions { max_requests_in_flight: 10, ..ServerOptions::default() };
    let server = Server::with(Store::memory(), options).await;
    let binding = json!({"metadata": {"name": "ada"}, "subjects": [{"kind": "User", "name": "ada"}, {"kind": "User", "name": "eve"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}});
    created(server.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding).await);
    created(server.post(LEVELS, level("narrow", response)).await);
    created(server.post(SCHEMAS, schema("ada", "ada", "narrow")).await);
    server
}

#[track_caller]
fn created(answer: Answer) -> Answer {
    assert_eq!(answer.code, 201, "{}", answer.body);
    assert_eq!(answer.headers.get("warning"), None);
    answer
}

fn ada() -> User {
    User::new("ada", ["staff"])
}

/// Takes ada's seat with a POST whose body never comes.
async fn occupy(server: &Server) -> JoinHandle<()> {
    let never = futures::stream::pending::<Result<http_body::Frame<bytes::Bytes>, Infallible>>();
    let request = Request::post(MAPS).body(StreamBody::new(never)).unwrap();
    let client = server.0.as_user(ada());
    let task = tokio::spawn(async move { drop(client.respond(request).await) });
    tokio::task::yield_now().await;
    task
}

#[tokio::test(start_paused = true)]
async fn a_level_that_rejects_answers_429_while_its_seats_are_taken() {
    let server = server(json!({"type": "Reject"})).await;
    let occupying = occupy(&server).await;

    let refused = server.by(ada()).get(MAPS).await;
    let other = server.by(User::new("eve", ["staff"])).get(MAPS).await;
    let admin = server.get(MAPS).await;
    let watch = server.by(ada()).watch(&format!("{MAPS}?watch=1")).await;
    drop(watch);

    assert_eq!((refused.code, &refused.headers["retry-after"]), (429, &"1".parse().unwrap()));
    assert_eq!(refused.body, "Too many requests, please try again later.\n");
    assert_eq!((other.code, admin.code), (200, 200), "other levels have their own seats");
    occupying.abort();
    assert!(occupying.await.is_err());
    assert_eq!(server.by(ada()).get(MAPS).await.code, 200, "the seat is free again");
}

#[tokio::test(start_paused = true)]
async fn a_request_waits_in_its_queue_until_a_seat_is_free() {
    let queue = json!({"type": "Queue", "queuing": {"queues": 1, "handSize": 1, "queueLengthLimit": 1}});
    let server = server(queue).await;
    let occupying = occupy(&server).await;
    let waiting = tokio::spawn({
        let server = server.by(ada());
        async move { server.get(MAPS).await }
    });
    tokio::task::yield_now().await;

    assert_eq!(server.by(ada()).get(MAPS).await.code, 429, "the queue is full");
    tokio::time::sleep(Duration::from_secs(10)).await;
    occupying.abort();

    assert_eq!(waiting.await.unwrap().code, 200);
}

#[tokio::test(start_paused = true)]
async fn a_request_waits_for_a_quarter_of_its_time_at_most() {
    let queue = json!({"type": "Queue", "queuing": {"queues": 1, "handSize": 1, "queueLengthLimit": 5}});
    let server = server(queue).await;
    let occupying = occupy(&server).await;
    let started = Instant::now();

    let refused = server.by(ada()).get(MAPS).await;

    assert_eq!((refused.code, started.elapsed()), (429, Duration::from_secs(15)));
    occupying.abort();
}

#[tokio::test(start_paused = true)]
async fn responses_name_their_schema_and_level() {
    let server = server(json!({"type": "Reject"})).await;
    let uid = |answer: &Answer| answer.body["metadata"]["uid"].as_str().unwrap().to_owned();
    let expected = [
        server.get(&format!("{SCHEMAS}/ada")).await,
        server.get(&format!("{LEVELS}/narrow")).await,
    ]
    .map(|answer| uid(&answer));
    let masters = [
        server.get(&format!("{SCHEMAS}/exempt")).await,
        server.get(&format!("{LEVELS}/exempt")).await,
    ]
    .map(|answer| uid(&answer));

    for (answer, expected) in [
        (server.by(ada()).get(MAPS).await, expected),
        (server.get(MAPS).await, masters),
    ] {
        let named = ["x-kubernetes-pf-flowschema-uid", "x-kubernetes-pf-prioritylevel-uid"];
        assert_eq!(named.map(|name| answer.headers[name].to_str().unwrap().to_owned()), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_schema_without_its_level_is_dangling_and_matches_nothing() {
    let server = server(json!({"type": "Reject"})).await;
    let dangling = async || server.get(&format!("{SCHEMAS}/eve")).await.body["status"]["conditions"][0].clone();
    created(server.post(SCHEMAS, schema("eve", "eve", "later")).await);

    let condition = dangling().await;
    assert_eq!((&condition["type"], &condition["status"]), (&json!("Dangling"), &json!("True")));
    assert_eq!(
        condition["message"],
        r#"This FlowSchema references the PriorityLevelConfiguration object named "later" but there is no such object"#
    );
    let eve = server.by(User::new("eve", ["staff"]));
    let uid = |answer: Answer| answer.headers["x-kubernetes-pf-flowschema-uid"].clone();
    let before = uid(eve.get(MAPS).await);
    created(server.post(LEVELS, level("later", json!({"type": "Reject"}))).await);
    assert_eq!(dangling().await["status"], "False");
    assert_ne!(uid(eve.get(MAPS).await), before);
    server.delete(&format!("{LEVELS}/later"), Value::Null).await;
    assert_eq!(dangling().await["status"], "True");
}

#[tokio::test(start_paused = true)]
async fn the_mandatory_levels_are_in_force_also_when_they_are_deleted() {
    let server = server(json!({"type": "Reject"})).await;
    for collection in [SCHEMAS, LEVELS] {
        assert_eq!(server.ask(Method::DELETE, collection, "").await.code, 200);
    }

    assert_eq!(server.get(LEVELS).await.body["items"], json!([]));
    assert_eq!(server.by(ada()).get(MAPS).await.code, 200);
}
