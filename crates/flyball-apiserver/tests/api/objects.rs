//! Objects come, change and go.

use crate::ask::Server;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{Api, DeleteParams, ListParams, ObjectMeta, PostParams};
use serde_json::json;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test(start_paused = true)]
async fn a_client_creates_reads_lists_replaces_and_deletes() {
    let maps: Api<ConfigMap> = Api::default_namespaced(Server::start().await.client());
    let map = |name: &str| ConfigMap {
        metadata: ObjectMeta { name: Some(name.into()), ..Default::default() },
        data: Some([("a".to_owned(), "1".to_owned())].into()),
        ..Default::default()
    };

    let created = maps.create(&PostParams::default(), &map("one")).await.unwrap();
    assert!(created.metadata.uid.is_some() && created.metadata.creation_timestamp.is_some());
    maps.create(&PostParams::default(), &map("two")).await.unwrap();
    let listed = maps.list(&ListParams::default()).await.unwrap();
    assert_eq!(
        listed.items.iter().map(|map| map.metadata.name.clone().unwrap()).collect::<Vec<_>>(),
        ["one", "two"]
    );

    let mut changed = maps.get("one").await.unwrap();
    changed.data = Some([("a".to_owned(), "2".to_owned())].into());
    let replaced = maps.replace("one", &PostParams::default(), &changed).await.unwrap();
    assert_ne!(replaced.metadata.resource_version, changed.metadata.resource_version);
    let stale = maps.replace("one", &PostParams::default(), &changed).await.unwrap_err();
    assert!(stale.to_string().contains("the object has been modified"), "{stale}");

    maps.delete("one", &DeleteParams::default()).await.unwrap().unwrap_right();
    assert!(maps.get_opt("one").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_new_object_gets_what_only_the_server_may_give() {
    let server = Server::start().await;
    let given =
        json!({"metadata": {"generateName": "map-", "uid": "mine", "creationTimestamp": "2020-01-01T00:00:00Z"}});

    let created = server.post(MAPS, given).await;

    assert_eq!(created.code, 201);
    let metadata = &created.body["metadata"];
    assert!(metadata["name"].as_str().unwrap().starts_with("map-"));
    assert_eq!(metadata["name"].as_str().unwrap().len(), 9);
    assert_ne!(metadata["uid"], "mine");
    assert_ne!(metadata["creationTimestamp"], "2020-01-01T00:00:00Z");
    assert_eq!(metadata["namespace"], "default");
}

#[tokio::test(start_paused = true)]
async fn a_write_that_changes_nothing_is_no_write() {
    let server = Server::start().await;
    let created = server.post(MAPS, json!({"metadata": {"name": "a"}, "data": {"k": "v"}})).await;

    tokio::time::advance(std::time::Duration::from_secs(60)).await;
    let again = server.put(&format!("{MAPS}/a"), created.body.clone()).await;

    assert_eq!(again.code, 200);
    assert_eq!(again.body, created.body);
}

#[tokio::test(start_paused = true)]
async fn a_new_pod_shows_its_defaults() {
    let pods: Api<Pod> = Api::default_namespaced(Server::start().await.client());
    let pod: Pod = serde_json::from_value(
        json!({"metadata": {"name": "web"}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}),
    )
    .unwrap();

    let created = pods.create(&PostParams::default(), &pod).await.unwrap();

    let spec = created.spec.unwrap();
    assert_eq!(spec.restart_policy.as_deref(), Some("Always"));
    assert_eq!(spec.containers[0].image_pull_policy.as_deref(), Some("Always"));
    assert_eq!(created.status.unwrap().phase.as_deref(), Some("Pending"));
    assert_eq!(created.metadata.generation, Some(1));
}

#[tokio::test(start_paused = true)]
async fn an_object_with_finalizers_stays_until_they_are_gone() {
    let server = Server::start().await;
    server
        .post(MAPS, json!({"metadata": {"name": "a", "finalizers": ["example.dev/wait"]}}))
        .await;

    let deleted = server.delete(&format!("{MAPS}/a"), json!(null)).await;
    assert_eq!(deleted.code, 200);
    assert_eq!(deleted.body["metadata"]["deletionGracePeriodSeconds"], 0);
    assert_eq!(server.get(&format!("{MAPS}/a")).await.code, 200);

    let let_go = server
        .patch("merge-patch+json", &format!("{MAPS}/a"), json!({"metadata": {"finalizers": null}}))
        .await;
    assert_eq!(let_go.code, 200);
    assert_eq!(server.get(&format!("{MAPS}/a")).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn namespaces_have_to_be_there_and_to_stay() {
    let server = Server::start().await;

    let missing = server
        .post("/api/v1/namespaces/nowhere/configmaps", json!({"metadata": {"name": "a"}}))
        .await;
    assert_eq!(
        (missing.code, missing.body["message"].as_str()),
        (404, Some("namespaces \"nowhere\" not found"))
    );

    server.post("/api/v1/namespaces", json!({"metadata": {"name": "brief"}})).await;
    let going = server.delete("/api/v1/namespaces/brief", json!(null)).await;
    assert_eq!(going.body["status"]["phase"], "Terminating");
    let late = server
        .post("/api/v1/namespaces/brief/configmaps", json!({"metadata": {"name": "a"}}))
        .await;
    assert_eq!(
        (late.code, late.body["details"]["causes"][0]["reason"].as_str()),
        (403, Some("NamespaceTerminating"))
    );

    let mut namespace = server.get("/api/v1/namespaces/brief").await.body;
    namespace["spec"]["finalizers"] = json!([]);
    assert_eq!(server.put("/api/v1/namespaces/brief/finalize", namespace).await.code, 200);
    assert_eq!(server.get("/api/v1/namespaces/brief").await.code, 404);

    let immortal = server.delete("/api/v1/namespaces/default", json!(null)).await;
    assert_eq!((immortal.code, immortal.body["reason"].as_str()), (403, Some("Forbidden")));
}

#[tokio::test(start_paused = true)]
async fn an_unknown_field_is_warned_of_or_refused_as_the_client_wishes() {
    let server = Server::start().await;
    let map = json!({"metadata": {"name": "a"}, "colour": "red"});

    let warned = server.post(&format!("{MAPS}?dryRun=All"), map.clone()).await;
    let refused = server.post(&format!("{MAPS}?fieldValidation=Strict"), map.clone()).await;
    let ignored = server.post(&format!("{MAPS}?fieldValidation=Ignore"), map).await;

    assert_eq!(
        (warned.code, &warned.headers["warning"]),
        (201, &"299 - \"unknown field \\\"colour\\\"\"".parse().unwrap())
    );
    let why =
        "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: unknown field \"colour\"";
    assert_eq!((refused.code, refused.body["message"].as_str()), (400, Some(why)));
    assert_eq!((ignored.code, ignored.headers.get("warning")), (201, None));
}
