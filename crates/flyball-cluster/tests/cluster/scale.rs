//! The work of the cluster grows with the number of objects, not with its square.

use crate::web::{status, web};
use flyball_cluster::Cluster;
use flyball_store::Store;
use futures::{StreamExt, TryStreamExt, future::join_all};
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api,
    api::PostParams,
    runtime::{WatchStreamExt, watcher},
};
use serde_json::json;
use std::collections::BTreeSet;

/// How many objects the controllers read from their caches to bring so many Deployments of two pods up, per pod.
async fn reads_per_pod(deployments: usize) -> u64 {
    let cluster = Cluster::start(Store::memory()).await.unwrap();
    let api: Api<Deployment> = Api::namespaced(cluster.client(), "default");
    let create = |index: usize| {
        let mut deployment = web(2, "web:1", json!({}));
        let name = format!("web-{index}");
        let labels = json!({ "app": name });
        let spec = deployment.spec.as_mut().unwrap();
        spec.selector.match_labels = serde_json::from_value(labels.clone()).unwrap();
        spec.template.metadata.as_mut().unwrap().labels = serde_json::from_value(labels).unwrap();
        deployment.metadata.name = Some(name);
        let api = api.clone();
        async move { api.create(&PostParams::default(), &deployment).await.unwrap() }
    };
    join_all((0..deployments).map(create)).await;
    let mut available = BTreeSet::new();
    let changes = watcher(api, watcher::Config::default()).applied_objects();
    let mut changes = std::pin::pin!(changes.into_stream().boxed());
    while available.len() < deployments {
        let deployment = changes.try_next().await.unwrap().unwrap();
        if status(&deployment).available_replicas == Some(2) {
            available.insert(deployment.metadata.name);
        }
    }
    let watches = cluster.operators().iter().flat_map(|operator| operator.cache().watches());
    watches.map(|watch| watch.reads).sum::<u64>() / (2 * deployments as u64)
}

#[tokio::test(start_paused = true)]
async fn reads_per_pod_do_not_grow_with_the_number_of_pods() {
    let (few, many) = (reads_per_pod(10).await, reads_per_pod(40).await);
    assert!(many < 150, "{many} objects were read per pod");
    assert!(many <= few + few / 4, "{few} objects were read per pod of 20, {many} per pod of 80");
}
