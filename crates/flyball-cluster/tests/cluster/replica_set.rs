//! ReplicaSets on their own.

use crate::web::pods;
use flyball_test::Cluster;
use k8s_openapi::api::{apps::v1::ReplicaSet, core::v1::Pod};
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

fn set(replicas: i32) -> ReplicaSet {
    let template = json!({
        "metadata": { "labels": { "app": "web" } },
        "spec": { "containers": [{ "name": "web", "image": "web:1" }] },
    });
    let spec = json!({ "replicas": replicas, "selector": { "matchLabels": { "app": "web" } }, "template": template });
    serde_json::from_value(json!({ "metadata": { "name": "web" }, "spec": spec })).unwrap()
}

fn has(ready: i32) -> impl Fn(&ReplicaSet) -> bool {
    move |set| {
        let status = set.status.clone().unwrap_or_default();
        status.ready_replicas.unwrap_or_default() == ready && status.terminating_replicas == Some(0)
    }
}

async fn patch_pod(cluster: &Cluster, name: &str, patch: Value) {
    let pods: Api<Pod> = Api::default_namespaced(cluster.client());
    pods.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_relabelled_is_let_go_and_replaced() {
    let cluster = Cluster::start().await;
    cluster.create(set(2)).await;
    cluster.until("web", has(2)).await;
    let name = pods(&cluster).await.remove(0).name_any();
    patch_pod(&cluster, &name, json!({ "metadata": { "labels": { "app": "other" } } })).await;
    cluster.until(&name, |pod: &Pod| pod.owner_references().is_empty()).await;
    cluster.until("web", |set: &ReplicaSet| has(2)(set)).await;
    while pods(&cluster).await.len() < 3 {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_fits_the_selector_is_taken_in() {
    let cluster = Cluster::start().await;
    let metadata = json!({ "name": "stray", "labels": { "app": "web" } });
    let spec = json!({ "containers": [{ "name": "web", "image": "web:0" }] });
    cluster
        .create::<Pod>(serde_json::from_value(json!({ "metadata": metadata, "spec": spec })).unwrap())
        .await;
    cluster.create(set(2)).await;
    cluster.until("web", has(2)).await;
    let stray = cluster.until("stray", |pod: &Pod| !pod.owner_references().is_empty()).await;
    assert_eq!(stray.owner_references()[0].name, "web");
    assert_eq!(pods(&cluster).await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn of_too_many_pods_the_cheapest_goes() {
    let cluster = Cluster::start().await;
    cluster.create(set(3)).await;
    cluster.until("web", has(3)).await;
    let names: Vec<_> = pods(&cluster).await.iter().map(Pod::name_any).collect();
    let cost = json!({ "metadata": { "annotations": { "controller.kubernetes.io/pod-deletion-cost": "-5" } } });
    patch_pod(&cluster, &names[1], cost).await;
    let sets: Api<ReplicaSet> = Api::default_namespaced(cluster.client());
    let fewer = json!({ "spec": { "replicas": 2 } });
    sets.patch("web", &PatchParams::default(), &Patch::Merge(fewer)).await.unwrap();
    cluster.until_gone::<Pod>(&names[1]).await;
    assert_eq!(pods(&cluster).await.len(), 2);
}
