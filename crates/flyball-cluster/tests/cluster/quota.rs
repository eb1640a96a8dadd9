//! ResourceQuotas, counted by the cluster.

use flyball_test::Cluster;
use futures::future::join_all;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, ResourceQuota};
use kube::{Api, api::PostParams};
use serde_json::{Value, json};

async fn quota(cluster: &Cluster, hard: Value) {
    let quota = json!({ "metadata": { "name": "q" }, "spec": { "hard": hard } });
    cluster.create::<ResourceQuota>(serde_json::from_value(quota).unwrap()).await;
}

fn used(quota: &ResourceQuota, name: &str) -> Option<String> {
    Some(quota.status.as_ref()?.used.as_ref()?.get(name)?.0.clone())
}

async fn until_used(cluster: &Cluster, name: &str, amount: &str) {
    let (name, amount) = (name.to_owned(), amount.to_owned());
    cluster
        .until("q", move |quota: &ResourceQuota| used(quota, &name).as_ref() == Some(&amount))
        .await;
}

fn map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({ "metadata": { "name": name } })).unwrap()
}

#[tokio::test(start_paused = true)]
async fn what_exists_is_counted_and_what_goes_is_given_back() {
    let cluster = Cluster::start().await;
    cluster.create(map("a")).await;
    quota(
        &cluster,
        json!({ "configmaps": "2", "count/configmaps": "3", "pods": "5", "requests.cpu": "1" }),
    )
    .await;

    until_used(&cluster, "configmaps", "1").await;
    cluster.create(map("b")).await;
    until_used(&cluster, "count/configmaps", "2").await;
    let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client());
    assert!(maps.create(&PostParams::default(), &map("c")).await.is_err(), "the quota is used up");
    cluster.delete::<ConfigMap>("a").await;
    until_used(&cluster, "configmaps", "1").await;
    cluster.create(map("c")).await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_has_ended_uses_nothing() {
    let cluster = Cluster::start().await;
    quota(&cluster, json!({ "pods": "5", "count/pods": "5", "requests.cpu": "1" })).await;
    until_used(&cluster, "pods", "0").await;
    let resources = json!({ "requests": { "cpu": "300m" } });
    let spec = json!({ "containers": [{ "name": "c", "image": "a:1", "resources": resources }] });
    let pod = json!({ "metadata": { "name": "p" }, "spec": spec });
    cluster.create::<Pod>(serde_json::from_value(pod).unwrap()).await;
    until_used(&cluster, "requests.cpu", "300m").await;

    let status = json!({ "status": { "phase": "Succeeded" } });
    let pods: Api<Pod> = Api::default_namespaced(cluster.client());
    let patch = kube::api::Patch::Merge(status);
    pods.patch_status("p", &kube::api::PatchParams::default(), &patch).await.unwrap();

    until_used(&cluster, "requests.cpu", "0").await;
    until_used(&cluster, "count/pods", "1").await;
}

#[tokio::test(start_paused = true)]
async fn concurrent_creates_beside_the_count_do_not_exceed_the_quota() {
    let cluster = Cluster::start().await;
    quota(&cluster, json!({ "configmaps": "20" })).await;
    // A quota that is not counted yet restricts nothing.
    until_used(&cluster, "configmaps", "0").await;
    let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client());
    let creates = (0..64).map(|n| {
        let maps = maps.clone();
        async move {
            let name = format!("m{n}");
            let created = maps.create(&PostParams::default(), &map(&name)).await.is_ok();
            if created && n % 2 == 0 {
                maps.delete(&name, &Default::default()).await.unwrap();
            }
        }
    });
    join_all(creates).await;

    let stored = maps.list(&Default::default()).await.unwrap().items.len();
    assert!((1..=20).contains(&stored), "{stored} are stored");
    until_used(&cluster, "configmaps", &stored.to_string()).await;
}
