//! Conversion webhooks: custom resources in two versions, between which a webhook moves a field. No socket is opened.

use crate::ask::{Answer, Server};
use crate::hook::{Hook, MUTATING, configuration, patch, webhook, with};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn version(name: &str, storage: bool, field: &str) -> Value {
    let spec = json!({"type": "object", "properties": {field: {"type": "string"}}});
    json!({
        "name": name, "served": true, "storage": storage, "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": {"type": "object",
            "x-kubernetes-preserve-unknown-fields": true}}}},
    })
}

/// Toys: `spec.one` in v1, `spec.two` in v2.
fn definition(storage: &str) -> Value {
    let service = json!({"namespace": "default", "name": "converter", "path": "/convert"});
    json!({
        "metadata": {"name": "toys.example.dev"},
        "spec": {"group": "example.dev", "scope": "Namespaced", "names": {"plural": "toys", "kind": "Toy"},
            "conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"],
                "clientConfig": {"service": service}}},
            "versions": [version("v1", storage == "v1", "one"), version("v2", storage == "v2", "two")]},
    })
}

fn toys(version: &str) -> String {
    format!("/apis/example.dev/{version}/namespaces/default/toys")
}

fn toy(version: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": format!("example.dev/{version}"), "kind": "Toy", "metadata": {"name": name}, "spec": spec})
}

fn convert(object: &Value, desired: &Value) -> Value {
    let mut object = object.clone();
    let (from, to) = if desired == "example.dev/v2" {
        ("one", "two")
    } else {
        ("two", "one")
    };
    if let Some(spec) = object["spec"].as_object_mut()
        && let Some(value) = spec.remove(from)
    {
        spec.insert(to.to_owned(), value);
    }
    object["apiVersion"] = desired.clone();
    object
}

/// The answer of a converter that does it right.
fn converted(review: &Value) -> Value {
    let request = &review["request"];
    let objects = request["objects"].as_array().unwrap().iter();
    let objects: Vec<Value> = objects.map(|object| convert(object, &request["desiredAPIVersion"])).collect();
    json!({"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1",
        "response": {"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": objects}})
}

/// Makes an answer wrong.
type Change = fn(&mut Value);

async fn server() -> (Server, Hook) {
    let server = Server::start().await;
    let hook = Hook::answering(&server, "converter", converted);
    let created = server.post(DEFINITIONS, definition("v1")).await;
    assert_eq!(created.code, 201, "{}", created.body);
    (server, hook)
}

fn expect(answer: &Answer, code: u16, spec: Value) {
    assert_eq!((answer.code, &answer.body["spec"]), (code, &spec), "{}", answer.body);
}

#[tokio::test(start_paused = true)]
async fn every_verb_converts() {
    let (server, _hook) = server().await;
    let (one, two) = (|text: &str| json!({"one": text}), |text: &str| json!({"two": text}));

    expect(&server.post(&toys("v1"), toy("v1", "a", one("x"))).await, 201, one("x"));
    expect(&server.get(&format!("{}/a", toys("v2"))).await, 200, two("x"));
    expect(&server.post(&toys("v2"), toy("v2", "b", two("y"))).await, 201, two("y"));
    expect(&server.get(&format!("{}/b", toys("v1"))).await, 200, one("y"));
    let dry = server.post(&format!("{}?dryRun=All", toys("v2")), toy("v2", "c", two("z"))).await;
    expect(&dry, 201, two("z"));
    let put = server.put(&format!("{}/a", toys("v2")), toy("v2", "a", two("p"))).await;
    assert_eq!(put.code, 422, "a resource version is required: {}", put.body);
    let version = server.get(&format!("{}/a", toys("v2"))).await.body["metadata"]["resourceVersion"].clone();
    let mut object = toy("v2", "a", two("p"));
    object["metadata"]["resourceVersion"] = version;
    expect(&server.put(&format!("{}/a", toys("v2")), object).await, 200, two("p"));
    let patched = server
        .patch("merge-patch+json", &format!("{}/a", toys("v2")), json!({"spec": two("m")}))
        .await;
    expect(&patched, 200, two("m"));
    let applied = format!("{}/a?fieldManager=me&force=true", toys("v2"));
    expect(&server.patch("apply-patch+yaml", &applied, toy("v2", "a", two("s"))).await, 200, two("s"));
    expect(&server.get(&format!("{}/a", toys("v1"))).await, 200, one("s"));
    let status = format!("{}/a/status", toys("v2"));
    let status = server.patch("merge-patch+json", &status, json!({"status": {"n": 1}})).await;
    assert_eq!((status.code, &status.body["status"]["n"]), (200, &json!(1)), "{}", status.body);
    assert_eq!(server.delete(&format!("{}/a", toys("v2")), Value::Null).await.code, 200);
    assert_eq!(server.get(&format!("{}/a", toys("v1"))).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn a_list_is_converted_in_one_review_and_objects_of_the_version_are_not_sent() {
    let (server, hook) = server().await;
    for name in ["a", "b", "c"] {
        server.post(&toys("v1"), toy("v1", name, json!({"one": name}))).await;
    }
    hook.requests();
    let list = server.get(&toys("v2")).await.body;

    let specs: Vec<&Value> = list["items"].as_array().unwrap().iter().map(|item| &item["spec"]["two"]).collect();
    assert_eq!(specs, ["a", "b", "c"]);
    let requests = hook.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0]["objects"].as_array().unwrap().len(), 3);

    let selected = server.get(&format!("{}?fieldSelector=metadata.name%3Db&limit=1", toys("v2"))).await.body;
    assert_eq!(selected["items"][0]["spec"]["two"], "b");
    hook.requests();
    assert_eq!(server.get(&toys("v1")).await.body["items"].as_array().unwrap().len(), 3);
    assert_eq!(hook.requests(), Vec::<Value>::new());
}

