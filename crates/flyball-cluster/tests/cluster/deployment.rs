//! Deployments and their ReplicaSets, from the first pod to the last.

use flyball_test::Cluster;
use k8s_openapi::api::apps::v1::Deployment;
use serde_json::json;

fn web(replicas: i32, image: &str) -> Deployment {
    let template = json!({
        "metadata": { "labels": { "app": "web" } },
        "spec": { "containers": [{ "name": "web", "image": image }] },
    });
    let selector = json!({ "matchLabels": { "app": "web" } });
    let spec = json!({ "replicas": replicas, "selector": selector, "template": template });
    serde_json::from_value(json!({ "metadata": { "name": "web" }, "spec": spec })).unwrap()
}

fn is_available(deployment: &Deployment) -> bool {
    let conditions = deployment.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|it| it.type_ == "Available" && it.status == "True")
}

#[tokio::test(start_paused = true)]
async fn a_deployment_becomes_available() {
    let cluster = Cluster::start().await;
    cluster.create(web(3, "web:1")).await;
    cluster.until("web", is_available).await;
}
