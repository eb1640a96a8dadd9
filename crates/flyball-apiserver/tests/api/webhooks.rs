//! Admission webhooks: who is called about what, and what answers and failures mean. No socket is opened.

use crate::ask::Server;
use crate::hook::{Hook, MUTATING, VALIDATING, allow, configuration, patch, warnings, webhook, with};
use flyball_apiserver::ServerOptions;
use flyball_apiserver::audit::{AuditEvent, AuditSink, Stage};
use flyball_apiserver::webhook::WebhookAddress;
use flyball_store::Store;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn map(name: &str) -> Value {
    json!({"metadata": {"name": name}})
}

async fn configure(server: &Server, kind: &str, name: &str, webhooks: Value) {
    let answer = server.post(kind, configuration(name, webhooks)).await;
    assert_eq!(answer.code, 201, "{}", answer.body);
    assert_eq!(warnings(&answer.headers), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn mutating_webhooks_are_called_in_order_and_see_what_the_others_changed() {
    let server = Server::start().await;
    let append = |text: &'static str| {
        move |request: &Value| {
            let order = request["object"]["data"]["order"].as_str().unwrap_or_default();
            patch(json!([{"op": "add", "path": "/data", "value": {"order": format!("{order}{text}")}}]))
        }
    };
    let hooks = ["a", "b", "c"].map(|name| Hook::admitting(&server, name, append(name)));
    configure(&server, MUTATING, "second", json!([webhook("a", json!(["configmaps"]))])).await;
    let first = json!([webhook("c", json!(["configmaps"])), webhook("b", json!(["configmaps"]))]);
    configure(&server, MUTATING, "first", first).await;

    let created = server.post(MAPS, map("m")).await;

    assert_eq!(created.code, 201, "{}", created.body);
    assert_eq!(created.body["data"]["order"], "cba");
    assert_eq!(hooks.map(|hook| hook.requests().len()), [1, 1, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_review_has_the_object_the_user_and_the_options() {
    let server = Server::start().await;
    let hook = Hook::admitting(&server, "a", allow);
    configure(&server, VALIDATING, "a", json!([webhook("a", json!(["configmaps"]))])).await;

    server
        .post(&format!("{MAPS}?fieldManager=me&dryRun=All&fieldValidation=Strict"), map("m"))
        .await;

    let mut requests = hook.requests();
    let object = requests[0]["object"].take();
    assert_eq!((&object["kind"], &object["metadata"]["name"]), (&json!("ConfigMap"), &json!("m")));
    assert!(requests[0]["uid"].as_str().unwrap().len() == 36);
    requests[0]["uid"] = Value::Null;
    let kind = json!({"group": "", "version": "v1", "kind": "ConfigMap"});
    let resource = json!({"group": "", "version": "v1", "resource": "configmaps"});
    let options = json!({"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "dryRun": ["All"],
        "fieldManager": "me", "fieldValidation": "Strict"});
    let expected = json!({"uid": null, "kind": kind, "resource": resource, "requestKind": kind,
        "requestResource": resource, "name": "m", "namespace": "default", "operation": "CREATE",
        "userInfo": {"username": "admin", "groups": ["system:masters", "system:authenticated"]}, "object": null, "oldObject": null,
        "dryRun": true, "options": options});
    assert_eq!(requests, [expected]);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_has_the_code_the_reason_and_the_message_of_the_webhook() {
    let server = Server::start().await;
    let refusal = Arc::new(Mutex::new(Value::Null));
    let says = refusal.clone();
    let _hook = Hook::admitting(&server, "a", move |_| json!({"allowed": false, "status": *says.lock().unwrap()}));
    configure(&server, VALIDATING, "a", json!([webhook("a", json!(["configmaps"]))])).await;
    let denied = "admission webhook \"a.example.dev\" denied the request";
    for (status, code, message, reason) in [
        (Value::Null, 400, format!("{denied} without explanation"), Value::Null),
        (json!({"message": "no"}), 400, format!("{denied}: no"), Value::Null),
        (json!({"reason": "Mine"}), 400, format!("{denied}: Mine"), json!("Mine")),
        (
            json!({"code": 422, "message": "no", "reason": "Invalid"}),
            422,
            format!("{denied}: no"),
            json!("Invalid"),
        ),
        (json!({"code": 200, "message": "no"}), 400, format!("{denied}: no"), Value::Null),
    ] {
        *refusal.lock().unwrap() = status.clone();
        let answer = server.post(MAPS, map("m")).await;
        assert_eq!(answer.code, code, "{status}");
        assert_eq!((&answer.body["message"], &answer.body["reason"]), (&json!(message), &reason));
    }
    let details = json!({"name": "x", "kind": "Thing", "causes": [{"reason": "r", "message": "m", "field": "f"}]});
    *refusal.lock().unwrap() = json!({"details": details});
    assert_eq!(server.post(MAPS, map("m")).await.body["details"], details);
}

#[tokio::test(start_paused = true)]
async fn the_failure_policy_decides_about_webhooks_that_cannot_be_called() {
    let server = Server::start().await;
    for (kind, policy) in [
        (MUTATING, "Fail"),
        (MUTATING, "Ignore"),
        (VALIDATING, "Fail"),
        (VALIDATING, "Ignore"),
    ] {
        let failing = with(webhook("absent", json!(["configmaps"])), json!({"failurePolicy": policy}));
        configure(&server, kind, "a", json!([failing])).await;
        let answer = server.post(&format!("{MAPS}?dryRun=All"), map("m")).await;
        let why = "Internal error occurred: failed calling webhook \"absent.example.dev\": failed to call webhook: \
                   Post \"https://absent.default.svc:443/review?timeout=10s\": ";
        match policy {
            "Ignore" => assert_eq!(answer.code, 201),
            _ => {
                assert_eq!((answer.code, &answer.body["reason"]), (500, &json!("InternalError")));
                assert!(answer.body["message"].as_str().unwrap().starts_with(why), "{}", answer.body);
            }
        }
        assert_eq!(server.delete(&format!("{kind}/a"), Value::Null).await.code, 200);
    }
}

/// A webhook that never answers.
async fn never() -> Result<http::Response<http_body_util::Full<bytes::Bytes>>, std::convert::Infallible> {
    std::future::pending().await
}

#[tokio::test(start_paused = true)]
async fn a_webhook_that_hangs_delays_its_own_writes_until_its_timeout_and_no_others() {
    let server = Server::start().await;
    let service = tower::service_fn(|_| never());
    let services = server.0.webhook_services();
    let registration = services.register(WebhookAddress::service("default", "slow"), service);
    let slow = with(webhook("slow", json!(["configmaps"])), json!({"timeoutSeconds": 7}));
    configure(&server, VALIDATING, "a", json!([slow])).await;

    let begin = Instant::now();
    let other = server.clone();
    let late = tokio::spawn(async move { other.post(MAPS, map("m")).await });
    tokio::task::yield_now().await;
    assert_eq!(server.post("/api/v1/namespaces", map("n")).await.code, 201);
    assert_eq!(begin.elapsed(), Duration::ZERO, "an unrelated create does not wait");
    let late = late.await.unwrap();

    assert_eq!(begin.elapsed().as_secs(), 7);
    let why =
        "failed to call webhook: Post \"https://slow.default.svc:443/review?timeout=7s\": context deadline exceeded";
    assert!(late.code == 500 && late.body["message"].as_str().unwrap().ends_with(why), "{}", late.body);
    drop(registration);
    let gone = server.post(MAPS, map("m")).await.body;
    assert!(gone["message"].as_str().unwrap().ends_with("service \"slow\" not found"), "{gone}");
}

#[tokio::test(start_paused = true)]
async fn validating_webhooks_are_called_at_a_time_and_the_first_refusal_counts() {
    let server = Server::start().await;
    let slow = |name: &'static str| {
        tower::service_fn(move |request: http::Request<http_body_util::Full<bytes::Bytes>>| async move {
            use http_body_util::BodyExt;
            tokio::time::sleep(Duration::from_secs(3)).await;
            let review: Value = serde_json::from_slice(&request.into_body().collect().await?.to_bytes()).unwrap();
            let status = json!({"message": name});
            let response = json!({"uid": review["request"]["uid"], "allowed": false, "status": status});
            let review = json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response});
            let body = http_body_util::Full::new(bytes::Bytes::from(review.to_string()));
            Ok::<_, std::convert::Infallible>(http::Response::new(body))
        })
    };
    let services = server.0.webhook_services();
    let _hooks = ["a", "b"].map(|name| services.register(WebhookAddress::service("default", name), slow(name)));
    let webhooks = ["b", "a"].map(|name| webhook(name, json!(["configmaps"])));
    configure(&server, VALIDATING, "a", json!(webhooks)).await;

    let begin = Instant::now();
    let refused = server.post(MAPS, map("m")).await;

    assert_eq!(begin.elapsed().as_secs(), 3);
    assert_eq!(refused.body["message"], "admission webhook \"b.example.dev\" denied the request: b");
}

#[tokio::test(start_paused = true)]
async fn invalid_answers_count_as_failures_to_call() {
    let server = Server::start().await;
    let answer = Arc::new(Mutex::new(Value::Null));
    let says = answer.clone();
    let _hook = Hook::admitting(&server, "a", move |_| says.lock().unwrap().clone());
    configure(&server, MUTATING, "a", json!([webhook("a", json!(["configmaps"]))])).await;
    let unsupported = with(patch(json!([{"op": "add"}])), json!({"patchType": "MergePatch"}));
    let undecodable = with(patch(json!([])), json!({"patch": "e30="}));
    for (response, expected) in [
        (json!({"uid": "other"}), "received invalid webhook response: expected response.uid="),
        (unsupported, "unsupported patch type \"MergePatch\""),
        (undecodable, "received undecodable patch in webhook response: "),
    ] {
        *answer.lock().unwrap() = response.clone();
        let failed = server.post(MAPS, map("m")).await;
        let message = failed.body["message"].as_str().unwrap();
        let prefix = "Internal error occurred: failed calling webhook \"a.example.dev\": ";
        assert!(
            failed.code == 500 && message.starts_with(&format!("{prefix}{expected}")),
            "{response}: {message}"
        );
    }
    // An answer that does not apply is not a failure to call: no policy ignores it.
    let ignoring = with(webhook("a", json!(["configmaps"])), json!({"failurePolicy": "Ignore"}));
    let replaced = server
        .patch("merge-patch+json", &format!("{MUTATING}/a"), json!({"webhooks": [ignoring]}))
        .await;
    assert_eq!(replaced.code, 200, "{}", replaced.body);
    for operation in [
        json!({"op": "test", "path": "/data", "value": {}}),
        json!({"op": "add", "path": "/data", "value": 1}),
    ] {
        *answer.lock().unwrap() = patch(json!([operation]));
        assert_eq!(server.post(MAPS, map("m")).await.code, 500, "{operation}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_a_webhook_in_this_process_is_a_failure_to_call() {
    let server = Server::start().await;
    let _hook = Hook::answering(&server, "a", |_| panic!("a bug in a webhook"));
    let ignoring = with(webhook("a", json!(["configmaps"])), json!({"failurePolicy": "Ignore"}));
    configure(&server, VALIDATING, "a", json!([ignoring])).await;

    assert_eq!(server.post(MAPS, map("m")).await.code, 201);
}

#[tokio::test(start_paused = true)]
async fn match_conditions_decide_whether_a_webhook_is_called() {
    let server = Server::start().await;
    let hook = Hook::admitting(&server, "a", allow);
    for (expressions, policy, code, calls) in [
        (vec!["object.metadata.name == 'm'"], "Fail", 201, 1),
        (vec!["request.operation == 'CREATE'", "oldObject == null"], "Fail", 201, 1),
        (vec!["object.metadata.name == 'other'"], "Fail", 201, 0),
        (vec!["object.data.x == 'y'"], "Fail", 403, 0),
        (vec!["object.data.x == 'y'"], "Ignore", 201, 0),
        (vec!["object.data.x == 'y'", "false"], "Fail", 201, 0),
        (vec!["authorizer.group('').resource('pods').check('get').allowed()"], "Fail", 201, 1),
    ] {
        let conditions = expressions.iter().enumerate();
        let conditions = conditions.map(|(index, text)| json!({"name": format!("c{index}"), "expression": text}));
        let fields = json!({"matchConditions": conditions.collect::<Vec<_>>(), "failurePolicy": policy});
        configure(&server, VALIDATING, "a", json!([with(webhook("a", json!(["configmaps"])), fields)])).await;
        let answer = server.post(&format!("{MAPS}?dryRun=All"), map("m")).await;
        assert_eq!((answer.code, hook.requests().len()), (code, calls), "{expressions:?} {}", answer.body);
        server.delete(&format!("{VALIDATING}/a"), Value::Null).await;
    }
}

#[tokio::test(start_paused = true)]
async fn webhooks_that_ask_for_it_are_called_again_after_a_change_by_others() {
    let server = Server::start().await;
    let first = Hook::admitting(&server, "first", allow);
    let once = Hook::admitting(&server, "once", allow);
    let last = Hook::admitting(&server, "last", |request| match request["object"]["data"]["by"].is_null() {
        true => patch(json!([{"op": "add", "path": "/data", "value": {"by": "last"}}])),
        false => json!({"allowed": true}),
    });
    let again = json!({"reinvocationPolicy": "IfNeeded"});
    let maps = || json!(["configmaps"]);
    let webhooks = json!([
        with(webhook("first", maps()), again.clone()),
        webhook("once", maps()),
        with(webhook("last", maps()), again)
    ]);
    configure(&server, MUTATING, "a", webhooks).await;

    assert_eq!(server.post(MAPS, map("m")).await.code, 201);

    let requests = first.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[1]["object"]["data"]["by"], "last");
    assert_eq!((once.requests().len(), last.requests().len()), (1, 1), "last changed the object itself");
}

#[tokio::test(start_paused = true)]
async fn webhook_configurations_are_never_sent_to_webhooks() {
    let server = Server::start().await;
    let hook = Hook::admitting(&server, "a", |_| json!({"allowed": false}));
    configure(&server, VALIDATING, "a", json!([webhook("a", json!(["*/*"]))])).await;

    configure(&server, MUTATING, "b", json!([])).await;
    assert_eq!(server.delete(&format!("{VALIDATING}/a"), Value::Null).await.code, 200);

    assert_eq!(hook.requests(), Vec::<Value>::new());
    assert_eq!(server.post(MAPS, map("m")).await.code, 201, "a deletion takes effect with its response");
}

#[tokio::test(start_paused = true)]
async fn configurations_are_in_force_after_a_restart() {
    let store = Store::memory();
    let first = Server::over(store.clone()).await;
    configure(&first, VALIDATING, "a", json!([webhook("a", json!(["configmaps"]))])).await;

    let second = Server::over(store).await;
    let hook = Hook::admitting(&second, "a", allow);

    assert_eq!(second.post(MAPS, map("m")).await.code, 201);
    assert_eq!(hook.requests().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn damaged_managed_fields_are_restored_with_a_warning() {
    let server = Server::start().await;
    let damaged = json!([{"op": "replace", "path": "/metadata/managedFields", "value": [{"operation": "Other"}]},
        {"op": "add", "path": "/unknown", "value": 1}]);
    let _hook = Hook::admitting(&server, "a", move |_| patch(damaged.clone()));
    configure(&server, MUTATING, "a", json!([webhook("a", json!(["configmaps"]))])).await;

    let created = server.post(MAPS, with(map("m"), json!({"data": {"a": "b"}}))).await;

    assert_eq!(created.code, 201, "{}", created.body);
    assert_eq!(created.body["metadata"]["managedFields"][0]["manager"], "tester");
    assert!(created.body.get("unknown").is_none());
    let expected = "299 - \".metadata.managedFields was in an invalid state after admission; this could be caused by an \
                    outdated mutating admission controller; please fix your requests: operation must be `Apply` or \
                    `Update`\"";
    assert_eq!(warnings(&created.headers), [expected]);
}

#[derive(Default)]
struct Annotations(Mutex<BTreeMap<String, String>>);

impl AuditSink for Annotations {
    fn record(&self, event: &AuditEvent) {
        if event.stage == Stage::ResponseComplete {
            self.0.lock().unwrap().append(&mut event.annotations.clone());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn warnings_and_audit_annotations_are_kept_with_the_request() {
    let sink = Arc::new(Annotations::default());
    let options = ServerOptions { audit_sink: Some(sink.clone()), ..ServerOptions::default() };
    let server = Server::with(Store::memory(), options).await;
    let _hook = Hook::admitting(&server, "a", |_| {
        let added = patch(json!([{"op": "add", "path": "/data", "value": {"a": "b"}}]));
        with(
            added,
            json!({"warnings": ["careful", "careful", ""], "auditAnnotations": {"k": "v", "not/a/key": "v"}}),
        )
    });
    let ignoring = with(webhook("absent", json!(["configmaps"])), json!({"failurePolicy": "Ignore"}));
    configure(&server, MUTATING, "a", json!([webhook("a", json!(["configmaps"])), ignoring.clone()])).await;
    configure(&server, VALIDATING, "a", json!([ignoring])).await;

    let created = server.post(MAPS, map("m")).await;

    assert_eq!((created.code, warnings(&created.headers)), (201, vec!["299 - \"careful\"".to_owned()]));
    drop(created);
    let annotations = std::mem::take(&mut *sink.0.lock().unwrap());
    let mutated = |webhook: &str, mutated: bool| {
        json!({"configuration": "a", "webhook": format!("{webhook}.example.dev"), "mutated": mutated}).to_string()
    };
    let patched = json!({"configuration": "a", "webhook": "a.example.dev",
        "patch": [{"op": "add", "path": "/data", "value": {"a": "b"}}], "patchType": "JSONPatch"});
    let expected = [
        ("a.example.dev/k", "v".to_owned()),
        ("authorization.k8s.io/decision", "allow".to_owned()),
        ("authorization.k8s.io/reason", String::new()),
        (
            "failed-open.mutation.webhook.admission.k8s.io/round_0_index_1",
            "absent.example.dev".to_owned(),
        ),
        (
            "failed-open.validating.webhook.admission.k8s.io/round_0_index_0",
            "absent.example.dev".to_owned(),
        ),
        ("mutation.webhook.admission.k8s.io/round_0_index_0", mutated("a", true)),
        ("mutation.webhook.admission.k8s.io/round_0_index_1", mutated("absent", false)),
        ("patch.webhook.admission.k8s.io/round_0_index_0", patched.to_string()),
    ];
    assert_eq!(annotations, expected.map(|(key, value)| (key.to_owned(), value)).into());
}
