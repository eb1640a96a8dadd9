//! Updates, patches and applies.

use crate::ask::Server;
use futures::future::join_all;
use serde_json::{Value, json};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const APPLY: &str = "apply-patch+yaml";

#[tokio::test(start_paused = true)]
async fn patches_without_a_version_never_lose_each_other() {
    let server = Server::start().await;
    server.post(MAPS, json!({"metadata": {"name": "a"}})).await;
    let path = format!("{MAPS}/a");

    let patches = (0..20).map(|number| {
        let (server, path) = (server.clone(), path.clone());
        async move {
            server
                .patch("merge-patch+json", &path, json!({"data": {number.to_string(): "x"}}))
                .await
                .code
        }
    });
    let codes = join_all(patches).await;

    assert!(codes.iter().all(|code| *code == 200));
    assert_eq!(server.get(&path).await.body["data"].as_object().unwrap().len(), 20);
}

#[tokio::test(start_paused = true)]
async fn a_version_in_a_patch_is_a_condition() {
    let server = Server::start().await;
    let map = server.post(MAPS, json!({"metadata": {"name": "a"}})).await.body;
    let version = map["metadata"]["resourceVersion"].clone();
    let path = format!("{MAPS}/a");
    let patch = |value: &str| json!({"metadata": {"resourceVersion": version}, "data": {"k": value}});

    assert_eq!(server.patch("merge-patch+json", &path, patch("1")).await.code, 200);
    assert_eq!(server.patch("merge-patch+json", &path, patch("2")).await.code, 409);
}

#[tokio::test(start_paused = true)]
async fn a_json_patch_may_test_for_what_is_absent() {
    let server = Server::start().await;
    server.post(MAPS, json!({"metadata": {"name": "a"}})).await;
    let path = format!("{MAPS}/a");
    let add = |name: &str| {
        json!([{"op": "test", "path": "/metadata/finalizers", "value": null},
            {"op": "add", "path": "/metadata/finalizers", "value": [name]}])
    };

    assert_eq!(server.patch("json-patch+json", &path, add("example.dev/a")).await.code, 200);
    assert_eq!(server.patch("json-patch+json", &path, add("example.dev/b")).await.code, 422);
}

#[tokio::test(start_paused = true)]
async fn an_apply_creates_changes_and_conflicts() {
    let server = Server::start().await;
    let map =
        |value: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": value}});
    let path = format!("{MAPS}/a");

    assert_eq!(server.patch(APPLY, &format!("{path}?fieldManager=one"), map("1")).await.code, 201);
    let same = server.patch(APPLY, &format!("{path}?fieldManager=one"), map("1")).await;
    let changed = server.patch(APPLY, &format!("{path}?fieldManager=one"), map("2")).await;
    assert_eq!((same.code, changed.code), (200, 200));
    assert_ne!(same.body["metadata"]["resourceVersion"], changed.body["metadata"]["resourceVersion"]);

    let conflict = server.patch(APPLY, &format!("{path}?fieldManager=two"), map("3")).await;
    assert_eq!(
        (conflict.code, conflict.body["details"]["causes"][0]["field"].as_str()),
        (409, Some(".data.k"))
    );
    let forced = server.patch(APPLY, &format!("{path}?fieldManager=two&force=true"), map("3")).await;
    assert_eq!((forced.code, &forced.body["data"]["k"]), (200, &json!("3")));

    let nobody = server.patch(APPLY, &path, map("4")).await;
    assert_eq!(
        (nobody.code, nobody.body["details"]["causes"][0]["field"].as_str()),
        (422, Some("fieldManager"))
    );
    let missing = server
        .patch(APPLY, "/api/v1/namespaces/nowhere/configmaps/a?fieldManager=one", map("1"))
        .await;
    assert_eq!(missing.code, 404);
}

