//! EndpointSlices and Endpoints follow the pods of a Service.

use crate::web::{change, rolled_out, web};
use flyball_test::{Builder, Cluster};
use k8s_openapi::api::{
    core::v1::{Endpoints, Pod, Service},
    discovery::v1::EndpointSlice,
};
use kube::ResourceExt;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;

fn service(spec: Value) -> Service {
    let mut full = json!({ "selector": { "app": "web" }, "ports": [{ "port": 80, "targetPort": 8080 }] });
    full.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    serde_json::from_value(json!({ "metadata": { "name": "web", "labels": { "team": "a" } }, "spec": full })).unwrap()
}

async fn slice(cluster: &Cluster) -> EndpointSlice {
    let slices = cluster.list::<EndpointSlice>().await;
    slices
        .into_iter()
        .find(|slice| slice.labels().get("kubernetes.io/service-name").is_some_and(|it| it == "web"))
        .unwrap()
}

fn addresses(subsets: &Endpoints) -> (usize, usize) {
    let count = |ready: bool| {
        let subsets = subsets.subsets.iter().flatten();
        let addresses = subsets.map(|it| if ready { &it.addresses } else { &it.not_ready_addresses });
        addresses.map(|it| it.as_ref().map_or(0, Vec::len)).sum()
    };
    (count(true), count(false))
}

#[tokio::test(start_paused = true)]
async fn a_service_has_the_addresses_of_its_ready_pods() {
    let cluster = Cluster::start().await;
    cluster.create(service(json!({}))).await;
    cluster.create(web(2, "web:1", json!({}))).await;
    rolled_out(&cluster).await;
    let legacy = cluster.until("web", |it: &Endpoints| addresses(it) == (2, 0)).await;
    assert_eq!(legacy.labels()["endpoints.kubernetes.io/managed-by"], "endpoint-controller");
    assert_eq!(legacy.labels()["team"], "a");
    let slice = slice(&cluster).await;
    assert!(slice.name_any().starts_with("web-") && slice.address_type == "IPv4");
    assert_eq!(
        slice.labels()["endpointslice.kubernetes.io/managed-by"],
        "endpointslice-controller.k8s.io"
    );
    let port = &slice.ports.unwrap()[0];
    assert_eq!(
        (port.port, port.name.as_deref(), port.protocol.as_deref()),
        (Some(8080), Some(""), Some("TCP"))
    );
    let endpoints = slice.endpoints.unwrap();
    let conditions = endpoints[0].conditions.clone().unwrap();
    assert_eq!(
        (conditions.ready, conditions.serving, conditions.terminating),
        (Some(true), Some(true), Some(false))
    );
    assert_eq!(endpoints[0].node_name.as_deref(), Some("flyball"));
    assert_eq!(endpoints[0].target_ref.as_ref().unwrap().kind.as_deref(), Some("Pod"));

    change(&cluster, json!({ "spec": { "replicas": 0 } })).await;
    cluster.until("web", |it: &Endpoints| addresses(it) == (0, 0)).await;
    cluster.delete::<Service>("web").await;
    cluster.until_gone::<Endpoints>("web").await;
    cluster.until_gone::<EndpointSlice>(&slice.metadata.name.unwrap()).await;
}

#[tokio::test(start_paused = true)]
async fn pods_that_are_not_ready_are_published_as_such() {
    let told = |_: &Pod| Some("unready: [{}]".parse().unwrap());
    let cluster = Cluster::build(Builder::default().pods(told)).await;
    cluster.create(service(json!({ "clusterIP": "None" }))).await;
    cluster.create(web(1, "web:1", json!({}))).await;
    let legacy = cluster.until("web", |it: &Endpoints| addresses(it) == (0, 1)).await;
    assert!(legacy.labels().contains_key("service.kubernetes.io/headless"));
    let conditions = slice(&cluster).await.endpoints.unwrap()[0].conditions.clone().unwrap();
    assert_eq!((conditions.ready, conditions.serving), (Some(false), Some(false)));
    cluster
        .merge::<Service>("web", json!({ "spec": { "publishNotReadyAddresses": true } }))
        .await;
    cluster.until("web", |it: &Endpoints| addresses(it) == (1, 0)).await;
}

#[tokio::test(start_paused = true)]
async fn a_named_port_is_looked_up_in_the_pod() {
    let cluster = Cluster::start().await;
    cluster
        .create(service(json!({ "ports": [{ "name": "http", "port": 80, "targetPort": "web" }] })))
        .await;
    let ports = json!([{ "name": "web", "containerPort": 3000 }]);
    let container = json!({ "name": "web", "image": "web:1", "ports": ports });
    let pod = json!({ "metadata": { "name": "a", "labels": { "app": "web" } }, "spec": { "containers": [container] } });
    cluster.create::<Pod>(serde_json::from_value(pod).unwrap()).await;
    let legacy = cluster.until("web", |it: &Endpoints| addresses(it) == (1, 0)).await;
    let port = legacy.subsets.unwrap()[0].ports.clone().unwrap().remove(0);
    assert_eq!((port.name.as_deref(), port.port), (Some("http"), 3000));
}

#[tokio::test(start_paused = true)]
async fn a_service_without_a_selector_is_left_to_its_user() {
    let cluster = Cluster::start().await;
    cluster.create(service(json!({ "selector": null }))).await;
    sleep(Duration::from_secs(60)).await;
    let slices = cluster.list::<EndpointSlice>().await;
    assert!(slices.iter().all(|slice| !slice.name_any().starts_with("web")));
}
