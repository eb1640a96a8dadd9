//! Pods on the simulated node: from pending to gone.

use crate::web::events;
use flyball_test::Cluster;
use k8s_openapi::api::core::v1::{Node, Pod, PodStatus};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::Instant;

fn pod(name: &str, spec: Value) -> Pod {
    let mut full = json!({ "containers": [{ "name": "web", "image": "web:1" }] });
    full.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    serde_json::from_value(json!({ "metadata": { "name": name }, "spec": full })).unwrap()
}

fn status(pod: &Pod) -> PodStatus {
    pod.status.clone().unwrap_or_default()
}

fn is(pod: &Pod, condition: &str, state: &str) -> bool {
    status(pod)
        .conditions
        .iter()
        .flatten()
        .any(|it| it.type_ == condition && it.status == state)
}

fn is_ready(pod: &Pod) -> bool {
    is(pod, "Ready", "True")
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_scheduled_started_and_ready() {
    let cluster = Cluster::start().await;
    cluster.create(pod("a", json!({}))).await;
    let creating = cluster.until("a", |pod: &Pod| status(pod).container_statuses.is_some()).await;
    let state = status(&creating).container_statuses.unwrap()[0].state.clone().unwrap();
    assert_eq!(state.waiting.unwrap().reason.as_deref(), Some("ContainerCreating"));

    let ready = status(&cluster.until("a", is_ready).await);
    assert_eq!((ready.phase.as_deref(), ready.pod_ip.as_deref()), (Some("Running"), Some("10.244.0.2")));
    assert_eq!(
        (ready.host_ip.is_some(), ready.start_time.is_some(), ready.qos_class.is_some()),
        (true, true, true)
    );
    let container = &ready.container_statuses.unwrap()[0];
    assert!(container.ready && container.started == Some(true) && container.restart_count == 0);
    let expected = [
        "default-scheduler Scheduled: Successfully assigned default/a to flyball",
        "kubelet Pulled: Container image \"web:1\" already present on machine and can be accessed by the pod",
        "kubelet Created: Container created",
        "kubelet Started: Container started",
    ];
    assert_eq!(events(&cluster, "Pod").await, expected);
}

#[tokio::test(start_paused = true)]
async fn a_readiness_probe_takes_its_time() {
    let cluster = Cluster::start().await;
    let probe = json!({ "tcpSocket": { "port": 80 }, "initialDelaySeconds": 120 });
    let container = json!({ "name": "web", "image": "web:1", "readinessProbe": probe });
    let started = Instant::now();
    cluster.create(pod("a", json!({ "containers": [container] }))).await;
    let running = cluster.until("a", |pod: &Pod| status(pod).phase.as_deref() == Some("Running")).await;
    assert!(is(&running, "Ready", "False"));
    cluster.until("a", is_ready).await;
    assert!(started.elapsed() >= Duration::from_secs(120));
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_fits_nowhere_says_why_and_runs_when_it_does() {
    let cluster = Cluster::start().await;
    cluster.create(pod("a", json!({ "nodeSelector": { "disk": "ssd" } }))).await;
    let refused = cluster.until("a", |pod: &Pod| is(pod, "PodScheduled", "False")).await;
    let why = status(&refused).conditions.unwrap()[0].message.clone().unwrap();
    let expected = "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector. preemption: 0/1 nodes are \
                    available: 1 Preemption is not helpful for scheduling.";
    assert_eq!(why, expected);
    assert_eq!(events(&cluster, "Pod").await, [format!("default-scheduler FailedScheduling: {why}")]);

    let label = json!({ "metadata": { "labels": { "disk": "ssd" } } });
    Api::<Node>::all(cluster.client())
        .patch("flyball", &PatchParams::default(), &Patch::Merge(label))
        .await
        .unwrap();
    cluster.until("a", is_ready).await;
}

#[tokio::test(start_paused = true)]
async fn room_that_a_pod_leaves_is_given_to_the_next() {
    let cluster = Cluster::start().await;
    let large = |name: &str| {
        let resources = json!({ "requests": { "cpu": "200" } });
        pod(name, json!({ "containers": [{ "name": "c", "image": "i", "resources": resources }] }))
    };
    cluster.create(large("a")).await;
    cluster.until("a", is_ready).await;
    cluster.create(large("b")).await;
    let refused = cluster.until("b", |pod: &Pod| is(pod, "PodScheduled", "False")).await;
    let why = status(&refused).conditions.unwrap()[0].message.clone().unwrap();
    let expected = "0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: 1 No preemption \
                    victims found for incoming pod.";
    assert_eq!(why, expected);
    cluster.delete::<Pod>("a").await;
    cluster.until("b", is_ready).await;
}

#[tokio::test(start_paused = true)]
async fn a_deleted_pod_ends_gracefully() {
    let cluster = Cluster::start().await;
    cluster.create(pod("a", json!({}))).await;
    cluster.until("a", is_ready).await;
    cluster.delete::<Pod>("a").await;
    let ending = cluster.get::<Pod>("a").await;
    assert_eq!(ending.metadata.deletion_grace_period_seconds, Some(30));
    cluster.until_gone::<Pod>("a").await;
    assert!(
        events(&cluster, "Pod")
            .await
            .contains(&"kubelet Killing: Stopping container web".to_owned())
    );
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_somebody_holds_back_tells_how_it_ended() {
    let cluster = Cluster::start().await;
    let mut held = pod("a", json!({}));
    held.metadata.finalizers = Some(vec!["example.dev/wait".into()]);
    cluster.create(held).await;
    cluster.until("a", is_ready).await;
    cluster.delete::<Pod>("a").await;
    let ended = cluster.until("a", |pod: &Pod| status(pod).phase.as_deref() == Some("Succeeded")).await;
    assert!(is(&ended, "Ready", "False"));
    let free = json!({ "metadata": { "finalizers": null } });
    let pods: Api<Pod> = Api::default_namespaced(cluster.client());
    pods.patch("a", &PatchParams::default(), &Patch::Merge(free)).await.unwrap();
    cluster.until_gone::<Pod>("a").await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_can_be_forced_away() {
    let cluster = Cluster::start().await;
    cluster.create(pod("a", json!({}))).await;
    cluster.until("a", is_ready).await;
    let force = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
    let pods: Api<Pod> = Api::default_namespaced(cluster.client());
    pods.delete("a", &force).await.unwrap();
    assert!(pods.get_opt("a").await.unwrap().is_none());
    cluster.create(pod("a", json!({}))).await;
    let again = cluster.until("a", is_ready).await;
    assert_eq!(again.name_any(), "a");
}
