//! Deployments, from the first pod to the last.

use crate::web::{change, condition, events, image, images, pods, rolled_out, sets, status, web};
use flyball_store::Store;
use flyball_test::Cluster;
use futures::StreamExt;
use k8s_openapi::api::{
    apps::v1::{Deployment, ReplicaSet},
    core::v1::Pod,
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams},
    runtime::watcher::{self, Event, watcher},
};
use serde_json::json;
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};
use tokio::time::sleep;

#[tokio::test(start_paused = true)]
async fn a_deployment_becomes_available() {
    let cluster = Cluster::start().await;
    cluster.create(web(3, "web:1", json!({}))).await;
    let web = rolled_out(&cluster).await;
    assert_eq!(condition(&web, "Available"), "True MinimumReplicasAvailable");
    assert_eq!(condition(&web, "Progressing"), "True NewReplicaSetAvailable");
    assert_eq!(web.annotations()["deployment.kubernetes.io/revision"], "1");
    assert_eq!((web.metadata.generation, status(&web).unavailable_replicas), (Some(1), None));
    let set = &Api::<ReplicaSet>::default_namespaced(cluster.client())
        .list(&ListParams::default())
        .await
        .unwrap()
        .items[0];
    let expected = format!(
        "deployment-controller ScalingReplicaSet: Scaled up replica set {} from 0 to 3",
        set.name_any()
    );
    assert_eq!(events(&cluster, "Deployment").await, [expected]);
    assert_eq!(events(&cluster, "ReplicaSet").await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_changed_image_rolls_without_a_gap() {
    let cluster = Cluster::start().await;
    let strategy = json!({ "rollingUpdate": { "maxSurge": 1, "maxUnavailable": 0 } });
    cluster.create(web(3, "web:1", json!({ "strategy": strategy }))).await;
    rolled_out(&cluster).await;
    change(&cluster, image("web:2")).await;
    let gapless = |web: &Deployment| {
        let status = status(web);
        assert!(status.available_replicas >= Some(3) && status.replicas <= Some(4), "{status:?}");
        crate::web::is_rolled_out(web)
    };
    let web = cluster.until("web", gapless).await;
    assert_eq!(images(&pods(&cluster).await), ["web:2"; 3]);
    assert_eq!(sets(&cluster).await, [("web:1".into(), 0), ("web:2".into(), 3)]);
    assert_eq!(web.annotations()["deployment.kubernetes.io/revision"], "2");
    let scaled = events(&cluster, "Deployment")
        .await
        .into_iter()
        .map(|event| event.split_once(" from ").unwrap().1.to_owned());
    let expected = ["0 to 3", "0 to 1", "3 to 2", "1 to 2", "2 to 1", "2 to 3", "1 to 0"];
    assert_eq!(scaled.collect::<Vec<_>>(), expected);
}

#[tokio::test(start_paused = true)]
async fn going_back_uses_the_old_set_again() {
    let cluster = Cluster::start().await;
    cluster.create(web(2, "web:1", json!({}))).await;
    rolled_out(&cluster).await;
    change(&cluster, image("web:2")).await;
    rolled_out(&cluster).await;
    change(&cluster, image("web:1")).await;
    let web = rolled_out(&cluster).await;
    assert_eq!(web.annotations()["deployment.kubernetes.io/revision"], "3");
    assert_eq!(sets(&cluster).await, [("web:2".into(), 0), ("web:1".into(), 2)]);
}

#[tokio::test(start_paused = true)]
async fn a_deployment_is_scaled_up_and_down() {
    let cluster = Cluster::start().await;
    cluster.create(web(1, "web:1", json!({}))).await;
    rolled_out(&cluster).await;
    for replicas in [5, 2, 0] {
        change(&cluster, json!({ "spec": { "replicas": replicas } })).await;
        let web = rolled_out(&cluster).await;
        assert_eq!(status(&web).replicas.unwrap_or_default(), replicas);
        assert_eq!(pods(&cluster).await.len() as i32, replicas);
    }
    assert_eq!(sets(&cluster).await, [("web:1".into(), 0)], "no new template, no new set");
}

#[tokio::test(start_paused = true)]
async fn recreating_never_runs_two_templates_at_once() {
    let cluster = Cluster::start().await;
    cluster.create(web(3, "web:1", json!({ "strategy": { "type": "Recreate" } }))).await;
    rolled_out(&cluster).await;
    let watched: Api<Pod> = Api::default_namespaced(cluster.client());
    let mut changes = std::pin::pin!(watcher(watched, watcher::Config::default()));
    let (mut pods, mut changed) = (BTreeMap::new(), false);
    while !pods.values().eq(&["web:2"; 3]) {
        match changes.next().await.unwrap().unwrap() {
            Event::Apply(pod) | Event::InitApply(pod) => {
                drop(pods.insert(pod.name_any(), images(std::slice::from_ref(&pod))[0].to_owned()))
            }
            Event::Delete(pod) => drop(pods.remove(&pod.name_any())),
            Event::Init => {}
            Event::InitDone if changed => panic!("the watch lists the pods anew and may have missed changes"),
            Event::InitDone => {
                changed = true;
                change(&cluster, image("web:2")).await;
            }
        }
        let images: BTreeSet<_> = pods.values().collect();
        assert!(images.len() <= 1, "{images:?}");
    }
    rolled_out(&cluster).await;
}

#[tokio::test(start_paused = true)]
async fn a_paused_deployment_waits_until_it_is_resumed() {
    let cluster = Cluster::start().await;
    cluster.create(web(2, "web:1", json!({}))).await;
    rolled_out(&cluster).await;
    change(&cluster, json!({ "spec": { "paused": true } })).await;
    cluster
        .until("web", |web: &Deployment| condition(web, "Progressing") == "Unknown DeploymentPaused")
        .await;
    change(&cluster, image("web:2")).await;
    change(&cluster, json!({ "spec": { "replicas": 3 } })).await;
    // Longer than a rollout may hang.
    sleep(Duration::from_secs(700)).await;
    assert_eq!(sets(&cluster).await, [("web:1".into(), 3)]);
    change(&cluster, json!({ "spec": { "paused": false } })).await;
    let web = rolled_out(&cluster).await;
    assert_eq!(condition(&web, "Progressing"), "True NewReplicaSetAvailable");
    assert_eq!(sets(&cluster).await, [("web:1".into(), 0), ("web:2".into(), 3)]);
}

#[tokio::test(start_paused = true)]
async fn a_rollout_that_hangs_says_so_when_its_time_is_over() {
    let cluster = Cluster::start().await;
    cluster.create(web(2, "web:1", json!({ "progressDeadlineSeconds": 60 }))).await;
    rolled_out(&cluster).await;
    let nowhere = json!({ "spec": { "template": { "spec": { "nodeSelector": { "disk": "tape" } } } } });
    change(&cluster, nowhere).await;
    let hangs = |web: &Deployment| condition(web, "Progressing") == "False ProgressDeadlineExceeded";
    let web = cluster.until("web", hangs).await;
    assert_eq!(condition(&web, "Available"), "True MinimumReplicasAvailable", "the old pods still serve");
    change(&cluster, json!({ "spec": { "template": { "spec": { "nodeSelector": null } } } })).await;
    let web = rolled_out(&cluster).await;
    assert_eq!(condition(&web, "Progressing"), "True NewReplicaSetAvailable");
}

#[tokio::test(start_paused = true)]
async fn history_is_kept_as_long_as_it_is_asked_for() {
    let cluster = Cluster::start().await;
    cluster.create(web(1, "web:1", json!({ "revisionHistoryLimit": 1 }))).await;
    rolled_out(&cluster).await;
    for version in ["web:2", "web:3"] {
        change(&cluster, image(version)).await;
        rolled_out(&cluster).await;
    }
    let first = Api::<ReplicaSet>::default_namespaced(cluster.client());
    while first.list(&ListParams::default()).await.unwrap().items.len() > 2 {
        sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(sets(&cluster).await, [("web:2".into(), 0), ("web:3".into(), 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_pod_counts_as_available_when_it_has_been_ready_long_enough() {
    let cluster = Cluster::start().await;
    let started = tokio::time::Instant::now();
    cluster.create(web(1, "web:1", json!({ "minReadySeconds": 300 }))).await;
    cluster.until("web", |web: &Deployment| status(web).ready_replicas == Some(1)).await;
    assert!(started.elapsed() < Duration::from_secs(10));
    rolled_out(&cluster).await;
    assert!(started.elapsed() > Duration::from_secs(299), "{:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_deleted_pod_is_replaced() {
    let cluster = Cluster::start().await;
    cluster.create(web(2, "web:1", json!({}))).await;
    rolled_out(&cluster).await;
    let victim = pods(&cluster).await.remove(0).name_any();
    cluster.delete::<Pod>(&victim).await;
    cluster.until_gone::<Pod>(&victim).await;
    rolled_out(&cluster).await;
    let left = pods(&cluster).await;
    assert!(left.len() == 2 && left.iter().all(|pod| pod.name_any() != victim));
}

#[tokio::test(start_paused = true)]
async fn a_set_of_the_same_name_is_avoided() {
    let cluster = Cluster::start().await;
    cluster.create(web(1, "web:1", json!({}))).await;
    rolled_out(&cluster).await;
    let sets: Api<ReplicaSet> = Api::default_namespaced(cluster.client());
    let own = sets.list(&ListParams::default()).await.unwrap().items.remove(0);
    cluster.delete::<Deployment>("web").await;
    cluster.until_gone::<ReplicaSet>(&own.name_any()).await;

    let stranger = json!({
        "metadata": { "name": own.name_any() },
        "spec": {
            "replicas": 0,
            "selector": { "matchLabels": { "app": "stranger" } },
            "template": {
                "metadata": { "labels": { "app": "stranger" } },
                "spec": { "containers": [{ "name": "c", "image": "i" }] },
            },
        },
    });
    cluster.create::<ReplicaSet>(serde_json::from_value(stranger).unwrap()).await;
    cluster.create(web(1, "web:1", json!({}))).await;
    let web = rolled_out(&cluster).await;
    assert_eq!(status(&web).collision_count, Some(1));
}

#[tokio::test(start_paused = true)]
async fn an_orphan_is_adopted_again() {
    let cluster = Cluster::start().await;
    cluster.create(web(2, "web:1", json!({}))).await;
    rolled_out(&cluster).await;
    let before: Vec<_> = pods(&cluster).await.iter().map(Pod::uid).collect();
    let deployments: Api<Deployment> = Api::default_namespaced(cluster.client());
    deployments.delete("web", &DeleteParams::orphan()).await.unwrap();
    cluster.until_gone::<Deployment>("web").await;
    assert_eq!(pods(&cluster).await.len(), 2);

    cluster.create(web(2, "web:1", json!({}))).await;
    rolled_out(&cluster).await;
    assert_eq!(pods(&cluster).await.iter().map(Pod::uid).collect::<Vec<_>>(), before);
    assert_eq!(sets(&cluster).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_rollout_goes_on_after_a_crash() {
    let store = Store::memory();
    let cluster = Cluster::on(store.clone()).await;
    cluster.create(web(4, "web:1", json!({}))).await;
    rolled_out(&cluster).await;
    change(&cluster, image("web:2")).await;
    cluster
        .until("web", |web: &Deployment| {
            status(web).updated_replicas < Some(4) && status(web).updated_replicas.is_some()
        })
        .await;
    drop(cluster);

    let cluster = Cluster::on(store).await;
    assert!(!crate::web::is_rolled_out(&cluster.get("web").await));
    rolled_out(&cluster).await;
    assert_eq!(images(&pods(&cluster).await), ["web:2"; 4]);
}
