//! Pods behave as a test, an annotation or a rule tells them; important ones push others out.

use flyball_test::{Builder, Cluster, Rule, SimulatedNode};
use k8s_openapi::api::{
    core::v1::{ContainerStatus, Pod},
    scheduling::v1::PriorityClass,
};
use kube::ResourceExt;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;

fn pod(name: &str, annotation: Option<&str>, spec: Value) -> Pod {
    let annotations = annotation.map(|text| json!({ "flyball.dev/behaviour": text }));
    let mut full = json!({ "containers": [{ "name": "c", "image": "web:1" }] });
    full.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    let metadata = json!({ "name": name, "annotations": annotations, "labels": { "app": name } });
    serde_json::from_value(json!({ "metadata": metadata, "spec": full })).unwrap()
}

fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

fn container(pod: &Pod) -> ContainerStatus {
    let statuses = pod.status.clone().unwrap_or_default().container_statuses;
    statuses.unwrap_or_default().into_iter().next().unwrap_or_default()
}

fn waiting(pod: &Pod) -> String {
    let state = container(pod).state.unwrap_or_default();
    state.waiting.and_then(|waiting| waiting.reason).unwrap_or_default()
}

fn is_ready(pod: &Pod) -> bool {
    container(pod).ready
}

#[tokio::test(start_paused = true)]
async fn a_container_crash_loops() {
    let cluster = Cluster::start().await;
    cluster
        .create(pod("a", Some("exit: { code: 3, after: 2s, reason: OOMKilled }"), json!({})))
        .await;
    let looping = cluster.until("a", |pod: &Pod| waiting(pod) == "CrashLoopBackOff").await;
    let last = container(&looping).last_state.unwrap().terminated.unwrap();
    assert_eq!(
        (last.exit_code, last.reason.as_deref(), phase(&looping)),
        (3, Some("OOMKilled"), "Running")
    );
    sleep(Duration::from_secs(3600)).await;
    let restarts = container(&cluster.get::<Pod>("a").await).restart_count;
    assert!((12..18).contains(&restarts), "backed off up to five minutes: {restarts}");
}

#[tokio::test(start_paused = true)]
async fn an_image_that_cannot_be_pulled_is_told_in_status_and_events() {
    let cluster = Cluster::start().await;
    cluster.create(pod("a", Some("pullError: manifest unknown"), json!({}))).await;
    cluster.until("a", |pod: &Pod| waiting(pod) == "ErrImagePull").await;
    cluster.until("a", |pod: &Pod| waiting(pod) == "ImagePullBackOff").await;
    let event = cluster.until_event::<Pod>("a", "Failed").await;
    assert!(event.note.unwrap().contains("manifest unknown"));
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_not_restarted_ends_as_it_is_told() {
    let cluster = Cluster::start().await;
    let never = json!({ "restartPolicy": "Never" });
    cluster.create(pod("good", Some("exit: { after: 1m }"), never.clone())).await;
    cluster.create(pod("bad", Some("exit: { code: 1 }"), never)).await;
    cluster.until("bad", |pod: &Pod| phase(pod) == "Failed").await;
    cluster.until("good", |pod: &Pod| phase(pod) == "Running").await;
    sleep(Duration::from_secs(61)).await;
    assert_eq!(phase(&cluster.get::<Pod>("good").await), "Succeeded");
}

#[tokio::test(start_paused = true)]
async fn rules_and_functions_tell_pods_and_a_wrong_annotation_is_named() {
    let rules = Rule::parse_all("[{ labels: { app: slow }, behaviour: { startAfter: 1m } }]").unwrap();
    let told = |pod: &Pod| (pod.name_any() == "told").then(|| "unready: [{}]".parse().unwrap());
    let cluster = Cluster::build(Builder::default().rules(rules).pods(told)).await;
    for (name, annotation) in [("slow", None), ("told", None), ("wrong", Some("exits: 1"))] {
        cluster.create(pod(name, annotation, json!({}))).await;
    }
    let event = cluster.until_event::<Pod>("wrong", "InvalidBehaviour").await;
    assert!(event.note.unwrap().contains("exits"));
    sleep(Duration::from_secs(30)).await;
    assert_eq!(phase(&cluster.get::<Pod>("slow").await), "Pending");
    assert!(!is_ready(&cluster.get("told").await));
    sleep(Duration::from_secs(31)).await;
    assert!(is_ready(&cluster.get("slow").await));
}

#[tokio::test(start_paused = true)]
async fn an_important_pod_takes_the_place_of_a_lesser_one() {
    let node = SimulatedNode::new("small").capacity("cpu", "1");
    let cluster = Cluster::build(Builder::default().node(node).heartbeats(false)).await;
    let class = json!({ "metadata": { "name": "high" }, "value": 1000 });
    cluster.create::<PriorityClass>(serde_json::from_value(class).unwrap()).await;
    let asking = |priority: i32| {
        let resources = json!({ "requests": { "cpu": "800m" } });
        let spec = json!({ "containers": [{ "name": "c", "image": "i", "resources": resources }] });
        match priority {
            0 => spec,
            _ => {
                let mut spec = spec;
                spec["priorityClassName"] = "high".into();
                spec["priority"] = 1000.into();
                spec
            }
        }
    };
    cluster.create(pod("low", None, asking(0))).await;
    cluster.until("low", is_ready).await;
    cluster.create(pod("important", None, asking(1))).await;
    cluster.until_gone::<Pod>("low").await;
    let placed = cluster.until("important", is_ready).await;
    assert_eq!(placed.spec.unwrap().node_name.as_deref(), Some("small"));
    let event = cluster.until_event::<Pod>("low", "Preempted").await;
    assert!(event.note.unwrap().ends_with("on node small"));
}