#[tokio::test(start_paused = true)]
async fn a_change_is_converted_once_for_all_watches_of_a_version() {
    let (server, hook) = server().await;
    server.post(&toys("v1"), toy("v1", "a", json!({"one": "x"}))).await;
    let path = format!("{}?watch=true", toys("v2"));
    let mut watches = [server.watch(&path).await, server.watch(&path).await];
    for watch in &mut watches {
        assert_eq!(watch.next().await.unwrap()["object"]["spec"]["two"], "x");
    }
    let mut selecting = server.watch(&format!("{path}&labelSelector=l")).await;
    hook.requests();

    let labels = json!({"metadata": {"labels": {"l": "1"}}});
    server.patch("merge-patch+json", &format!("{}/a", toys("v1")), labels).await;
    for watch in &mut watches {
        let event = watch.next().await.unwrap();
        assert_eq!((&event["type"], &event["object"]["spec"]["two"]), (&json!("MODIFIED"), &json!("x")));
    }
    assert_eq!(hook.requests().len(), 1);

    assert_eq!(selecting.words().await, "ADDED a");
    server
        .patch("merge-patch+json", &format!("{}/a", toys("v1")), json!({"metadata": {"labels": null}}))
        .await;
    let left = selecting.next().await.unwrap();
    let version = server.get(&format!("{}/a", toys("v1"))).await.body["metadata"]["resourceVersion"].clone();
    assert_eq!(
        (&left["type"], &left["object"]["metadata"]["resourceVersion"]),
        (&json!("DELETED"), &version)
    );
}

#[tokio::test(start_paused = true)]
async fn objects_stay_readable_when_the_storage_version_changes() {
    let (server, hook) = server().await;
    server.post(&toys("v1"), toy("v1", "a", json!({"one": "x"}))).await;
    let mut changed = server.get(&format!("{DEFINITIONS}/toys.example.dev")).await.body;
    changed["spec"] = definition("v2")["spec"].clone();
    let changed = server.put(&format!("{DEFINITIONS}/toys.example.dev"), changed).await;
    assert_eq!(changed.code, 200, "{}", changed.body);
    server.post(&toys("v1"), toy("v1", "b", json!({"one": "y"}))).await;
    hook.requests();

    let list = server.get(&toys("v2")).await.body;

    let specs: Vec<&Value> = list["items"].as_array().unwrap().iter().map(|item| &item["spec"]["two"]).collect();
    assert_eq!(specs, ["x", "y"]);
    let objects: Vec<usize> = hook.requests().iter().map(|it| it["objects"].as_array().unwrap().len()).collect();
    assert_eq!(objects, [1], "only the object of the old version is sent");
}

