//! What an audit policy records of a request.

use crate::ask::Server;
use flyball_apiserver::audit::{AuditEvent, AuditLog, AuditSink, Level, Policy};
use flyball_apiserver::{ServerOptions, User};
use flyball_store::Store;
use http::Method;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[derive(Default)]
struct Events(Mutex<Vec<Value>>);

impl AuditSink for Events {
    fn record(&self, event: &AuditEvent) {
        self.0.lock().unwrap().push(json!(event));
    }
}

impl Events {
    fn take(&self) -> Vec<Value> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    /// The event of the last stage.
    fn last(&self) -> Value {
        self.take().pop().expect("something is recorded")
    }
}

async fn server(policy: Policy) -> (Server, Arc<Events>) {
    let events = Arc::new(Events::default());
    let options = ServerOptions {
        audit_sink: Some(events.clone()),
        audit_policy: policy,
        ..ServerOptions::default()
    };
    let server = Server::with(Store::memory(), options).await;
    events.take();
    (server, events)
}

#[tokio::test(start_paused = true)]
async fn metadata_is_who_asked_for_what_and_how_it_was_decided() {
    let (server, events) = server(Policy::every(Level::Metadata)).await;
    server.post(MAPS, json!({"metadata": {"name": "a"}, "data": {"k": "v"}})).await;

    let event = events.last();
    assert_eq!((&event["level"], &event["stage"]), (&json!("Metadata"), &json!("ResponseComplete")));
    assert_eq!((&event["requestURI"], &event["verb"]), (&json!(MAPS), &json!("create")));
    assert_eq!(
        event["user"],
        json!({"username": "admin", "groups": ["system:masters", "system:authenticated"]})
    );
    assert_eq!(event["userAgent"], "tester/1.0");
    let reference = json!({"resource": "configmaps", "namespace": "default", "name": "a", "apiVersion": "v1"});
    assert_eq!(event["objectRef"], reference);
    assert_eq!(event["responseStatus"], json!({"metadata": {}, "code": 201}));
    let decision = json!({"authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": ""});
    assert_eq!(event["annotations"], decision);
    assert_eq!((event.get("requestObject"), event.get("responseObject")), (None, None));
}

#[tokio::test(start_paused = true)]
async fn refusals_are_recorded_with_their_reason() {
    let (server, events) = server(Policy::every(Level::Metadata)).await;
    server.by(User::new("ada", ["staff"])).get(MAPS).await;

    let event = events.last();
    assert_eq!(event["annotations"]["authorization.k8s.io/decision"], "forbid");
    let status = &event["responseStatus"];
    assert_eq!(
        (&status["code"], &status["reason"], &status["status"]),
        (&json!(403), &json!("Forbidden"), &json!("Failure"))
    );
    assert!(status["message"].as_str().unwrap().contains("cannot list resource"));
    server.get(&format!("{MAPS}/none")).await;
    assert_eq!(events.last()["responseStatus"]["reason"], "NotFound");
}

#[tokio::test(start_paused = true)]
async fn objects_are_recorded_if_the_level_says_so() {
    let text = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitManagedFields: true\nomitStages: [RequestReceived]\nrules:\n\
                - {level: Request, verbs: [create]}\n- {level: RequestResponse}\n";
    let (server, events) = server(Policy::read(text).unwrap()).await;

    server.post(MAPS, json!({"metadata": {"name": "a"}, "data": {"k": "v"}})).await;
    let [created] = events.take().try_into().expect("one stage");
    assert_eq!(created["requestObject"]["data"], json!({"k": "v"}));
    assert_eq!(created.get("responseObject"), None);

    server.patch("merge-patch+json", &format!("{MAPS}/a"), json!({"data": {"k": "w"}})).await;
    let patched = events.last();
    assert_eq!(patched["requestObject"], json!({"data": {"k": "w"}}));
    assert_eq!(patched["responseObject"]["data"], json!({"k": "w"}));
    assert_eq!(patched["responseObject"]["metadata"].get("managedFields"), None);

    let applied = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    server
        .patch("apply-patch+yaml", &format!("{MAPS}/a?fieldManager=m"), applied.clone())
        .await;
    assert_eq!(events.last()["requestObject"], applied);

    server.get(MAPS).await;
    assert_eq!(events.last()["responseObject"]["items"][0]["metadata"]["name"], "a");

    server.delete(&format!("{MAPS}/a"), json!({"propagationPolicy": "Background"})).await;
    let deleted = events.last();
    let options = json!({"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1", "propagationPolicy": "Background"});
    assert_eq!(deleted["requestObject"], options);
    assert_eq!(deleted["responseObject"]["status"], "Success");
}

#[tokio::test(start_paused = true)]
async fn impersonation_and_failed_authentication_are_recorded() {
    let (server, events) = server(Policy::every(Level::Metadata)).await;
    server.with_headers(Method::GET, MAPS, &[("impersonate-user", "ada")], "").await;
    let event = events.last();
    assert_eq!(event["user"]["username"], "admin");
    assert_eq!(event["impersonatedUser"], json!({"username": "ada", "groups": ["system:authenticated"]}));

    server
        .without_user(
            Method::GET,
            MAPS,
            &[("authorization", "Bearer wrong"), ("x-forwarded-for", "192.0.2.1")],
            "",
        )
        .await;
    let [failed] = events.take().try_into().expect("one event");
    assert_eq!(
        (&failed["stage"], &failed["responseStatus"]["code"]),
        (&json!("ResponseStarted"), &json!(401))
    );
    assert_eq!(failed["sourceIPs"], json!(["192.0.2.1"]));
}

#[tokio::test(start_paused = true)]
async fn a_log_has_one_event_a_line() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("audit.log");
    let options = ServerOptions {
        audit_sink: Some(Arc::new(AuditLog::open(&path).unwrap())),
        ..ServerOptions::default()
    };
    let server = Server::with(Store::memory(), options).await;
    let before = std::fs::read_to_string(&path).unwrap().len();
    server.get(MAPS).await;

    let text = std::fs::read_to_string(&path).unwrap().split_off(before);
    let stages: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["stage"].clone())
        .collect();
    assert_eq!(stages, ["RequestReceived", "ResponseComplete"]);
}

#[tokio::test(start_paused = true)]
async fn pods_that_violate_the_audited_standard_are_recorded() {
    let (server, events) = server(Policy::every(Level::Metadata)).await;
    let labels = json!({"pod-security.kubernetes.io/audit": "baseline"});
    server
        .post("/api/v1/namespaces", json!({"metadata": {"name": "watched", "labels": labels}}))
        .await;
    server.account("watched").await;

    let spec = json!({"hostPID": true, "containers": [{"name": "c", "image": "a:1"}]});
    let pod = json!({"metadata": {"name": "a"}, "spec": spec});
    assert_eq!(server.post("/api/v1/namespaces/watched/pods", pod).await.code, 201);

    let annotations = events.last()["annotations"].clone();
    assert_eq!(annotations["pod-security.kubernetes.io/enforce-policy"], "privileged:latest");
    let violations = "would violate PodSecurity \"baseline:latest\": host namespaces (hostPID=true)";
    assert_eq!(annotations["pod-security.kubernetes.io/audit-violations"], violations);
}
