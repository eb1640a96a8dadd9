//! StatefulSets: order, revisions, partitions and volumes.

use crate::web::events;
use flyball_test::{Builder, Cluster};
use k8s_openapi::api::{
    apps::v1::{ControllerRevision, StatefulSet, StatefulSetStatus},
    core::v1::{PersistentVolumeClaim, Pod},
};
use kube::ResourceExt;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;

fn db(replicas: i32, spec: Value) -> StatefulSet {
    let template = json!({
        "metadata": { "labels": { "app": "db" } },
        "spec": { "containers": [{ "name": "db", "image": "db:1" }] },
    });
    let selector = json!({ "matchLabels": { "app": "db" } });
    let mut full = json!({ "replicas": replicas, "serviceName": "db", "selector": selector, "template": template });
    full.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    serde_json::from_value(json!({ "metadata": { "name": "db" }, "spec": full })).unwrap()
}

fn status(set: &StatefulSet) -> StatefulSetStatus {
    set.status.clone().unwrap_or_default()
}

fn is_settled(set: &StatefulSet) -> bool {
    let (status, wanted) = (status(set), set.spec.as_ref().unwrap().replicas.unwrap());
    status.observed_generation == set.metadata.generation
        && status.replicas == wanted
        && status.available_replicas == Some(wanted)
        && status.updated_replicas.unwrap_or_default() == wanted
}

fn image(image: &str) -> Value {
    json!({ "spec": { "template": { "spec": { "containers": [{ "name": "db", "image": image }] } } } })
}

async fn images(cluster: &Cluster) -> Vec<String> {
    let pods = cluster.list::<Pod>().await;
    let image = |pod: &Pod| pod.spec.as_ref().unwrap().containers[0].image.clone().unwrap();
    pods.iter().map(image).collect()
}

fn with_volume(policy: Value) -> Value {
    let claim = json!({
        "metadata": { "name": "data" },
        "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } },
    });
    json!({ "volumeClaimTemplates": [claim], "persistentVolumeClaimRetentionPolicy": policy })
}

