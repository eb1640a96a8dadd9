//! HorizontalPodAutoscalers follow what pods use.

use crate::web::{rolled_out, status, web};
use flyball_test::{Builder, Cluster};
use k8s_openapi::api::{apps::v1::Deployment, autoscaling::v2::HorizontalPodAutoscaler, core::v1::Pod};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;

fn autoscaler(spec: Value) -> HorizontalPodAutoscaler {
    let target = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": "web" });
    let metric = json!({ "type": "Resource", "resource": { "name": "cpu",
        "target": { "type": "Utilization", "averageUtilization": 50 } } });
    let mut full = json!({ "scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 10, "metrics": [metric] });
    full.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    serde_json::from_value(json!({ "metadata": { "name": "web" }, "spec": full })).unwrap()
}

fn busy() -> Deployment {
    let mut web = web(1, "web:1", json!({}));
    let pod = web.spec.as_mut().unwrap().template.spec.as_mut().unwrap();
    pod.containers[0].resources = serde_json::from_value(json!({ "requests": { "cpu": "100m" } })).unwrap();
    web
}

fn condition(autoscaler: &HorizontalPodAutoscaler, type_: &str) -> String {
    let conditions = autoscaler.status.clone().unwrap_or_default().conditions.unwrap_or_default();
    let found = conditions.into_iter().find(|it| it.type_ == type_);
    found
        .map(|it| format!("{} {}", it.status, it.reason.unwrap_or_default()))
        .unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn a_deployment_grows_with_its_load_and_shrinks_after_five_minutes() {
    let told = |_: &Pod| Some("cpu: [{ amount: 150m }, { from: 10m, amount: 10m }]".parse().unwrap());
    let cluster = Cluster::build(Builder::default().heartbeats(false).pods(told)).await;
    cluster.create(busy()).await;
    rolled_out(&cluster).await;
    cluster.create(autoscaler(json!({}))).await;
    cluster.until("web", |web: &Deployment| status(web).available_replicas == Some(3)).await;
    let event = cluster.until_event::<HorizontalPodAutoscaler>("web", "SuccessfulRescale").await;
    let expected = "New size: 3; reason: cpu resource utilization (percentage of request) above target";
    assert_eq!(event.note.as_deref(), Some(expected));
    sleep(Duration::from_secs(120)).await;
    let grown = cluster.get::<HorizontalPodAutoscaler>("web").await;
    assert_eq!(condition(&grown, "ScalingActive"), "True ValidMetricFound");
    sleep(Duration::from_secs(1800)).await;
    let shrunk = cluster.get::<HorizontalPodAutoscaler>("web").await;
    assert_eq!(shrunk.status.as_ref().unwrap().desired_replicas, 1);
    assert_eq!(condition(&shrunk, "AbleToScale"), "True ReadyForNewScale");
    assert_eq!(status(&cluster.get("web").await).replicas, Some(1));
}

#[tokio::test(start_paused = true)]
async fn an_autoscaler_says_why_it_cannot_scale() {
    let cluster = Cluster::start().await;
    cluster.create(autoscaler(json!({}))).await;
    cluster
        .until("web", |it: &HorizontalPodAutoscaler| {
            condition(it, "AbleToScale") == "False FailedGetScale"
        })
        .await;
    cluster.create(busy()).await;
    rolled_out(&cluster).await;
    let known = |it: &HorizontalPodAutoscaler| condition(it, "ScalingActive") == "False FailedGetResourceMetric";
    cluster.until("web", known).await;
    cluster.merge::<Deployment>("web", json!({ "spec": { "replicas": 0 } })).await;
    cluster
        .until("web", |it: &HorizontalPodAutoscaler| {
            condition(it, "ScalingActive") == "False ScalingDisabled"
        })
        .await;
    cluster.merge::<Deployment>("web", json!({ "spec": { "replicas": 12 } })).await;
    cluster
        .until("web", |web: &Deployment| web.spec.as_ref().unwrap().replicas == Some(10))
        .await;
}
