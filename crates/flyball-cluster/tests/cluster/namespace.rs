//! Namespaces, from what they are given to what is taken from them.

use flyball_test::Cluster;
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Namespace, Pod, ServiceAccount},
};
use kube::{
    Api,
    api::{ListParams, Patch, PatchParams},
};
use serde_json::json;

async fn prod(cluster: &Cluster) {
    let namespace = json!({ "metadata": { "name": "prod" } });
    cluster.create::<Namespace>(serde_json::from_value(namespace).unwrap()).await;
}

#[tokio::test(start_paused = true)]
async fn every_namespace_has_a_service_account() {
    let cluster = Cluster::start().await;
    prod(&cluster).await;
    let first = cluster.until("prod/default", |_: &ServiceAccount| true).await;
    cluster.delete::<ServiceAccount>("prod/default").await;
    cluster
        .until("prod/default", |account: &ServiceAccount| account.metadata.uid != first.metadata.uid)
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_is_deleted_takes_everything_along() {
    let cluster = Cluster::start().await;
    prod(&cluster).await;
    let template = json!({
        "metadata": { "labels": { "app": "web" } },
        "spec": { "containers": [{ "name": "web", "image": "web:1" }] },
    });
    let spec = json!({ "replicas": 2, "selector": { "matchLabels": { "app": "web" } }, "template": template });
    let metadata = json!({ "name": "web", "namespace": "prod" });
    let web: Deployment = serde_json::from_value(json!({ "metadata": metadata, "spec": spec })).unwrap();
    cluster.create(web).await;
    let ready = |web: &Deployment| web.status.as_ref().and_then(|status| status.ready_replicas) == Some(2);
    cluster.until("prod/web", ready).await;

    let started = tokio::time::Instant::now();
    cluster.delete::<Namespace>("prod").await;
    cluster.until_gone::<Namespace>("prod").await;
    assert!(
        started.elapsed() < std::time::Duration::from_secs(3),
        "it goes with its last pod: {:?}",
        started.elapsed()
    );
    let pods: Api<Pod> = Api::all(cluster.client());
    assert!(pods.list(&ListParams::default()).await.unwrap().items.is_empty());
    prod(&cluster).await;
    cluster.until_gone::<Deployment>("prod/web").await;
}

#[tokio::test(start_paused = true)]
async fn a_namespace_says_what_holds_it() {
    let cluster = Cluster::start().await;
    prod(&cluster).await;
    let metadata = json!({ "name": "held", "namespace": "prod", "finalizers": ["example.dev/wait"] });
    cluster
        .create::<ConfigMap>(serde_json::from_value(json!({ "metadata": metadata })).unwrap())
        .await;
    cluster.delete::<Namespace>("prod").await;

    let condition = |namespace: &Namespace, type_: &str| {
        let conditions = namespace.status.clone().and_then(|status| status.conditions).unwrap_or_default();
        conditions
            .into_iter()
            .find(|condition| condition.type_ == type_ && condition.status == "True")
    };
    let told = cluster
        .until("prod", |it: &Namespace| condition(it, "NamespaceFinalizersRemaining").is_some())
        .await;
    let message = |type_: &str| condition(&told, type_).and_then(|condition| condition.message).unwrap();
    assert_eq!(
        message("NamespaceFinalizersRemaining"),
        "Some content in the namespace has finalizers remaining: example.dev/wait in 1 resource instances"
    );
    assert_eq!(
        message("NamespaceContentRemaining"),
        "Some resources are remaining: configmaps. has 1 resource instances"
    );

    let free = json!({ "metadata": { "finalizers": null } });
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client(), "prod");
    maps.patch("held", &PatchParams::default(), &Patch::Merge(free)).await.unwrap();
    cluster.until_gone::<Namespace>("prod").await;
}
