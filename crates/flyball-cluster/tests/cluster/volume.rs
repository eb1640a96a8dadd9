//! Volume claims and volumes: bound, provisioned, protected and reclaimed.

use flyball_test::Cluster;
use k8s_openapi::api::{
    core::v1::{PersistentVolume, PersistentVolumeClaim, Pod},
    storage::v1::StorageClass,
};
use kube::ResourceExt;
use serde_json::{Value, json};

fn claim(name: &str, spec: Value) -> PersistentVolumeClaim {
    let mut full = json!({ "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } });
    full.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    serde_json::from_value(json!({ "metadata": { "name": name }, "spec": full })).unwrap()
}

fn volume(name: &str, size: &str, spec: Value) -> PersistentVolume {
    let mut full = json!({
        "accessModes": ["ReadWriteOnce"], "capacity": { "storage": size }, "hostPath": { "path": "/x" },
        "storageClassName": "manual",
    });
    full.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    serde_json::from_value(json!({ "metadata": { "name": name }, "spec": full })).unwrap()
}

fn phase(claim: &PersistentVolumeClaim) -> &str {
    claim.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

fn volume_phase(volume: &PersistentVolume) -> &str {
    volume.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

fn user(name: &str, claim: &str) -> Pod {
    let volume = json!({ "name": "data", "persistentVolumeClaim": { "claimName": claim } });
    let spec = json!({ "containers": [{ "name": "c", "image": "i" }], "volumes": [volume] });
    serde_json::from_value(json!({ "metadata": { "name": name }, "spec": spec })).unwrap()
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|it| it.type_ == "Ready" && it.status == "True")
}

#[tokio::test(start_paused = true)]
async fn a_claim_gets_a_new_volume_of_the_default_class_which_goes_with_it() {
    let cluster = Cluster::start().await;
    cluster.create(claim("data", json!({}))).await;
    let bound = cluster.until("data", |claim| phase(claim) == "Bound").await;
    let spec = bound.spec.clone().unwrap();
    assert_eq!(spec.storage_class_name.as_deref(), Some("standard"));
    assert_eq!(bound.status.as_ref().unwrap().capacity.as_ref().unwrap()["storage"].0, "1Gi");
    let name = spec.volume_name.unwrap();
    assert_eq!(name, format!("pvc-{}", bound.uid().unwrap()));
    let made = cluster.until(&name, |volume| volume_phase(volume) == "Bound").await;
    assert_eq!(made.finalizers(), ["kubernetes.io/pv-protection"]);
    cluster.delete::<PersistentVolumeClaim>("data").await;
    cluster.until_gone::<PersistentVolumeClaim>("data").await;
    cluster.until_gone::<PersistentVolume>(&name).await;
}

#[tokio::test(start_paused = true)]
async fn a_claim_takes_the_smallest_volume_that_fits() {
    let cluster = Cluster::start().await;
    for (name, size) in [("large", "10Gi"), ("fitting", "2Gi"), ("small", "500Mi")] {
        cluster.create(volume(name, size, json!({}))).await;
    }
    cluster.create(claim("data", json!({ "storageClassName": "manual" }))).await;
    let bound = cluster.until("data", |claim| phase(claim) == "Bound").await;
    assert_eq!(bound.spec.unwrap().volume_name.as_deref(), Some("fitting"));
    cluster.until("fitting", |volume| volume_phase(volume) == "Bound").await;
    cluster.until("large", |volume| volume_phase(volume) == "Available").await;
    cluster.delete::<PersistentVolumeClaim>("data").await;
    cluster.until("fitting", |volume| volume_phase(volume) == "Released").await;
}

#[tokio::test(start_paused = true)]
async fn a_claim_waits_for_a_volume() {
    let cluster = Cluster::start().await;
    cluster.create(claim("data", json!({ "storageClassName": "" }))).await;
    let event = cluster.until_event::<PersistentVolumeClaim>("data", "FailedBinding").await;
    assert_eq!(
        event.note.as_deref(),
        Some("no persistent volumes available for this claim and no storage class is set")
    );
    cluster.create(user("a", "data")).await;
    let refused = cluster.until_event::<Pod>("a", "FailedScheduling").await;
    let expected = "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.";
    assert_eq!(refused.note.as_deref(), Some(expected));
    cluster.create(volume("late", "1Gi", json!({ "storageClassName": "" }))).await;
    cluster.until("data", |claim| phase(claim) == "Bound").await;
    cluster.until("a", is_ready).await;
}

#[tokio::test(start_paused = true)]
async fn a_class_may_wait_for_the_first_pod() {
    let cluster = Cluster::start().await;
    let class = json!({
        "metadata": { "name": "local" }, "provisioner": "flyball.dev/simulated", "volumeBindingMode": "WaitForFirstConsumer",
    });
    cluster.create::<StorageClass>(serde_json::from_value(class).unwrap()).await;
    cluster.create(claim("data", json!({ "storageClassName": "local" }))).await;
    cluster.until_event::<PersistentVolumeClaim>("data", "WaitForFirstConsumer").await;
    assert_eq!(phase(&cluster.get("data").await), "Pending");
    cluster.create(user("a", "data")).await;
    cluster.until("a", is_ready).await;
    assert_eq!(phase(&cluster.get("data").await), "Bound");
}

#[tokio::test(start_paused = true)]
async fn a_claim_in_use_is_kept_until_its_pod_is_gone() {
    let cluster = Cluster::start().await;
    cluster.create(claim("data", json!({}))).await;
    cluster.create(user("a", "data")).await;
    cluster.until("a", is_ready).await;
    cluster.delete::<PersistentVolumeClaim>("data").await;
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    let kept = cluster.get::<PersistentVolumeClaim>("data").await;
    assert!(kept.metadata.deletion_timestamp.is_some());
    cluster.delete::<Pod>("a").await;
    cluster.until_gone::<PersistentVolumeClaim>("data").await;
}

#[tokio::test(start_paused = true)]
async fn a_claim_whose_volume_is_gone_is_lost() {
    let cluster = Cluster::start().await;
    cluster.create(volume("v", "1Gi", json!({}))).await;
    cluster.create(claim("data", json!({ "storageClassName": "manual" }))).await;
    cluster.until("data", |claim| phase(claim) == "Bound").await;
    cluster.edit("v", |volume: &mut PersistentVolume| volume.metadata.finalizers = None).await;
    cluster.delete::<PersistentVolume>("v").await;
    cluster.edit("v", |volume: &mut PersistentVolume| volume.metadata.finalizers = None).await;
    cluster.until("data", |claim| phase(claim) == "Lost").await;
}
