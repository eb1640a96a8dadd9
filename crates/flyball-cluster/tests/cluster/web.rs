//! The Deployment that these tests are about, and what belongs to it.

use flyball_test::Cluster;
use k8s_openapi::api::{
    apps::v1::{Deployment, DeploymentStatus, ReplicaSet},
    core::v1::{Event, Pod},
};
use kube::{
    Api, ResourceExt,
    api::{ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};

/// A Deployment called `web`; `spec` goes over what is usual.
pub fn web(replicas: i32, image: &str, spec: Value) -> Deployment {
    let template = json!({
        "metadata": { "labels": { "app": "web" } },
        "spec": { "containers": [{ "name": "web", "image": image }] },
    });
    let selector = json!({ "matchLabels": { "app": "web" } });
    let mut full = json!({ "replicas": replicas, "selector": selector, "template": template });
    full.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    serde_json::from_value(json!({ "metadata": { "name": "web" }, "spec": full })).unwrap()
}

pub async fn change(cluster: &Cluster, patch: Value) -> Deployment {
    let deployments: Api<Deployment> = Api::default_namespaced(cluster.client());
    deployments.patch("web", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap()
}

pub fn image(image: &str) -> Value {
    json!({ "spec": { "template": { "spec": { "containers": [{ "name": "web", "image": image }] } } } })
}

pub fn status(deployment: &Deployment) -> DeploymentStatus {
    deployment.status.clone().unwrap_or_default()
}

/// `Progressing=True NewReplicaSetAvailable`, or nothing.
pub fn condition(deployment: &Deployment, type_: &str) -> String {
    let conditions = status(deployment).conditions.unwrap_or_default();
    let found = conditions.into_iter().find(|condition| condition.type_ == type_);
    found
        .map(|found| format!("{} {}", found.status, found.reason.unwrap_or_default()))
        .unwrap_or_default()
}

/// Whether all pods have the current template and are available, and no others are left.
pub fn is_rolled_out(deployment: &Deployment) -> bool {
    let (status, wanted) = (status(deployment), deployment.spec.as_ref().unwrap().replicas);
    let wanted = wanted.filter(|wanted| *wanted > 0);
    status.observed_generation == deployment.metadata.generation
        && [status.updated_replicas, status.replicas, status.available_replicas]
            .iter()
            .all(|count| *count == wanted)
        && status.terminating_replicas == Some(0)
}

pub async fn rolled_out(cluster: &Cluster) -> Deployment {
    cluster.until("web", is_rolled_out).await
}

pub async fn pods(cluster: &Cluster) -> Vec<Pod> {
    Api::<Pod>::default_namespaced(cluster.client())
        .list(&ListParams::default())
        .await
        .unwrap()
        .items
}

pub fn images(pods: &[Pod]) -> Vec<&str> {
    pods.iter()
        .map(|pod| pod.spec.as_ref().unwrap().containers[0].image.as_deref().unwrap())
        .collect()
}

/// The ReplicaSets by revision: image and size.
pub async fn sets(cluster: &Cluster) -> Vec<(String, i32)> {
    let sets = Api::<ReplicaSet>::default_namespaced(cluster.client())
        .list(&ListParams::default())
        .await
        .unwrap();
    let mut sets = sets.items;
    sets.sort_by_key(|set| set.annotations()["deployment.kubernetes.io/revision"].parse::<i32>().unwrap());
    let describe = |set: ReplicaSet| {
        let spec = set.spec.unwrap();
        let image = spec.template.unwrap().spec.unwrap().containers[0].image.clone().unwrap();
        (image, spec.replicas.unwrap())
    };
    sets.into_iter().map(describe).collect()
}

/// What was said about objects of a kind: who, why and what, in order.
pub async fn events(cluster: &Cluster, kind: &str) -> Vec<String> {
    let params = ListParams::default().fields(&format!("involvedObject.kind={kind}"));
    let mut events = Api::<Event>::default_namespaced(cluster.client()).list(&params).await.unwrap().items;
    let version = |event: &Event| event.resource_version().unwrap().parse::<u64>().unwrap();
    events.sort_by_key(version);
    let describe = |event: Event| {
        let (by, reason, message) = (event.reporting_component, event.reason, event.message);
        format!(
            "{} {}: {}",
            by.unwrap_or_default(),
            reason.unwrap_or_default(),
            message.unwrap_or_default()
        )
    };
    events.into_iter().map(describe).collect()
}