#[tokio::test(start_paused = true)]
async fn answers_of_converters_are_checked() {
    let server = Server::start().await;
    let change: Arc<Mutex<Change>> = Arc::new(Mutex::new(|_| {}));
    let apply = change.clone();
    let _hook = Hook::answering(&server, "converter", move |review| {
        let mut answer = converted(review);
        (apply.lock().unwrap())(&mut answer["response"]);
        answer
    });
    server.post(DEFINITIONS, definition("v1")).await;
    server.post(&toys("v1"), toy("v1", "a", json!({"one": "x"}))).await;
    let cases: [(Change, &str); 9] = [
        (|it| it["uid"] = "u".into(), "failed: expected response.uid="),
        (|it| it["result"] = json!({"status": "Failure", "message": "no"}), "failed: no"),
        (|it| it["result"] = json!({}), "failed: response.result.status was '', not 'Success'"),
        (|it| it["convertedObjects"] = json!([]), "returned 0 objects, expected 1"),
        (
            |it| it["convertedObjects"][0]["apiVersion"] = "example.dev/v1".into(),
            "returned invalid object at index 0: invalid groupVersion (expected example.dev/v2, received example.dev/v1)",
        ),
        (
            |it| it["convertedObjects"][0]["kind"] = "Other".into(),
            "returned invalid object at index 0: invalid kind (expected Toy, received Other)",
        ),
        (
            |it| it["convertedObjects"][0]["metadata"]["name"] = "b".into(),
            "returned invalid object: must have the same name: a != b",
        ),
        (
            |it| it["convertedObjects"][0]["metadata"]["labels"] = json!({"k": 1}),
            "returned invalid metadata: metadata.labels[k] must be a string, but is int64 in converted object",
        ),
        (
            |it| it["convertedObjects"][0]["metadata"]["labels"] = json!({"k": "-"}),
            "returned invalid metadata: metadata.labels: Invalid value: \"-\"",
        ),
    ];
    for (wrong, expected) in cases {
        *change.lock().unwrap() = wrong;
        let answer = server.get(&format!("{}/a", toys("v2"))).await;
        let expected = format!("conversion webhook for example.dev/v1, Kind=Toy {expected}");
        let message = answer.body["message"].as_str().unwrap_or_default();
        assert!(answer.code == 500 && message.starts_with(&expected), "{expected}: {}", answer.body);
    }
    *change.lock().unwrap() = |it| {
        let metadata = &mut it["convertedObjects"][0]["metadata"];
        *metadata = json!({"name": "a", "namespace": "default", "uid": metadata["uid"], "labels": {"k": "v"}});
    };
    let shown = server.get(&format!("{}/a", toys("v2"))).await.body;
    assert_eq!(shown["metadata"]["labels"]["k"], "v");
    assert!(
        shown["metadata"]["resourceVersion"].is_string(),
        "only labels and annotations are taken over"
    );
}

#[tokio::test(start_paused = true)]
async fn a_converter_that_cannot_be_called_fails_requests_of_other_versions_only() {
    let (server, hook) = server().await;
    server.post(&toys("v1"), toy("v1", "a", json!({"one": "x"}))).await;
    drop(hook);

    let failed = server.get(&format!("{}/a", toys("v2"))).await;

    let why = "conversion webhook for example.dev/v1, Kind=Toy failed: Post \
               \"https://converter.default.svc:443/convert?timeout=30s\": service \"converter\" not found";
    assert_eq!((failed.code, &failed.body["message"]), (500, &json!(why)));
    assert_eq!(server.get(&toys("v2")).await.code, 500);
    assert_eq!(server.post(&toys("v2"), toy("v2", "b", json!({}))).await.code, 500);
    assert_eq!(server.get(&toys("v1")).await.code, 200);
    assert_eq!(server.post(&toys("v1"), toy("v1", "b", json!({}))).await.code, 201);
    let deleted = server.delete(&format!("{DEFINITIONS}/toys.example.dev"), Value::Null).await;
    assert_eq!(deleted.code, 200, "objects are removed without a conversion");
    assert_eq!(server.get(&format!("{DEFINITIONS}/toys.example.dev")).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn an_admission_webhook_of_another_version_sees_converted_objects() {
    let (server, _hook) = server().await;
    let admission = Hook::admitting(&server, "a", |_| {
        patch(json!([{"op": "replace", "path": "/spec/two", "value": "changed"}]))
    });
    let rules =
        json!([{"operations": ["*"], "apiGroups": ["example.dev"], "apiVersions": ["v2"], "resources": ["toys"]}]);
    let of_v2 = with(webhook("a", json!([])), json!({"rules": rules}));
    server.post(MUTATING, configuration("a", json!([of_v2]))).await;

    let created = server.post(&toys("v1"), toy("v1", "a", json!({"one": "x"}))).await;

    expect(&created, 201, json!({"one": "changed"}));
    assert_eq!(admission.requests()[0]["object"]["spec"], json!({"two": "x"}));
}
