//! DaemonSets: one pod on each node that should have one.

use flyball_test::{Builder, Cluster, SimulatedNode};
use k8s_openapi::api::{
    apps::v1::{DaemonSet, DaemonSetStatus},
    core::v1::{Node, Pod},
};
use kube::ResourceExt;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;

fn agent(spec: Value) -> DaemonSet {
    let template = json!({
        "metadata": { "labels": { "app": "agent" } },
        "spec": { "containers": [{ "name": "agent", "image": "agent:1" }] },
    });
    let mut full = json!({ "selector": { "matchLabels": { "app": "agent" } }, "template": template });
    full.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    serde_json::from_value(json!({ "metadata": { "name": "agent" }, "spec": full })).unwrap()
}

fn status(set: &DaemonSet) -> DaemonSetStatus {
    set.status.clone().unwrap_or_default()
}

fn is_settled(set: &DaemonSet) -> bool {
    let status = status(set);
    let wanted = Some(status.desired_number_scheduled).filter(|wanted| *wanted > 0);
    status.observed_generation == set.metadata.generation
        && wanted.is_some()
        && status.number_available == wanted
        && status.updated_number_scheduled == wanted
}

async fn nodes_of(cluster: &Cluster) -> Vec<String> {
    let pods = cluster.list::<Pod>().await;
    let mut nodes: Vec<_> = pods.iter().map(|pod| pod.spec.as_ref().unwrap().node_name.clone().unwrap()).collect();
    nodes.sort();
    nodes
}

#[tokio::test(start_paused = true)]
async fn each_node_that_should_has_one_pod() {
    let tainted = SimulatedNode::new("gpu").taint("gpu", "yes", "NoSchedule");
    let cluster = Cluster::build(Builder::default().nodes(2).node(tainted).heartbeats(false)).await;
    cluster.create(agent(json!({}))).await;
    let set = cluster.until("agent", is_settled).await;
    assert_eq!((status(&set).desired_number_scheduled, status(&set).number_misscheduled), (2, 0));
    assert_eq!(nodes_of(&cluster).await, ["flyball-1", "flyball-2"]);
    let pod = cluster.list::<Pod>().await.remove(0);
    let tolerations = pod.spec.clone().unwrap().tolerations.unwrap();
    let tolerates = |key: &str| tolerations.iter().any(|it| it.key.as_deref() == Some(key));
    assert!(tolerates("node.kubernetes.io/unschedulable") && tolerates("node.kubernetes.io/unreachable"));

    cluster.merge::<Node>("gpu", json!({ "spec": { "taints": null } })).await;
    cluster
        .until("agent", |set: &DaemonSet| status(set).desired_number_scheduled == 3 && is_settled(set))
        .await;
    cluster.merge::<Node>("flyball-1", json!({ "spec": { "unschedulable": true } })).await;
    cluster.delete::<Pod>(&pod.name_any()).await;
    cluster.until_gone::<Pod>(&pod.name_any()).await;
    cluster.until("agent", |set: &DaemonSet| status(set).number_available == Some(3)).await;
    assert_eq!(
        nodes_of(&cluster).await,
        ["flyball-1", "flyball-2", "gpu"],
        "a cordoned node still gets one"
    );
}

#[tokio::test(start_paused = true)]
async fn a_new_template_rolls_node_by_node() {
    let cluster = Cluster::build(Builder::default().nodes(3).heartbeats(false)).await;
    cluster.create(agent(json!({}))).await;
    cluster.until("agent", is_settled).await;
    let image =
        json!({ "spec": { "template": { "spec": { "containers": [{ "name": "agent", "image": "agent:2" }] } } } });
    cluster.merge::<DaemonSet>("agent", image).await;
    let rolling = |set: &DaemonSet| {
        assert!(status(set).number_unavailable.unwrap_or_default() <= 1, "{:?}", status(set));
        is_settled(set)
    };
    cluster.until("agent", rolling).await;
    let images = cluster.list::<Pod>().await;
    assert!(
        images
            .iter()
            .all(|pod| pod.spec.as_ref().unwrap().containers[0].image.as_deref() == Some("agent:2"))
    );
}

#[tokio::test(start_paused = true)]
async fn a_surge_never_leaves_a_node_without_a_pod() {
    let cluster = Cluster::build(Builder::default().nodes(2).heartbeats(false)).await;
    let strategy = json!({ "rollingUpdate": { "maxSurge": 1, "maxUnavailable": 0 } });
    cluster.create(agent(json!({ "updateStrategy": strategy }))).await;
    cluster.until("agent", is_settled).await;
    // The older of two pods counts, and creation times are whole seconds.
    sleep(Duration::from_secs(5)).await;
    let image =
        json!({ "spec": { "template": { "spec": { "containers": [{ "name": "agent", "image": "agent:2" }] } } } });
    cluster.merge::<DaemonSet>("agent", image).await;
    let gapless = |set: &DaemonSet| {
        assert_eq!(status(set).number_ready, 2, "{:?}", status(set));
        is_settled(set)
    };
    cluster.until("agent", gapless).await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_pod_is_replaced() {
    let cluster = Cluster::start().await;
    cluster.create(agent(json!({}))).await;
    cluster.until("agent", is_settled).await;
    let name = cluster.list::<Pod>().await.remove(0).name_any();
    cluster.patch_status::<Pod>(&name, json!({ "phase": "Failed" })).await;
    let event = cluster.until_event::<DaemonSet>("agent", "FailedDaemonPod").await;
    let expected = format!("Found failed daemon pod default/{name} on node flyball, will try to kill it");
    assert_eq!(event.note, Some(expected));
    cluster.until_gone::<Pod>(&name).await;
    cluster.until("agent", is_settled).await;
}
