//! Custom resources in several versions: each version shows what its own schema allows.

use crate::ask::Server;
use serde_json::{Value, json};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn version(name: &str, storage: bool, properties: &Value, status: &Value) -> Value {
    json!({
        "name": name, "served": true, "storage": storage, "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {
            "spec": {"type": "object", "properties": properties}, "status": status}}},
    })
}

fn definition(versions: &[Value]) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "toys.example.dev"},
        "spec": {"group": "example.dev", "scope": "Namespaced", "names": {"plural": "toys", "kind": "Toy"},
            "versions": versions},
    })
}

fn toys(version: &str) -> String {
    format!("/apis/example.dev/{version}/namespaces/default/toys")
}

fn toy(version: &str, spec: &Value) -> Value {
    json!({"apiVersion": format!("example.dev/{version}"), "kind": "Toy", "metadata": {"name": "a"}, "spec": spec})
}

#[tokio::test(start_paused = true)]
async fn a_version_shows_only_the_fields_of_its_own_schema() {
    let server = Server::start().await;
    let status = json!({"type": "object"});
    let text = json!({"type": "string"});
    let one = version("v1", true, &json!({"both": text, "old": {"type": "string", "default": "o"}}), &status);
    let two = version("v2", false, &json!({"both": text, "new": {"type": "string", "default": "n"}}), &status);
    assert_eq!(server.post(DEFINITIONS, definition(&[one, two])).await.code, 201);
    assert_eq!(server.post(&toys("v1"), toy("v1", &json!({"both": "b"}))).await.code, 201);

    let shown = server.get(&format!("{}/a", toys("v2"))).await.body;
    let list = server.get(&toys("v2")).await.body;
    let mut watch = server.watch(&format!("{}?watch=true", toys("v2"))).await;
    let event = watch.next().await.unwrap();
    let stored = server.get(&format!("{}/a", toys("v1"))).await.body;

    for object in [&shown, &list["items"][0], &event["object"]] {
        assert_eq!(object["apiVersion"], "example.dev/v2");
        assert_eq!(
            object["spec"],
            json!({"both": "b"}),
            "pruned by v2; defaults come from the stored version"
        );
    }
    assert_eq!(stored["spec"], json!({"both": "b", "old": "o"}));
}

#[tokio::test(start_paused = true)]
async fn defaults_below_status_are_there_after_a_create() {
    let server = Server::start().await;
    let status = json!({"type": "object", "default": {"observedGeneration": -1},
        "properties": {"observedGeneration": {"type": "integer"}}});
    let one = version("v1", true, &json!({}), &status);
    assert_eq!(server.post(DEFINITIONS, definition(&[one])).await.code, 201);

    let created = server.post(&toys("v1"), toy("v1", &json!({}))).await;

    assert_eq!(created.code, 201, "{}", created.body);
    let shown = server.get(&format!("{}/a", toys("v1"))).await.body;
    let list = server.get(&toys("v1")).await.body;
    let dry = server
        .post(
            &format!("{}?dryRun=All", toys("v1")),
            json!({"apiVersion": "example.dev/v1", "kind": "Toy", "metadata": {"name": "b"}}),
        )
        .await
        .body;
    for object in [&created.body, &shown, &list["items"][0], &dry] {
        assert_eq!(object["status"], json!({"observedGeneration": -1}));
    }
    assert_eq!(created.body["metadata"]["managedFields"].as_array().map(Vec::len), Some(1));
}

#[tokio::test(start_paused = true)]
async fn a_default_below_status_that_is_new_holds_for_what_is_stored() {
    let server = Server::start().await;
    let one = version("v1", true, &json!({}), &json!({"type": "object"}));
    server.post(DEFINITIONS, definition(&[one])).await;
    server.post(&toys("v1"), toy("v1", &json!({}))).await;
    let path = format!("{DEFINITIONS}/toys.example.dev");
    let mut changed = server.get(&path).await.body;
    changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"] = json!({"type": "object",
        "default": {"phase": "New"}, "properties": {"phase": {"type": "string"}}});

    assert_eq!(server.put(&path, changed).await.code, 200);

    let shown = server.get(&format!("{}/a", toys("v1"))).await.body;
    assert_eq!(shown["status"], json!({"phase": "New"}));
}
