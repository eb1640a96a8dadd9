//! CustomResourceDefinitions are followed by a controller: what a request wrote is served whatever becomes of the request.

use crate::ask::Server;
use crate::slow_store::{COMMIT, SlowStore};
use flyball_store::{Expect, Op, Store};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn definition(group: &str, plural: &str) -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": plural.to_uppercase()},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    })
}

/// Waits until a path answers with a code; each change of what is served is a reason to ask again.
async fn until(server: &Server, path: &str, code: u16) {
    let mut changes = server.0.registry().changes();
    while server.get(path).await.code != code {
        let changed = timeout(Duration::from_secs(60), changes.changed()).await;
        changed.unwrap_or_else(|_| panic!("{path} never answered {code}")).unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_definition_is_served_though_its_request_was_dropped() {
    for commits in 0..4 {
        let server = Server::over(Store::new(SlowStore(Store::memory()))).await;

        let patience = COMMIT * commits + COMMIT / 2;
        let request = timeout(patience, server.post(DEFINITIONS, definition("example.dev", "toys")));
        let answer = request.await.map(|answer| answer.code);

        if server.get(&format!("{DEFINITIONS}/toys.example.dev")).await.code == 200 {
            until(&server, "/apis/example.dev/v1/toys", 200).await;
        }
        assert!(answer.is_err() || answer == Ok(201), "{answer:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_definition_is_gone_though_its_request_was_dropped() {
    for commits in 0..4 {
        let server = Server::over(Store::new(SlowStore(Store::memory()))).await;
        server.post(DEFINITIONS, definition("example.dev", "toys")).await;
        let toys = "/apis/example.dev/v1/namespaces/default/toys";
        for name in ["a", "b", "c"] {
            let toy = json!({"apiVersion": "example.dev/v1", "kind": "TOYS", "metadata": {"name": name}});
            assert_eq!(server.post(toys, toy).await.code, 201);
        }

        let path = format!("{DEFINITIONS}/toys.example.dev");
        let answer = timeout(COMMIT * commits + COMMIT / 2, server.delete(&path, Value::Null)).await;

        assert!(answer.is_err() || answer.is_ok_and(|answer| answer.code == 200));
        let is_deleting = !server.get(&path).await.body["metadata"]["deletionTimestamp"].is_null();
        if is_deleting {
            until(&server, &path, 404).await;
            assert_eq!(server.get(toys).await.code, 404);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn deleting_many_objects_delays_no_other_definition() {
    let server = Server::over(Store::new(SlowStore(Store::memory()))).await;
    server.post(DEFINITIONS, definition("example.dev", "toys")).await;
    let toys = "/apis/example.dev/v1/namespaces/default/toys";
    for index in 0..600 {
        let toy = json!({"apiVersion": "example.dev/v1", "kind": "TOYS", "metadata": {"name": format!("toy-{index}")}});
        assert_eq!(server.post(toys, toy).await.code, 201);
    }
    let path = format!("{DEFINITIONS}/toys.example.dev");

    let deleting = tokio::spawn({
        let (server, path) = (server.clone(), path.clone());
        async move { server.delete(&path, Value::Null).await.code }
    });
    until_deleting(&server, &path).await;
    let start = Instant::now();
    assert_eq!(server.post(DEFINITIONS, definition("example.org", "games")).await.code, 201);

    assert!(start.elapsed() <= COMMIT * 4, "{:?}", start.elapsed());
    assert_eq!(server.get("/apis/example.org/v1/games").await.code, 200);
    assert_eq!(deleting.await.unwrap(), 200);
    until(&server, &path, 404).await;
}

async fn until_deleting(server: &Server, path: &str) {
    while server.get(path).await.body["metadata"]["deletionTimestamp"].is_null() {
        tokio::task::yield_now().await;
        tokio::time::advance(COMMIT / 10).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_definition_goes_when_its_last_object_does() {
    let store = Store::memory();
    let server = Server::over(store.clone()).await;
    server.post(DEFINITIONS, definition("example.dev", "toys")).await;
    let toy = json!({"apiVersion": "example.dev/v1", "kind": "TOYS",
        "metadata": {"name": "held", "finalizers": ["example.dev/wait"]}});
    server.post("/apis/example.dev/v1/namespaces/default/toys", toy).await;
    let path = format!("{DEFINITIONS}/toys.example.dev");
    assert_eq!(server.delete(&path, Value::Null).await.code, 200);
    assert_eq!(server.get(&path).await.code, 200);

    let op = Op::delete("example.dev/toys/default/held", Expect::Anything);
    store.commit(vec![op]).await.unwrap();

    until(&server, &path, 404).await;
}

#[tokio::test(start_paused = true)]
async fn a_name_that_becomes_free_is_accepted() {
    let server = Server::start().await;
    server.post(DEFINITIONS, definition("example.dev", "toys")).await;
    let mut second = definition("example.dev", "playthings");
    second["spec"]["names"]["kind"] = json!("TOYS");
    server.post(DEFINITIONS, second).await;
    assert_eq!(server.get("/apis/example.dev/v1/playthings").await.code, 404);

    server.delete(&format!("{DEFINITIONS}/toys.example.dev"), Value::Null).await;

    until(&server, "/apis/example.dev/v1/playthings", 200).await;
}

#[tokio::test(start_paused = true)]
async fn a_definition_changes_its_own_group_only() {
    let server = Server::start().await;
    server.post(DEFINITIONS, definition("example.org", "games")).await;
    let before = server.0.registry().served();

    server.post(DEFINITIONS, definition("example.dev", "toys")).await;

    let after = server.0.registry().served();
    for group in before.groups() {
        let same = after.group(&group.name).is_some_and(|after| Arc::ptr_eq(group, after));
        assert!(same, "{} was rebuilt", group.name);
    }
    assert!(after.group("example.dev").is_some() && before.group("example.dev").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_schema_that_is_invalid_now_is_never_ignored() {
    let store = Store::memory();
    let mut stored = definition("example.dev", "toys");
    stored["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = json!({"type": "object", "properties": {"spec": {}}});
    let names = stored["spec"]["names"].clone();
    stored["status"] = json!({"acceptedNames": names, "conditions": [
        {"type": "NamesAccepted", "status": "True"}, {"type": "Established", "status": "True"}]});
    let key = "apiextensions.k8s.io/customresourcedefinitions/toys.example.dev";
    store.commit(vec![Op::put(key, stored.to_string(), Expect::Absent)]).await.unwrap();

    let server = Server::over(store).await;

    let toy =
        json!({"apiVersion": "example.dev/v1", "kind": "TOYS", "metadata": {"name": "a"}, "spec": {"any": "thing"}});
    let refused = server.post("/apis/example.dev/v1/namespaces/default/toys", toy).await;
    assert_eq!(refused.code, 500, "{}", refused.body);
    let message = refused.body["message"].as_str().unwrap();
    assert!(message.contains("the server could not properly serve the CR schema"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_kind_whose_rule_does_not_compile_any_more_is_served() {
    let store = Store::memory();
    let mut stored = definition("example.dev", "toys");
    let spec = json!({"type": "object", "properties": {"n": {"type": "integer"}},
        "x-kubernetes-validations": [{"rule": "self.gone == 1"}]});
    stored["spec"]["versions"][0]["schema"]["openAPIV3Schema"] =
        json!({"type": "object", "properties": {"spec": spec}});
    let names = stored["spec"]["names"].clone();
    stored["status"] = json!({"acceptedNames": names, "conditions": [
        {"type": "NamesAccepted", "status": "True"}, {"type": "Established", "status": "True"}]});
    let key = "apiextensions.k8s.io/customresourcedefinitions/toys.example.dev";
    store.commit(vec![Op::put(key, stored.to_string(), Expect::Absent)]).await.unwrap();

    let server = Server::over(store).await;

    let toys = "/apis/example.dev/v1/namespaces/default/toys";
    let toy = |name: &str| json!({"apiVersion": "example.dev/v1", "kind": "TOYS", "metadata": {"name": name}});
    let created = server.post(toys, toy("plain")).await;
    assert_eq!(created.code, 201, "{}", created.body);
    let mut under_the_rule = toy("ruled");
    under_the_rule["spec"] = json!({"n": 1});
    let refused = server.post(toys, under_the_rule).await;
    assert_eq!(refused.code, 422, "{}", refused.body);
    let message = refused.body["message"].as_str().unwrap();
    assert!(message.contains("rule compile error: compilation failed: ERROR"), "{message}");
    assert_eq!(server.get(toys).await.body["items"].as_array().unwrap().len(), 1);
}