#[tokio::test(start_paused = true)]
async fn some_kinds_are_created_by_an_update() {
    let server = Server::start().await;
    let lease = json!({"metadata": {"name": "a"}, "spec": {"holderIdentity": "me"}});

    let created = server
        .put("/apis/coordination.k8s.io/v1/namespaces/default/leases/a", lease.clone())
        .await;
    let again = server
        .put("/apis/coordination.k8s.io/v1/namespaces/default/leases/a", lease.clone())
        .await;
    let map = server.put(&format!("{MAPS}/a"), json!({"metadata": {"name": "a"}})).await;

    assert_eq!((created.code, again.code, map.code), (201, 422, 404), "a lease is never updated blindly");
}

#[tokio::test(start_paused = true)]
async fn a_rehearsal_changes_nothing() {
    let server = Server::start().await;
    let mut watch = server.watch(&format!("{MAPS}?watch=true")).await;

    let created = server.post(&format!("{MAPS}?dryRun=All"), json!({"metadata": {"name": "a"}})).await;
    assert_eq!((created.code, &created.body["metadata"]["resourceVersion"]), (201, &Value::Null));
    server.post(MAPS, json!({"metadata": {"name": "b"}})).await;
    let changed = server
        .put(&format!("{MAPS}/b?dryRun=All"), json!({"metadata": {"name": "b"}, "data": {"k": "v"}}))
        .await;
    assert_eq!((changed.code, &changed.body["data"]["k"]), (200, &json!("v")));
    assert_eq!(server.delete(&format!("{MAPS}/b?dryRun=All"), json!(null)).await.code, 200);
    let odd = server.post(&format!("{MAPS}?dryRun=Some"), json!({"metadata": {"name": "a"}})).await;
    assert_eq!(odd.code, 422);

    assert_eq!(server.get(&format!("{MAPS}/a")).await.code, 404);
    assert_eq!(server.get(&format!("{MAPS}/b")).await.body["data"], Value::Null);
    server.post(MAPS, json!({"metadata": {"name": "c"}})).await;
    assert_eq!((watch.words().await, watch.words().await), ("ADDED b".into(), "ADDED c".into()));
}

#[tokio::test(start_paused = true)]
async fn a_generation_counts_what_the_spec_says_and_nothing_else() {
    let server = Server::start().await;
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let template =
        json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "a:1"}]}});
    let spec = json!({"selector": {"matchLabels": {"app": "web"}}, "template": template});
    server.post(deployments, json!({"metadata": {"name": "web"}, "spec": spec})).await;
    let path = format!("{deployments}/web");
    let merge = async |path: &str, patch: Value| {
        server.patch("merge-patch+json", path, patch).await.body["metadata"]["generation"].clone()
    };

    assert_eq!(merge(&path, json!({"metadata": {"labels": {"a": "b"}}})).await, 1);
    assert_eq!(merge(&format!("{path}/status"), json!({"status": {"replicas": 1}})).await, 1);
    assert_eq!(merge(&path, json!({"spec": {"replicas": 3}})).await, 2);
    assert_eq!(merge(&format!("{path}/scale"), json!({"spec": {"replicas": 4}})).await, Value::Null);
    assert_eq!(server.get(&path).await.body["metadata"]["generation"], 3);
}

#[tokio::test(start_paused = true)]
async fn an_apply_that_changes_nothing_is_no_write() {
    let server = Server::start().await;
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let template =
        json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "a:1"}]}});
    let spec = json!({"selector": {"matchLabels": {"app": "web"}}, "template": template});
    server.post(deployments, json!({"metadata": {"name": "web"}, "spec": spec})).await;
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u", "controller": true});
    let config = json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 3},
        "metadata": {"name": "web", "namespace": "default", "ownerReferences": [owner]}});
    let path = format!("{deployments}/web?fieldManager=scaler&force=true");

    let first = server.patch(APPLY, &path, config.clone()).await;
    tokio::time::advance(std::time::Duration::from_secs(9)).await;
    let second = server.patch(APPLY, &path, config).await;

    assert_eq!((first.code, second.code), (200, 200), "{}", first.body);
    assert_eq!(first.body, second.body);
}
