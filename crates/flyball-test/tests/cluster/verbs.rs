//! What a test says, and what becomes of it.

use flyball_test::Cluster;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use serde_json::json;

fn map(name: &str, value: &str) -> ConfigMap {
    serde_json::from_value(json!({ "metadata": { "name": name }, "data": { "value": value } })).unwrap()
}

#[tokio::test(start_paused = true)]
async fn objects_are_created_applied_and_deleted() {
    let cluster = Cluster::start().await;
    let created = cluster.create(map("ada", "1")).await;
    assert_eq!(created.metadata.namespace.as_deref(), Some("default"));

    let applied = cluster.apply(map("ada", "2")).await;
    assert_eq!(applied.metadata.uid, created.metadata.uid);
    assert_eq!(cluster.get::<ConfigMap>("ada").await.data.unwrap()["value"], "2");

    cluster.delete::<ConfigMap>("ada").await;
    cluster.until_gone::<ConfigMap>("ada").await;
}

#[tokio::test(start_paused = true)]
async fn other_namespaces_are_named_before_a_slash() {
    let cluster = Cluster::start().await;
    cluster
        .create::<Namespace>(serde_json::from_value(json!({ "metadata": { "name": "prod" } })).unwrap())
        .await;
    let mut there = map("ada", "1");
    there.metadata.namespace = Some("prod".into());
    cluster.create(there).await;
    assert_eq!(cluster.get::<ConfigMap>("prod/ada").await.data.unwrap()["value"], "1");
    assert_eq!(cluster.get::<Namespace>("prod").await.metadata.name.as_deref(), Some("prod"));
}

#[tokio::test(start_paused = true)]
async fn until_sees_what_becomes_of_an_object() {
    let cluster = Cluster::start().await;
    let (client, later) = (cluster.client(), std::time::Duration::from_secs(300));
    let writer = tokio::spawn(async move {
        tokio::time::sleep(later).await;
        let maps: kube::Api<ConfigMap> = kube::Api::default_namespaced(client);
        maps.create(&Default::default(), &map("ada", "late")).await.unwrap();
    });
    let seen = cluster.until("ada", |map: &ConfigMap| map.data.is_some()).await;
    assert_eq!(seen.data.unwrap()["value"], "late");
    writer.await.unwrap();
}
