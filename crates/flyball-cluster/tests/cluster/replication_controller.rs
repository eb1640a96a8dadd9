//! ReplicationControllers.

use crate::web::events;
use flyball_test::Cluster;
use k8s_openapi::api::core::v1::{Pod, ReplicationController};
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn a_replication_controller_keeps_its_pods() {
    let cluster = Cluster::start().await;
    let template = json!({
        "metadata": { "labels": { "app": "old" } }, "spec": { "containers": [{ "name": "c", "image": "i" }] },
    });
    let spec = json!({ "replicas": 2, "selector": { "app": "old" }, "template": template });
    let controller = json!({ "metadata": { "name": "old" }, "spec": spec });
    cluster.create::<ReplicationController>(serde_json::from_value(controller).unwrap()).await;
    let is_ready = |it: &ReplicationController| it.status.as_ref().is_some_and(|it| it.available_replicas == Some(2));
    cluster.until("old", is_ready).await;
    assert!(
        events(&cluster, "ReplicationController").await[0].starts_with("replication-controller SuccessfulCreate: ")
    );
    cluster.merge::<ReplicationController>("old", json!({ "spec": { "replicas": 0 } })).await;
    cluster
        .until("old", |it: &ReplicationController| it.status.as_ref().is_some_and(|it| it.replicas == 0))
        .await;
    cluster.delete::<ReplicationController>("old").await;
    cluster.until_gone::<ReplicationController>("old").await;
    assert!(cluster.list::<Pod>().await.iter().all(|pod| pod.metadata.deletion_timestamp.is_some()));
}
