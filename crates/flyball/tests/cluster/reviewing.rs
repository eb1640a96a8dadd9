//! Webhooks called in the process, as an API server calls them: reviews in, reviews out.

use flyball::webhook::{
    AdmissionRequest, AdmissionResponse, FailurePolicy, MatchPolicy, Operation, SideEffects, WebhookService,
};
use flyball::{Defaulting, Error, Manifests, Operator, Result, Review, Validation, Violations, metrics::Format};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use kube::{Client, CustomResource, CustomResourceExt, api::DynamicObject, client::Body};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "example.dev", version = "v1", kind = "Disk", namespaced)]
struct DiskSpec {
    size: i64,
    #[serde(default)]
    class: Option<String>,
    #[serde(default)]
    labels: Vec<String>,
}

async fn validate(disk: Arc<Disk>, review: Review<Disk>) -> Result<()> {
    match disk.spec.class.as_deref() {
        Some("panic") => panic!("a disk of class panic"),
        Some("slow") => tokio::time::sleep(Duration::from_secs(60)).await,
        Some("broken") => Err("the directory is down")?,
        Some("banned") => return Err(Error::permanent("no disks today")),
        _ => {}
    }
    if disk.spec.size > 100 {
        review.warn(format!("{} GB are a lot", disk.spec.size));
    }
    let mut violations = Violations::default();
    if disk.spec.size < 1 {
        violations.invalid("spec.size", disk.spec.size, "must be greater than zero");
    }
    if review.old().is_some_and(|old| old.spec.size > disk.spec.size) {
        violations.forbidden("spec.size", "a disk does not shrink");
    }
    if review.operation() == Operation::Delete && disk.spec.labels.iter().any(|label| label == "keep") {
        violations.forbidden("metadata", "it is to be kept");
    }
    violations.check()
}

async fn complete(mut disk: Disk, review: Review<Disk>) -> Result<Disk> {
    if disk.spec.size == 13 {
        return Err(Error::permanent("not thirteen"));
    }
    disk.spec
        .class
        .get_or_insert_with(|| format!("class-of-{}", review.user().username.as_deref().unwrap_or("none")));
    Ok(disk)
}

/// Admits requests of two users only.
async fn restrict(request: AdmissionRequest<DynamicObject>, _: Client) -> Result<AdmissionResponse> {
    let user = request.user_info.username.clone().unwrap_or_default();
    let response = AdmissionResponse::from(&request);
    Ok(match &*user {
        "ada" | "bob" => response,
        _ => response.deny(format!("{user} may not")),
    })
}

fn operator() -> Operator {
    let everything = [Operation::Create, Operation::Update, Operation::Delete];
    Operator::new("disks")
        .crd(Disk::crd())
        .validates(Validation::new(validate).rule(|rule| rule.operations(everything)))
        .defaults(Defaulting::new(complete))
        .validates(
            Validation::raw("users", restrict)
                .rule(|rule| rule.groups(["apps"]).versions(["v1"]).resources(["deployments", "deployments/scale"])),
        )
}

const VALIDATE: &str = "/validate-example-dev-v1-disk";
const DEFAULT: &str = "/mutate-example-dev-v1-disk";

/// A client that answers nothing: what is called here needs no cluster.
fn client() -> Client {
    let refuse = |_: Request<Body>| async { Err::<http::Response<Body>, _>(std::io::Error::other("no cluster")) };
    Client::new(tower::service_fn(refuse), "default")
}

fn service() -> WebhookService {
    WebhookService::new(&operator(), client())
}

fn disk(spec: Value) -> Value {
    json!({ "apiVersion": "example.dev/v1", "kind": "Disk", "metadata": { "name": "ada", "namespace": "default" }, "spec": spec })
}