#[tokio::test(start_paused = true)]
async fn pods_come_one_after_the_other_and_go_in_reverse() {
    let cluster = Cluster::start().await;
    cluster.create(db(3, json!({}))).await;
    let set = cluster.until("db", is_settled).await;
    assert_eq!(status(&set).current_revision, status(&set).update_revision);
    let pods = cluster.list::<Pod>().await;
    let started = |pod: &Pod| pod.status.as_ref().unwrap().start_time.clone().unwrap().0;
    assert!(pods.windows(2).all(|pair| started(&pair[0]) <= started(&pair[1])), "{pods:?}");
    let first = &pods[0];
    assert_eq!(first.spec.as_ref().unwrap().hostname.as_deref(), Some("db-0"));
    assert_eq!(first.spec.as_ref().unwrap().subdomain.as_deref(), Some("db"));
    let labels = first.labels();
    assert_eq!(labels["statefulset.kubernetes.io/pod-name"], "db-0");
    assert_eq!(labels["apps.kubernetes.io/pod-index"], "0");
    assert_eq!(Some(&labels["controller-revision-hash"]), status(&set).update_revision.as_ref());

    cluster.merge::<StatefulSet>("db", json!({ "spec": { "replicas": 1 } })).await;
    cluster.until_gone::<Pod>("db-1").await;
    cluster.until("db", is_settled).await;
    let expected = [
        "Create Pod db-0",
        "Create Pod db-1",
        "Create Pod db-2",
        "Delete Pod db-2",
        "Delete Pod db-1",
    ]
    .map(|note| {
        let reason = format!("Successful{}", note.split(' ').next().unwrap());
        format!("statefulset-controller {reason}: {note} in StatefulSet db successful")
    });
    assert_eq!(events(&cluster, "StatefulSet").await, expected);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_not_ready_holds_the_others_up() {
    let builder =
        Builder::default().pods(|pod| (pod.name_any() == "db-1").then(|| "unready: [{ until: 10m }]".parse().unwrap()));
    let cluster = Cluster::build(builder).await;
    cluster.create(db(3, json!({}))).await;
    cluster
        .until("db-1", |pod: &Pod| pod.status.as_ref().unwrap().phase.as_deref() == Some("Running"))
        .await;
    sleep(Duration::from_secs(300)).await;
    assert_eq!(cluster.list::<Pod>().await.len(), 2);
    cluster.until("db", is_settled).await;
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_parallel_set_come_at_once() {
    let builder = Builder::default().pods(|_| Some("unready: [{}]".parse().unwrap()));
    let cluster = Cluster::build(builder).await;
    cluster.create(db(3, json!({ "podManagementPolicy": "Parallel" }))).await;
    cluster.until("db", |set: &StatefulSet| status(set).replicas == 3).await;
    cluster.merge::<StatefulSet>("db", json!({ "spec": { "replicas": 0 } })).await;
    cluster.until("db", |set: &StatefulSet| status(set).replicas == 0).await;
}

#[tokio::test(start_paused = true)]
async fn a_new_template_rolls_from_the_highest_ordinal_down_to_the_partition() {
    let cluster = Cluster::start().await;
    let strategy = json!({ "type": "RollingUpdate", "rollingUpdate": { "partition": 2 } });
    cluster.create(db(3, json!({ "updateStrategy": strategy }))).await;
    cluster.until("db", is_settled).await;
    cluster.merge::<StatefulSet>("db", image("db:2")).await;
    let set = cluster
        .until("db", |set: &StatefulSet| {
            status(set).updated_replicas == Some(1) && status(set).ready_replicas == Some(3)
        })
        .await;
    assert_eq!(images(&cluster).await, ["db:1", "db:1", "db:2"]);
    assert_ne!(status(&set).current_revision, status(&set).update_revision);
    assert_eq!(status(&set).current_replicas, Some(2));

    cluster.delete::<Pod>("db-0").await;
    cluster.until("db", |set: &StatefulSet| status(set).ready_replicas == Some(2)).await;
    cluster.until("db", |set: &StatefulSet| status(set).ready_replicas == Some(3)).await;
    assert_eq!(
        images(&cluster).await,
        ["db:1", "db:1", "db:2"],
        "below the partition the old template stays"
    );

    let all = json!({ "spec": { "updateStrategy": { "rollingUpdate": { "partition": 0 } } } });
    cluster.merge::<StatefulSet>("db", all).await;
    let set = cluster
        .until("db", |set: &StatefulSet| {
            is_settled(set) && status(set).current_revision == status(set).update_revision
        })
        .await;
    assert_eq!(images(&cluster).await, ["db:2"; 3]);
    assert_eq!(cluster.list::<ControllerRevision>().await.len(), 2, "{set:?}");
}

#[tokio::test(start_paused = true)]
async fn going_back_uses_the_old_revision_again() {
    let cluster = Cluster::start().await;
    cluster.create(db(1, json!({ "revisionHistoryLimit": 1 }))).await;
    let first = status(&cluster.until("db", is_settled).await).update_revision;
    cluster.merge::<StatefulSet>("db", image("db:2")).await;
    cluster.until("db", is_settled).await;
    cluster.merge::<StatefulSet>("db", image("db:1")).await;
    let again = status(&cluster.until("db", is_settled).await).update_revision;
    assert_eq!(first, again);
    let revision = cluster.get::<ControllerRevision>(&again.unwrap()).await;
    assert_eq!(revision.revision, 3);
}

#[tokio::test(start_paused = true)]
async fn on_delete_waits_for_somebody_to_delete() {
    let cluster = Cluster::start().await;
    cluster.create(db(2, json!({ "updateStrategy": { "type": "OnDelete" } }))).await;
    cluster.until("db", is_settled).await;
    cluster.merge::<StatefulSet>("db", image("db:2")).await;
    sleep(Duration::from_secs(60)).await;
    assert_eq!(images(&cluster).await, ["db:1"; 2]);
    cluster.delete::<Pod>("db-1").await;
    cluster
        .until("db", |set: &StatefulSet| {
            status(set).updated_replicas == Some(1) && status(set).ready_replicas == Some(2)
        })
        .await;
    assert_eq!(images(&cluster).await, ["db:1", "db:2"]);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_has_ended_is_replaced() {
    let cluster = Cluster::start().await;
    cluster.create(db(1, json!({}))).await;
    cluster.until("db", is_settled).await;
    let before = cluster.get::<Pod>("db-0").await.uid();
    cluster.patch_status::<Pod>("db-0", json!({ "phase": "Failed" })).await;
    let pod = cluster.until("db-0", |pod: &Pod| pod.uid() != before).await;
    assert_eq!(pod.name_any(), "db-0");
    cluster.until("db", is_settled).await;
}

#[tokio::test(start_paused = true)]
async fn claims_stay_unless_the_retention_policy_says_otherwise() {
    let cluster = Cluster::start().await;
    cluster
        .create(db(2, with_volume(json!({ "whenDeleted": "Delete", "whenScaled": "Delete" }))))
        .await;
    cluster.until("db", is_settled).await;
    let claim = cluster.get::<PersistentVolumeClaim>("data-db-1").await;
    assert_eq!(claim.labels()["app"], "db");
    assert_eq!(claim.owner_references()[0].kind, "StatefulSet");
    let volumes = cluster.get::<Pod>("db-1").await.spec.unwrap().volumes.unwrap();
    assert_eq!(volumes[0].persistent_volume_claim.as_ref().unwrap().claim_name, "data-db-1");

    cluster.merge::<StatefulSet>("db", json!({ "spec": { "replicas": 1 } })).await;
    cluster.until_gone::<PersistentVolumeClaim>("data-db-1").await;
    assert!(
        cluster
            .get::<PersistentVolumeClaim>("data-db-0")
            .await
            .metadata
            .deletion_timestamp
            .is_none()
    );
    cluster.delete::<StatefulSet>("db").await;
    cluster.until_gone::<PersistentVolumeClaim>("data-db-0").await;

    let retained = json!({ "whenDeleted": "Retain", "whenScaled": "Retain" });
    cluster.create(db(1, with_volume(retained))).await;
    cluster.until("db", is_settled).await;
    cluster.delete::<StatefulSet>("db").await;
    cluster.until_gone::<Pod>("db-0").await;
    assert!(cluster.get::<PersistentVolumeClaim>("data-db-0").await.owner_references().is_empty());
}
