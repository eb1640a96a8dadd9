//! What becomes of objects whose owners go.

use flyball_test::Cluster;
use k8s_openapi::{
    api::{
        apps::v1::{Deployment, ReplicaSet},
        core::v1::{ConfigMap, Secret},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Resource, ResourceExt,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, PropagationPolicy},
};
use serde_json::{Value, json};

fn map(name: &str, owners: Value) -> ConfigMap {
    serde_json::from_value(json!({ "metadata": { "name": name, "ownerReferences": owners } })).unwrap()
}

fn reference(owner: &impl Resource<DynamicType = ()>, blocks: bool) -> Value {
    let mut reference = json!(owner.controller_owner_ref(&()).unwrap());
    reference["controller"] = false.into();
    reference["blockOwnerDeletion"] = blocks.into();
    reference
}

async fn delete(cluster: &Cluster, name: &str, policy: PropagationPolicy) {
    let params = DeleteParams { propagation_policy: Some(policy), ..DeleteParams::default() };
    maps(cluster).delete(name, &params).await.unwrap();
}

fn maps(cluster: &Cluster) -> Api<ConfigMap> {
    Api::default_namespaced(cluster.client())
}

/// An owner with a child, which has a child itself.
async fn family(cluster: &Cluster) {
    let owner = cluster.create(map("owner", json!([]))).await;
    let child = cluster.create(map("child", json!([reference(&owner, true)]))).await;
    cluster.create(map("grandchild", json!([reference(&child, true)]))).await;
}

#[tokio::test(start_paused = true)]
async fn in_the_background_the_owner_goes_first() {
    let cluster = Cluster::start().await;
    family(&cluster).await;
    delete(&cluster, "owner", PropagationPolicy::Background).await;
    assert!(maps(&cluster).get_opt("owner").await.unwrap().is_none());
    cluster.until_gone::<ConfigMap>("child").await;
    cluster.until_gone::<ConfigMap>("grandchild").await;
}