fn review(operation: &str, object: Value, old: Value) -> Value {
    json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "705ab4f5", "kind": { "group": "example.dev", "version": "v1", "kind": "Disk" },
        "resource": { "group": "example.dev", "version": "v1", "resource": "disks" },
        "name": "ada", "namespace": "default", "operation": operation, "userInfo": { "username": "ada" },
        "object": object, "oldObject": old, "dryRun": false, "options": null,
    } })
}

async fn post(service: &WebhookService, path: &str, body: impl Into<bytes::Bytes>) -> (StatusCode, String) {
    let request = Request::post(path)
        .header("content-type", "application/json")
        .body(Full::new(body.into()));
    let response = service.respond(request.unwrap()).await;
    let status = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

/// The response of a review that is answered.
async fn answer(path: &str, review: Value) -> Value {
    let (status, body) = post(&service(), path, review.to_string()).await;
    assert_eq!(status, StatusCode::OK, "{body}");
    let review: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(
        (&review["apiVersion"], &review["kind"]),
        (&"admission.k8s.io/v1".into(), &"AdmissionReview".into())
    );
    assert_eq!(review["response"]["uid"], "705ab4f5");
    review["response"].clone()
}

async fn validated(operation: &str, object: Value, old: Value) -> Value {
    answer(VALIDATE, review(operation, object, old)).await
}

#[tokio::test(start_paused = true)]
async fn an_object_is_admitted_or_refused_with_the_fields_that_are_wrong() {
    let admitted = validated("CREATE", disk(json!({ "size": 1 })), Value::Null).await;
    assert_eq!(admitted, json!({ "uid": "705ab4f5", "allowed": true }));

    let refused = validated("UPDATE", disk(json!({ "size": 0 })), disk(json!({ "size": 9 }))).await;
    assert_eq!(refused["allowed"], false);
    let status = &refused["status"];
    assert_eq!((&status["code"], &status["reason"]), (&422.into(), &"Invalid".into()));
    assert_eq!(
        status["message"],
        "Disk.example.dev \"ada\" is invalid: spec.size: Invalid value: 0: must be greater than zero, \
         spec.size: Forbidden: a disk does not shrink"
    );
    let cause = |reason: &str, message: &str| json!({ "reason": reason, "message": message, "field": "spec.size" });
    assert_eq!(
        status["details"],
        json!({ "name": "ada", "group": "example.dev", "kind": "Disk", "causes": [
            cause("FieldValueInvalid", "Invalid value: 0: must be greater than zero"),
            cause("FieldValueForbidden", "Forbidden: a disk does not shrink"),
        ] })
    );
    let banned = validated("CREATE", disk(json!({ "size": 1, "class": "banned" })), Value::Null).await;
    assert_eq!(
        (&banned["status"]["code"], &banned["status"]["message"]),
        (&403.into(), &"no disks today".into())
    );
}

#[tokio::test(start_paused = true)]
async fn a_warning_comes_with_the_answer() {
    let admitted = validated("CREATE", disk(json!({ "size": 200 })), Value::Null).await;
    assert_eq!(
        (&admitted["allowed"], &admitted["warnings"]),
        (&true.into(), &json!(["200 GB are a lot"]))
    );
}

#[tokio::test(start_paused = true)]
async fn a_delete_is_about_the_object_that_is_stored() {
    let kept = disk(json!({ "size": 1, "labels": ["keep"] }));
    assert_eq!(validated("DELETE", Value::Null, kept).await["allowed"], false);
    assert_eq!(validated("DELETE", Value::Null, disk(json!({ "size": 1 }))).await["allowed"], true);
    let (status, why) = post(&service(), VALIDATE, review("DELETE", Value::Null, Value::Null).to_string()).await;
    assert_eq!((status, &*why), (StatusCode::BAD_REQUEST, "request.oldObject: missing"));
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_being_deleted_can_be_updated_whatever_it_is() {
    let mut ending = disk(json!({ "size": -1 }));
    ending["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    assert_eq!(validated("UPDATE", ending.clone(), ending.clone()).await["allowed"], true);
    let strict = Operator::new("disks").validates(Validation::new(validate).rule(|rule| rule.terminating()));
    let strict = WebhookService::new(&strict, client());
    let (_, body) = post(&strict, VALIDATE, review("UPDATE", ending.clone(), ending).to_string()).await;
    assert!(body.contains("must be greater than zero"), "{body}");
}

#[tokio::test(start_paused = true)]
async fn what_a_defaulting_function_changes_is_a_patch_and_nothing_else_is() {
    let patch = |response: &Value| -> Value {
        let patch: k8s_openapi::ByteString = serde_json::from_value(response["patch"].clone()).unwrap();
        serde_json::from_slice(&patch.0).unwrap()
    };
    let sent = disk(json!({ "size": 1, "unknown": { "field": true } }));
    let changed = answer(DEFAULT, review("CREATE", sent, Value::Null)).await;
    assert_eq!((&changed["allowed"], &changed["patchType"]), (&true.into(), &"JSONPatch".into()));
    assert_eq!(patch(&changed), json!([{ "op": "add", "path": "/spec/class", "value": "class-of-ada" }]));

    let complete = disk(json!({ "size": 1, "class": "fast" }));
    let unchanged = answer(DEFAULT, review("CREATE", complete, Value::Null)).await;
    assert_eq!(unchanged, json!({ "uid": "705ab4f5", "allowed": true }));
    let refused = answer(DEFAULT, review("CREATE", disk(json!({ "size": 13 })), Value::Null)).await;
    assert_eq!(
        (&refused["allowed"], &refused["status"]["message"]),
        (&false.into(), &"not thirteen".into())
    );
}

#[tokio::test(start_paused = true)]
async fn a_rule_over_any_kind_is_given_the_request() {
    let mut any = review("CREATE", json!({ "metadata": { "name": "web" } }), Value::Null);
    any["request"]["kind"] = json!({ "group": "apps", "version": "v1", "kind": "Deployment" });
    assert_eq!(answer("/validate-users", any.clone()).await["allowed"], true);
    any["request"]["userInfo"]["username"] = "eve".into();
    let refused = answer("/validate-users", any).await;
    assert_eq!(
        (&refused["allowed"], &refused["status"]["message"]),
        (&false.into(), &"eve may not".into())
    );
}

#[tokio::test(start_paused = true)]
async fn a_malformed_review_is_refused_and_says_why() {
    let service = service();
    let good = || review("CREATE", disk(json!({ "size": 1, "labels": [] })), Value::Null);
    let with = |path: &str, value: Value| {
        let mut review = good();
        *review.pointer_mut(path).unwrap() = value;
        review.to_string()
    };
    let bad = StatusCode::BAD_REQUEST;
    for (body, status, why) in [
        ("{".to_owned(), bad, "the body is not JSON: "),
        ("[]".to_owned(), bad, "expected AdmissionReview of admission.k8s.io/v1, not \"\" of \"\""),
        (
            with("/apiVersion", "admission.k8s.io/v1beta1".into()),
            bad,
            "expected AdmissionReview of admission.k8s.io/v1, not",
        ),
        (with("/kind", "ConversionReview".into()), bad, "expected AdmissionReview"),
        (with("/request", Value::Null), bad, "the review has no request"),
        (with("/request/uid", "".into()), bad, "request.uid: must not be empty"),
        (with("/request/uid", 7.into()), bad, "request: invalid type"),
        (with("/request/operation", "CONQUER".into()), bad, "request: unknown variant"),
        (with("/request/object", Value::Null), bad, "request.object: missing"),
        (
            with("/request/kind/kind", "Pod".into()),
            bad,
            "request.kind: expected Disk of example.dev/v1, not Pod of \"example.dev\"",
        ),
        (
            with("/request/object/spec/size", "big".into()),
            StatusCode::OK,
            "Disk \\\"ada\\\" does not decode: object: invalid type",
        ),
        (
            with("/request/object/spec/labels", "x".repeat(8 << 20).into()),
            StatusCode::PAYLOAD_TOO_LARGE,
            "the body exceeds 7340032 bytes",
        ),
    ] {
        let (given, text) = post(&service, VALIDATE, body).await;
        assert!(given == status && text.contains(why), "{given} {text}: expected {status} {why}");
    }
    let (status, _) = post(&service, "/validate-example-dev-v1-tape", good().to_string()).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let get = Request::get(VALIDATE).body(Full::new(bytes::Bytes::new())).unwrap();
    assert_eq!(service.respond(get).await.status(), StatusCode::METHOD_NOT_ALLOWED);
    let plain = Request::post(VALIDATE).body(Full::new(bytes::Bytes::from(good().to_string()))).unwrap();
    assert_eq!(service.respond(plain).await.status(), StatusCode::UNSUPPORTED_MEDIA_TYPE);
}

#[tokio::test(start_paused = true)]
async fn a_failure_a_panic_and_slowness_concern_one_review_and_are_counted() {
    let metrics = flyball::Metrics::default();
    let service = WebhookService::new(&operator().metrics(&metrics), client());
    let send = |class: &str, query: &str| {
        let body = review("CREATE", disk(json!({ "size": 1, "class": class })), Value::Null).to_string();
        let (service, path) = (service.clone(), format!("{VALIDATE}{query}"));
        async move { post(&service, &path, body).await }
    };
    assert_eq!(
        send("broken", "").await,
        (StatusCode::INTERNAL_SERVER_ERROR, "the directory is down".into())
    );
    let panicked = send("panic", "").await;
    assert_eq!(panicked, (StatusCode::INTERNAL_SERVER_ERROR, "the webhook panicked".into()));
    let slow = send("slow", "?timeout=5s").await;
    assert_eq!(slow, (StatusCode::GATEWAY_TIMEOUT, "no answer within 5s".into()));
    // As many slow ones as are answered at a time delay others until they have timed out, and no longer.
    let started = tokio::time::Instant::now();
    let waiting: Vec<_> = (0..64).map(|_| tokio::spawn(send("slow", "?timeout=9s"))).collect();
    tokio::time::sleep(Duration::from_millis(1)).await;
    let (status, _) = send("fine", "?timeout=10s").await;
    assert_eq!((status, started.elapsed().as_secs()), (StatusCode::OK, 9));
    for waited in waiting {
        assert_eq!(waited.await.unwrap().0, StatusCode::GATEWAY_TIMEOUT);
    }
    let scraped = metrics.text(Format::Prometheus);
    for line in [
        "controller_runtime_webhook_requests_total{webhook=\"/validate-example-dev-v1-disk\",code=\"200\"} 1",
        "controller_runtime_webhook_requests_total{webhook=\"/validate-example-dev-v1-disk\",code=\"500\"} 2",
        "controller_runtime_webhook_requests_total{webhook=\"/validate-example-dev-v1-disk\",code=\"504\"} 65",
        "controller_runtime_webhook_requests_in_flight{webhook=\"/validate-example-dev-v1-disk\"} 0",
        "controller_runtime_webhook_latency_seconds_count{webhook=\"/validate-example-dev-v1-disk\"} 68",
        "controller_runtime_webhook_panics_total{webhook=\"/validate-example-dev-v1-disk\"} 1",
    ] {
        assert!(scraped.contains(line), "{line}\n{scraped}");
    }
}

fn manifest(objects: &[DynamicObject], kind: &str, name: &str) -> Value {
    let objects = objects.iter().map(|object| serde_json::to_value(object).unwrap());
    let mut objects = objects.filter(|object| object["kind"] == kind && object["metadata"]["name"] == name);
    objects.next().unwrap_or_else(|| panic!("no {kind} {name}"))
}

#[test]
fn the_configurations_and_the_service_follow_from_the_declarations() {
    let objects = Manifests::of(&operator()).all("disks:1").unwrap();
    let validating = manifest(&objects, "ValidatingWebhookConfiguration", "disks");
    let mutating = manifest(&objects, "MutatingWebhookConfiguration", "disks");
    let names = |configuration: &Value| -> Vec<String> {
        let webhooks = configuration["webhooks"].as_array().unwrap().iter();
        webhooks.map(|webhook| webhook["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&validating), ["validate-disks.example.dev", "validate-users.disks.flyball.dev"]);
    assert_eq!(names(&mutating), ["mutate-disks.example.dev"]);
    let webhook = &validating["webhooks"][0];
    assert_eq!(
        webhook["clientConfig"]["service"],
        json!({ "namespace": "disks-system", "name": "disks-webhook", "path": VALIDATE, "port": 443 })
    );
    assert_eq!(
        webhook["rules"],
        json!([{ "apiGroups": ["example.dev"], "apiVersions": ["v1"], "resources": ["disks"],
            "operations": ["CREATE", "UPDATE", "DELETE"], "scope": "Namespaced" }])
    );
    assert_eq!(
        webhook["namespaceSelector"]["matchExpressions"],
        json!([{ "key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", "disks-system"] }])
    );
    let given = ["failurePolicy", "matchPolicy", "sideEffects", "timeoutSeconds"].map(|field| webhook[field].clone());
    assert_eq!(given, [json!("Fail"), json!("Equivalent"), json!("None"), json!(10)]);
    let service = manifest(&objects, "Service", "disks-webhook");
    assert_eq!(service["spec"]["ports"][0]["port"], 443);
    let deployment = manifest(&objects, "Deployment", "disks").to_string();
    assert!(deployment.contains(r#""containerPort":9443"#), "{deployment}");
    let role = manifest(&objects, "ClusterRole", "disks").to_string();
    assert!(role.contains("validatingwebhookconfigurations"), "{role}");
    manifest(&objects, "Role", "disks-webhook-ca");
}

#[test]
fn every_field_of_a_rule_can_be_set() {
    let operator = Operator::new("disks").validates(Validation::new(validate).named("all").rule(|rule| {
        rule.everywhere()
            .condition("not-nodes", "!('system:nodes' in request.userInfo.groups)")
            .failure_policy(FailurePolicy::Ignore)
            .match_policy(MatchPolicy::Exact)
            .side_effects(SideEffects::NoneOnDryRun)
            .timeout(Duration::from_secs(3))
    }));
    let objects = Manifests::of(&operator).webhooks();
    let webhook = &manifest(&objects, "ValidatingWebhookConfiguration", "disks")["webhooks"][0];
    assert_eq!(webhook["name"], "validate-all.example.dev");
    let given = ["failurePolicy", "matchPolicy", "sideEffects", "timeoutSeconds"].map(|field| webhook[field].clone());
    assert_eq!(given, [json!("Ignore"), json!("Exact"), json!("NoneOnDryRun"), json!(3)]);
    assert_eq!(webhook["namespaceSelector"], json!({}));
    assert_eq!(
        webhook["matchConditions"],
        json!([{ "name": "not-nodes", "expression": "!('system:nodes' in request.userInfo.groups)" }])
    );
}

#[tokio::test(start_paused = true)]
async fn declarations_that_cannot_work_are_refused_at_start() {
    for (operator, why) in [
        (
            operator().validates(Validation::new(validate)),
            "two webhooks are called validate-disks.example.dev: name one with `.named(…)`",
        ),
        (
            Operator::new("disks").validates(Validation::raw("users", restrict)),
            "webhook validate-users.disks.flyball.dev says no groups: add `.groups([…])` to its rule",
        ),
        (
            Operator::new("disks")
                .defaults(Defaulting::new(complete).rule(|rule| rule.timeout(Duration::from_secs(31)))),
            "webhook mutate-disks.example.dev has a timeout of 31s: expected 1 to 30 whole seconds",
        ),
    ] {
        let refusal = operator.start(client()).await.unwrap_err().to_string();
        assert!(refusal.contains(why), "{refusal}");
    }
}
