//! The filters that every request passes: who asks, how long it may take, what is audited.

use crate::ask::Server;
use bytes::Bytes;
use flyball_apiserver::audit::{AuditEvent, AuditSink};
use flyball_apiserver::{ApiServer, ServerOptions, User};
use flyball_store::Store;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Empty, StreamBody};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use tokio::time::Instant;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn request(method: Method, path: &str) -> Request<Empty<Bytes>> {
    Request::builder().method(method).uri(path).body(Empty::new()).unwrap()
}

/// A POST whose body never comes.
fn unfinished(path: &str) -> Request<impl http_body::Body<Data = Bytes, Error = Infallible> + use<>> {
    let never = futures::stream::pending::<Result<http_body::Frame<Bytes>, Infallible>>();
    Request::post(path).body(StreamBody::new(never)).unwrap()
}

async fn text(response: Response<flyball_apiserver::Body>) -> String {
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_caller_in_the_process_is_the_user_it_names() {
    let server = Server::start().await.0;

    let anonymous = server.respond(request(Method::GET, MAPS)).await;
    let ada = server.as_user(User::new("ada", ["staff"])).respond(request(Method::GET, MAPS)).await;
    let admin = server.as_user(User::admin()).respond(request(Method::GET, MAPS)).await;

    assert_eq!(
        [anonymous.status(), ada.status(), admin.status()].map(|code| code.as_u16()),
        [403, 403, 200]
    );
    let refusal: Value = serde_json::from_str(&text(ada).await).unwrap();
    let why = r#"User "ada" cannot list resource "configmaps" in API group "" in the namespace "default""#;
    assert_eq!(refusal["message"], format!("configmaps is forbidden: {why}"));
    assert_eq!(
        (&refusal["reason"], &refusal["details"]),
        (&json!("Forbidden"), &json!({"kind": "configmaps"}))
    );
}

#[tokio::test(start_paused = true)]
async fn a_request_that_takes_too_long_is_answered_with_504() {
    let server = Server::start().await.0;
    let admin = server.as_user(User::admin());
    for (query, seconds) in [("", 60), ("?timeout=5s", 5), ("?timeout=0", 60), ("?timeout=2h", 60)] {
        let started = Instant::now();

        let response = admin.respond(unfinished(&format!("{MAPS}{query}"))).await;

        assert_eq!((response.status().as_u16(), started.elapsed().as_secs()), (504, seconds), "{query}");
        let status: Value = serde_json::from_str(&text(response).await).unwrap();
        assert_eq!(status["reason"], "Timeout");
        assert_eq!(status["message"], "Timeout: request did not complete within the allotted timeout");
    }
}

#[tokio::test]
async fn a_deadline_in_the_past_is_answered_with_504_and_nothing_is_done() {
    let server = Server::start().await;

    let late = server.post(&format!("{MAPS}?timeout=1ns"), json!({"metadata": {"name": "a"}})).await;

    assert_eq!(late.code, 504);
    assert_eq!(server.get(&format!("{MAPS}/a")).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn numbers_and_durations_in_the_query_are_checked() {
    let server = Server::start().await;
    for (query, message) in [
        ("limit=", r#"strconv.ParseInt: parsing "": invalid syntax"#),
        ("limit=many", r#"strconv.ParseInt: parsing "many": invalid syntax"#),
        ("timeoutSeconds=", r#"strconv.ParseInt: parsing "": invalid syntax"#),
        (
            "timeout=soon",
            r#"invalid timeout specified in the request URL - time: invalid duration "soon""#,
        ),
    ] {
        let refused = server.get(&format!("{MAPS}?{query}")).await;

        assert_eq!((refused.code, refused.body["message"].as_str()), (400, Some(message)), "{query}");
    }
}

#[derive(Default)]
struct Events(Mutex<Vec<String>>);

impl AuditSink for Events {
    fn record(&self, event: &AuditEvent) {
        let AuditEvent { stage, user, verb, audit_id: id, .. } = event;
        let user = &user.username;
        let code = event.code().map_or("-".into(), |code| code.to_string());
        self.0.lock().unwrap().push(format!("{id} {stage:?} {user} {verb} {code}"));
    }
}

async fn audited() -> (ApiServer, Arc<Events>) {
    let events = Arc::new(Events::default());
    let options = ServerOptions { audit_sink: Some(events.clone()), ..ServerOptions::default() };
    (options.start(Store::memory()).await.unwrap(), events)
}

#[tokio::test(start_paused = true)]
async fn an_audit_sink_sees_the_stages_of_every_request() {
    let (server, events) = audited().await;
    let mut list = request(Method::GET, MAPS);
    list.headers_mut().insert("audit-id", "one".parse().unwrap());
    let mut watch = request(Method::GET, &format!("{MAPS}?watch=1"));
    watch.headers_mut().insert("audit-id", "two".parse().unwrap());

    let response = server.respond(list).await;
    assert_eq!(response.headers()["audit-id"], "one");
    drop(response);
    let response = server.as_user(User::admin()).respond(watch).await;
    events.0.lock().unwrap().push("the client reads".into());
    drop(response);

    assert_eq!(
        *events.0.lock().unwrap(),
        [
            "one RequestReceived system:anonymous list -",
            "one ResponseComplete system:anonymous list 403",
            "two RequestReceived admin watch -",
            "two ResponseStarted admin watch 200",
            "the client reads",
            "two ResponseComplete admin watch 200",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn an_audit_id_is_made_if_the_client_names_none() {
    let server = Server::start().await.0;

    let refused = server.respond(request(Method::GET, MAPS)).await;

    assert_eq!(refused.headers()["audit-id"].len(), 36);
    assert_eq!(refused.headers()["cache-control"], "no-cache, private");
}

#[tokio::test(start_paused = true)]
async fn a_write_outlives_the_deadline_of_its_client() {
    let faults = flyball_store::fault::Faults { delayed: 1, ..Default::default() };
    let server = Server::over(faults.on(Store::memory())).await;

    let late = server.post(&format!("{MAPS}?timeout=1ms"), json!({"metadata": {"name": "a"}})).await;
    server.0.finish_writes().await;

    assert_eq!(late.code, 504);
    assert_eq!(server.get(&format!("{MAPS}/a")).await.code, 200);
}