#[tokio::test(start_paused = true)]
async fn in_the_foreground_the_owner_goes_last() {
    let cluster = Cluster::start().await;
    family(&cluster).await;
    let held = json!({ "metadata": { "finalizers": ["example.dev/wait"] } });
    maps(&cluster)
        .patch("grandchild", &PatchParams::default(), &Patch::Merge(held))
        .await
        .unwrap();
    delete(&cluster, "owner", PropagationPolicy::Foreground).await;

    cluster
        .until("grandchild", |map: &ConfigMap| map.metadata.deletion_timestamp.is_some())
        .await;
    let child = cluster.get::<ConfigMap>("child").await;
    assert_eq!(child.finalizers(), ["foregroundDeletion"], "it waits for its own child");
    assert_eq!(cluster.get::<ConfigMap>("owner").await.finalizers(), ["foregroundDeletion"]);

    let free = json!({ "metadata": { "finalizers": null } });
    maps(&cluster)
        .patch("grandchild", &PatchParams::default(), &Patch::Merge(free))
        .await
        .unwrap();
    cluster.until_gone::<ConfigMap>("owner").await;
    assert!(maps(&cluster).get_opt("child").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_child_that_does_not_block_delays_nobody() {
    let cluster = Cluster::start().await;
    let owner = cluster.create(map("owner", json!([]))).await;
    let mut child = map("child", json!([reference(&owner, false)]));
    child.metadata.finalizers = Some(vec!["example.dev/wait".into()]);
    cluster.create(child).await;
    delete(&cluster, "owner", PropagationPolicy::Foreground).await;
    cluster.until_gone::<ConfigMap>("owner").await;
    cluster.until("child", |map: &ConfigMap| map.metadata.deletion_timestamp.is_some()).await;
}

#[tokio::test(start_paused = true)]
async fn orphans_stay_and_know_their_owner_no_more() {
    let cluster = Cluster::start().await;
    family(&cluster).await;
    delete(&cluster, "owner", PropagationPolicy::Orphan).await;
    cluster.until_gone::<ConfigMap>("owner").await;
    assert_eq!(cluster.get::<ConfigMap>("child").await.owner_references(), []);
    assert_eq!(cluster.get::<ConfigMap>("grandchild").await.owner_references().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn one_owner_that_is_left_keeps_a_child() {
    let cluster = Cluster::start().await;
    let first = cluster.create(map("first", json!([]))).await;
    let second = cluster.create(map("second", json!([]))).await;
    cluster
        .create(map("child", json!([reference(&first, true), reference(&second, true)])))
        .await;

    delete(&cluster, "first", PropagationPolicy::Foreground).await;
    cluster.until_gone::<ConfigMap>("first").await;
    let child = cluster.until("child", |map: &ConfigMap| map.owner_references().len() == 1).await;
    assert_eq!(child.owner_references()[0].name, "second");

    delete(&cluster, "second", PropagationPolicy::Background).await;
    cluster.until_gone::<ConfigMap>("child").await;
}

#[tokio::test(start_paused = true)]
async fn an_owner_is_its_uid_not_its_name() {
    let cluster = Cluster::start().await;
    let owner = cluster.create(map("owner", json!([]))).await;
    let mut stranger = reference(&owner, true);
    stranger["uid"] = "00000000-0000-0000-0000-000000000000".into();
    cluster.create(map("stray", json!([stranger]))).await;
    cluster.until_gone::<ConfigMap>("stray").await;
    cluster.get::<ConfigMap>("owner").await;
}

#[tokio::test(start_paused = true)]
async fn two_that_own_each_other_both_go() {
    let cluster = Cluster::start().await;
    let a = cluster.create(map("a", json!([]))).await;
    let b = cluster.create(map("b", json!([reference(&a, true)]))).await;
    let circle = json!({ "metadata": { "ownerReferences": [reference(&b, true)] } });
    maps(&cluster).patch("a", &PatchParams::default(), &Patch::Merge(circle)).await.unwrap();
    delete(&cluster, "a", PropagationPolicy::Foreground).await;
    cluster.until_gone::<ConfigMap>("a").await;
    cluster.until_gone::<ConfigMap>("b").await;
}

#[tokio::test(start_paused = true)]
async fn children_of_a_custom_resource_go_with_it_and_with_its_definition() {
    let cluster = Cluster::start().await;
    cluster.create(definition()).await;
    let resource = ApiResource {
        group: "example.dev".into(),
        version: "v1".into(),
        api_version: "example.dev/v1".into(),
        kind: "Boat".into(),
        plural: "boats".into(),
    };
    let boats: Api<DynamicObject> = Api::default_namespaced_with(cluster.client(), &resource);
    for name in ["one", "two"] {
        let boat = boats.create(&PostParams::default(), &DynamicObject::new(name, &resource)).await.unwrap();
        let owner = json!({ "apiVersion": "example.dev/v1", "kind": "Boat", "name": name, "uid": boat.metadata.uid });
        let secret = json!({ "metadata": { "name": name, "ownerReferences": [owner] } });
        cluster.create::<Secret>(serde_json::from_value(secret).unwrap()).await;
    }
    boats.delete("one", &DeleteParams::default()).await.unwrap();
    cluster.until_gone::<Secret>("one").await;
    cluster.get::<Secret>("two").await;

    cluster.delete::<CustomResourceDefinition>("boats.example.dev").await;
    cluster.until_gone::<CustomResourceDefinition>("boats.example.dev").await;
    cluster.until_gone::<Secret>("two").await;
}

#[tokio::test(start_paused = true)]
async fn a_deployment_takes_its_pods_along() {
    let cluster = Cluster::start().await;
    let template = json!({
        "metadata": { "labels": { "app": "web" } },
        "spec": { "containers": [{ "name": "web", "image": "web:1" }] },
    });
    let spec = json!({ "replicas": 2, "selector": { "matchLabels": { "app": "web" } }, "template": template });
    let web: Deployment = serde_json::from_value(json!({ "metadata": { "name": "web" }, "spec": spec })).unwrap();
    cluster.create(web).await;
    let ready = |web: &Deployment| web.status.as_ref().and_then(|status| status.ready_replicas) == Some(2);
    cluster.until("web", ready).await;
    let pods: Api<k8s_openapi::api::core::v1::Pod> = Api::default_namespaced(cluster.client());
    let names: Vec<_> = pods
        .list(&ListParams::default())
        .await
        .unwrap()
        .into_iter()
        .map(|pod| pod.name_any())
        .collect();
    assert_eq!(names.len(), 2);

    cluster.delete::<Deployment>("web").await;
    for name in names {
        cluster.until_gone::<k8s_openapi::api::core::v1::Pod>(&name).await;
    }
    let sets: Api<ReplicaSet> = Api::default_namespaced(cluster.client());
    assert!(sets.list(&ListParams::default()).await.unwrap().items.is_empty());
}

fn definition() -> CustomResourceDefinition {
    let schema = json!({ "openAPIV3Schema": { "type": "object" } });
    let definition = json!({
        "metadata": { "name": "boats.example.dev" },
        "spec": {
            "group": "example.dev",
            "scope": "Namespaced",
            "names": { "plural": "boats", "singular": "boat", "kind": "Boat" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": schema }],
        },
    });
    serde_json::from_value(definition).unwrap()
}
