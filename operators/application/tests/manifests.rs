//! What the operator prints, in a cluster.

use application::operator;
use flyball::{Manifests, Readiness};
use flyball_test::Cluster;
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject, Patch, PatchParams},
    core::GroupVersionKind,
};

async fn apply(client: &Client, object: &DynamicObject) -> kube::Result<DynamicObject> {
    let types = object.types.as_ref().expect("a manifest says its kind");
    let (group, version) = types.api_version.split_once('/').unwrap_or(("", &types.api_version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &types.kind));
    let api: Api<DynamicObject> = match object.namespace() {
        Some(namespace) => Api::namespaced_with(client.clone(), &namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let params = PatchParams::apply("test").validation_strict();
    api.patch(&object.name_any(), &params, &Patch::Apply(object)).await
}

#[tokio::test(start_paused = true)]
async fn what_the_operator_prints_becomes_ready_in_a_cluster() {
    let (cluster, operator) = (Cluster::start().await, operator());
    for object in Manifests::of(&operator).all("example.dev/application:1").unwrap() {
        apply(&cluster.client(), &object).await.unwrap();
    }
    let now = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(k8s_openapi::jiff::Timestamp::UNIX_EPOCH);
    let is_ready = |deployment: &Deployment| Readiness::of(deployment, &now).is_ready();
    let deployment = cluster.until("application-system/application", is_ready).await;
    assert_eq!(deployment.status.unwrap().ready_replicas, Some(2));
}
