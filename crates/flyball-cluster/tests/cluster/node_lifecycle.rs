//! Nodes that stop, are cut off, return or are deleted.

use crate::web::{pods, rolled_out, web};
use flyball_test::{Builder, Cluster};
use k8s_openapi::api::{
    coordination::v1::Lease,
    core::v1::{Node, Pod},
};
use kube::{Api, ResourceExt};
use serde_json::json;
use std::time::Duration;
use tokio::time::sleep;

fn ready(node: &Node) -> String {
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let ready = conditions.into_iter().find(|it| it.type_ == "Ready");
    ready
        .map(|it| format!("{} {}", it.status, it.reason.clone().unwrap_or_default()))
        .unwrap_or_default()
}

fn taints(node: &Node) -> Vec<String> {
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    taints.into_iter().map(|taint| format!("{}:{}", taint.key, taint.effect)).collect()
}

async fn names_on(cluster: &Cluster, node: &str) -> Vec<String> {
    let here = |pod: &Pod| pod.spec.as_ref().unwrap().node_name.as_deref() == Some(node);
    pods(cluster).await.iter().filter(|pod| here(pod)).map(ResourceExt::name_any).collect()
}

#[tokio::test(start_paused = true)]
async fn the_pods_of_a_node_that_stops_are_replaced_elsewhere_in_time() {
    let cluster = Cluster::build(Builder::default().nodes(2)).await;
    let tolerations = json!([{ "key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute",
        "tolerationSeconds": 300 }]);
    let mut web = web(2, "web:1", json!({}));
    let spec = web.spec.as_mut().unwrap().template.spec.as_mut().unwrap();
    spec.tolerations = serde_json::from_value(tolerations).unwrap();
    cluster.create(web).await;
    rolled_out(&cluster).await;
    assert_eq!(names_on(&cluster, "flyball-1").await.len(), 1);
    let leases: Api<Lease> = Api::namespaced(cluster.client(), "kube-node-lease");
    assert_eq!(leases.get("flyball-1").await.unwrap().spec.unwrap().lease_duration_seconds, Some(40));

    cluster.simulation().stop_node("flyball-1");
    sleep(Duration::from_secs(100)).await;
    let node = cluster.get::<Node>("flyball-1").await;
    assert_eq!(ready(&node), "Unknown NodeStatusUnknown");
    let unreachable = ["NoSchedule", "NoExecute"].map(|effect| format!("node.kubernetes.io/unreachable:{effect}"));
    assert_eq!(taints(&node), unreachable);
    let stranded = names_on(&cluster, "flyball-1").await;
    assert_eq!(stranded.len(), 1, "it is tolerated for five minutes");
    sleep(Duration::from_secs(300)).await;
    let replaced = names_on(&cluster, "flyball-2").await;
    assert_eq!(replaced.len(), 2);
    let gone = cluster.get::<Pod>(&stranded[0]).await;
    assert!(gone.metadata.deletion_timestamp.is_some(), "nothing on the node can end it");

    cluster.simulation().start_node("flyball-1");
    cluster.until_gone::<Pod>(&stranded[0]).await;
    let back = cluster
        .until("flyball-1", |node: &Node| ready(node).starts_with("True") && taints(node).is_empty())
        .await;
    assert_eq!(ready(&back), "True KubeletReady");
}

#[tokio::test(start_paused = true)]
async fn the_pods_of_a_deleted_node_are_collected() {
    let cluster = Cluster::build(Builder::default().nodes(2).heartbeats(false)).await;
    cluster.create(web(2, "web:1", json!({}))).await;
    rolled_out(&cluster).await;
    let orphan = names_on(&cluster, "flyball-1").await.remove(0);
    cluster.delete::<Node>("flyball-1").await;
    cluster.until_gone::<Pod>(&orphan).await;
    rolled_out(&cluster).await;
    assert_eq!(names_on(&cluster, "flyball-2").await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn containers_run_on_while_their_node_is_cut_off() {
    let cluster = Cluster::build(Builder::default().nodes(1)).await;
    cluster.create(web(1, "web:1", json!({}))).await;
    rolled_out(&cluster).await;
    let restarts = |pod: &Pod| pod.status.as_ref().unwrap().container_statuses.as_ref().unwrap()[0].restart_count;
    let before = pods(&cluster).await.remove(0);
    cluster.simulation().cut_off_node("flyball-1");
    sleep(Duration::from_secs(60)).await;
    cluster.simulation().start_node("flyball-1");
    rolled_out(&cluster).await;
    let after = pods(&cluster).await.remove(0);
    assert_eq!((after.uid(), restarts(&after)), (before.uid(), 0));

    cluster.simulation().stop_node("flyball-1");
    sleep(Duration::from_secs(60)).await;
    cluster.simulation().start_node("flyball-1");
    let restarted = cluster.until(&before.name_any(), |pod: &Pod| restarts(pod) == 1).await;
    assert_eq!(restarted.uid(), before.uid());
}
