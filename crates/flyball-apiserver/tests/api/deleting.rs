//! Deletions: preconditions, propagation and grace.

use crate::ask::Server;
use serde_json::{Value, json};
use std::time::Duration;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PODS: &str = "/api/v1/namespaces/default/pods";

#[tokio::test(start_paused = true)]
async fn preconditions_protect_another_object_of_the_same_name() {
    let server = Server::start().await;
    let map = server.post(MAPS, json!({"metadata": {"name": "a"}})).await.body;
    let path = format!("{MAPS}/a");

    let other = server.delete(&path, json!({"preconditions": {"uid": "other"}})).await;
    let stale = server.delete(&path, json!({"preconditions": {"resourceVersion": "1"}})).await;
    assert_eq!((other.code, stale.code), (409, 409));
    let uid = &map["metadata"]["uid"];
    let meant = server.delete(&path, json!({"preconditions": {"uid": uid}})).await;
    assert_eq!((meant.code, &meant.body["details"]["uid"]), (200, uid));
    assert_eq!(server.delete(&path, json!(null)).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn propagation_leaves_a_finalizer_for_the_collector() {
    let server = Server::start().await;
    for (policy, finalizer) in [("Foreground", "foregroundDeletion"), ("Orphan", "orphan")] {
        server.post(MAPS, json!({"metadata": {"name": policy.to_lowercase()}})).await;
        let path = format!("{MAPS}/{}", policy.to_lowercase());
        let deleted = server.delete(&path, json!({"propagationPolicy": policy})).await;
        assert_eq!((deleted.code, &deleted.body["metadata"]["finalizers"]), (200, &json!([finalizer])));
    }

    let background = server.delete(&format!("{MAPS}/orphan"), json!({"propagationPolicy": "Background"})).await;
    assert_eq!((background.code, &background.body["status"]), (200, &json!("Success")));
    let odd = server
        .delete(&format!("{MAPS}/foreground"), json!({"propagationPolicy": "Sideways"}))
        .await;
    assert_eq!(odd.code, 422);
}

#[tokio::test(start_paused = true)]
async fn a_pod_on_a_node_has_time_to_end() {
    let server = Server::start().await;
    let pod = |name: &str| json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "a:1"}]}});
    for name in ["placed", "waiting"] {
        server.post(PODS, pod(name)).await;
    }
    let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "placed"}, "target": {"kind": "Node", "name": "n"}});
    assert_eq!(server.post(&format!("{PODS}/placed/binding"), binding.clone()).await.code, 201);
    assert_eq!(server.post(&format!("{PODS}/placed/binding"), binding).await.code, 409);

    let waiting = server.delete(&format!("{PODS}/waiting"), json!(null)).await;
    assert_eq!((waiting.code, server.get(&format!("{PODS}/waiting")).await.code), (200, 404));

    let ending = server.delete(&format!("{PODS}/placed"), json!(null)).await.body;
    assert_eq!(ending["metadata"]["deletionGracePeriodSeconds"], 30);
    tokio::time::advance(Duration::from_secs(5)).await;
    let longer = server.delete(&format!("{PODS}/placed?gracePeriodSeconds=60"), json!(null)).await.body;
    assert_eq!(longer["metadata"]["deletionTimestamp"], ending["metadata"]["deletionTimestamp"]);
    let shorter = server.delete(&format!("{PODS}/placed?gracePeriodSeconds=10"), json!(null)).await.body;
    assert_eq!(shorter["metadata"]["deletionGracePeriodSeconds"], 10);
    assert_eq!(server.get(&format!("{PODS}/placed")).await.code, 200);
    assert_eq!(server.delete(&format!("{PODS}/placed?gracePeriodSeconds=0"), json!(null)).await.code, 200);
    assert_eq!(server.get(&format!("{PODS}/placed")).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn a_collection_is_deleted_by_its_labels() {
    let server = Server::start().await;
    for (name, app) in [("a", "web"), ("b", "web"), ("c", "db")] {
        server.post(MAPS, json!({"metadata": {"name": name, "labels": {"app": app}}})).await;
    }

    let deleted = server.delete(&format!("{MAPS}?labelSelector=app%3Dweb"), json!(null)).await;

    assert_eq!((deleted.code, deleted.body["items"].as_array().unwrap().len()), (200, 2));
    let left = server.get(MAPS).await.body;
    assert_eq!(left["items"].as_array().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_being_deleted_takes_no_new_finalizers() {
    let server = Server::start().await;
    server
        .post(MAPS, json!({"metadata": {"name": "a", "finalizers": ["example.dev/a"]}}))
        .await;
    let path = format!("{MAPS}/a");
    server.delete(&path, json!(null)).await;

    let added = server
        .patch(
            "merge-patch+json",
            &path,
            json!({"metadata": {"finalizers": ["example.dev/a", "example.dev/b"]}}),
        )
        .await;
    let revived = server
        .patch("merge-patch+json", &path, json!({"metadata": {"deletionTimestamp": Value::Null}}))
        .await;
    let again = server.post(MAPS, json!({"metadata": {"name": "a"}})).await;

    assert_eq!((added.code, revived.code), (422, 200));
    assert!(revived.body["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(again.body["message"], "object is being deleted: configmaps \"a\" already exists");
}
