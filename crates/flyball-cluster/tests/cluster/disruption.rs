//! PodDisruptionBudgets and evictions.

use crate::web::{change, rolled_out, web};
use flyball_test::{Builder, Cluster};
use k8s_openapi::api::{core::v1::Pod, policy::v1::PodDisruptionBudget};
use kube::{Api, ResourceExt, api::EvictParams};
use serde_json::{Value, json};

fn budget(spec: Value) -> PodDisruptionBudget {
    let mut full = json!({ "selector": { "matchLabels": { "app": "web" } } });
    full.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    serde_json::from_value(json!({ "metadata": { "name": "web" }, "spec": full })).unwrap()
}

/// Allowed, healthy, desired and expected.
fn numbers(budget: &PodDisruptionBudget) -> [i32; 4] {
    let status = budget.status.clone().unwrap_or_default();
    [
        status.disruptions_allowed,
        status.current_healthy,
        status.desired_healthy,
        status.expected_pods,
    ]
    .map(Option::unwrap_or_default)
}

fn reason(budget: &PodDisruptionBudget) -> String {
    let conditions = budget.status.clone().unwrap_or_default().conditions.unwrap_or_default();
    conditions
        .into_iter()
        .map(|it| format!("{} {} {}", it.type_, it.status, it.reason))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_budget_says_how_many_pods_may_go() {
    let cluster = Cluster::start().await;
    cluster.create(web(4, "web:1", json!({}))).await;
    rolled_out(&cluster).await;
    cluster.create(budget(json!({ "minAvailable": "50%" }))).await;
    let known = cluster.until("web", |it: &PodDisruptionBudget| numbers(it) == [2, 4, 2, 4]).await;
    assert_eq!(reason(&known), "DisruptionAllowed True SufficientPods");
    change(&cluster, json!({ "spec": { "replicas": 2 } })).await;
    cluster.until("web", |it: &PodDisruptionBudget| numbers(it) == [1, 2, 1, 2]).await;
    cluster
        .merge::<PodDisruptionBudget>("web", json!({ "spec": { "minAvailable": null, "maxUnavailable": 0 } }))
        .await;
    let full = cluster.until("web", |it: &PodDisruptionBudget| numbers(it) == [0, 2, 2, 2]).await;
    assert_eq!(reason(&full), "DisruptionAllowed False InsufficientPods");
    let pods = cluster.list::<Pod>().await;
    let pod = pods.iter().find(|pod| pod.metadata.deletion_timestamp.is_none()).unwrap().name_any();
    let pods: Api<Pod> = Api::default_namespaced(cluster.client());
    let refused = pods.evict(&pod, &EvictParams::default()).await.unwrap_err();
    assert!(matches!(refused, kube::Error::Api(status) if status.code == 429));
}

#[tokio::test(start_paused = true)]
async fn a_drained_node_is_left_pod_by_pod() {
    let cluster = Cluster::build(Builder::default().nodes(2).heartbeats(false)).await;
    cluster.create(web(4, "web:1", json!({}))).await;
    rolled_out(&cluster).await;
    cluster.create(budget(json!({ "maxUnavailable": 1 }))).await;
    cluster.until("web", |it: &PodDisruptionBudget| numbers(it)[0] == 1).await;
    cluster.simulation().drain_node("flyball-1").await.unwrap();
    rolled_out(&cluster).await;
    let pods = cluster.list::<Pod>().await;
    assert!(
        pods.iter()
            .all(|pod| pod.spec.as_ref().unwrap().node_name.as_deref() == Some("flyball-2"))
    );
}
