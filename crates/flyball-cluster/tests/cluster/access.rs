//! Aggregated roles, and the certificate that pods get beside their token.

use flyball_apiserver::{ServerOptions, User};
use flyball_store::Store;
use flyball_test::Cluster;
use k8s_openapi::api::{
    core::v1::{ConfigMap, Pod},
    rbac::v1::ClusterRole,
};
use kube::{Api, Client};
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn aggregated_roles_have_the_rules_of_what_they_select() {
    let cluster = Cluster::start().await;
    let grants = |role: &ClusterRole, resource: &str| {
        let rules = role.rules.iter().flatten();
        rules.into_iter().any(|rule| rule.resources.iter().flatten().any(|one| one == resource))
    };
    cluster.until("view", move |view: &ClusterRole| grants(view, "pods")).await;
    cluster.until("admin", move |admin: &ClusterRole| grants(admin, "rolebindings")).await;

    let rule = json!({ "apiGroups": ["example.com"], "resources": ["widgets"], "verbs": ["get"] });
    let labels = json!({ "rbac.authorization.k8s.io/aggregate-to-view": "true" });
    let role = json!({ "metadata": { "name": "widgets", "labels": labels }, "rules": [rule] });
    cluster.create::<ClusterRole>(serde_json::from_value(role).unwrap()).await;

    cluster.until("edit", move |edit: &ClusterRole| grants(edit, "widgets")).await;
    cluster.delete::<ClusterRole>("widgets").await;
    cluster.until("edit", move |edit: &ClusterRole| !grants(edit, "widgets")).await;
}

#[tokio::test(start_paused = true)]
async fn every_namespace_gets_the_certificate_of_the_authority() {
    let options = ServerOptions { root_ca: Some("PEM".into()), ..ServerOptions::default() };
    let server = options.start(Store::memory()).await.unwrap();
    let _cluster = flyball_cluster::Cluster::over(server.clone()).await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(Client::new(server.as_user(User::admin()), "default"), "kube-system");

    let published = async {
        loop {
            if let Some(map) = maps.get_opt("kube-root-ca.crt").await.unwrap() {
                return map;
            }
            tokio::task::yield_now().await;
        }
    };
    let published = tokio::time::timeout(std::time::Duration::from_secs(60), published).await.unwrap();

    assert_eq!(published.data.unwrap()["ca.crt"], "PEM");
}

#[tokio::test(start_paused = true)]
async fn a_pod_of_a_new_namespace_waits_for_its_account() {
    let cluster = Cluster::start().await;
    let namespace = json!({ "metadata": { "name": "new" } });
    cluster
        .create::<k8s_openapi::api::core::v1::Namespace>(serde_json::from_value(namespace).unwrap())
        .await;
    let metadata = json!({ "name": "p", "namespace": "new" });
    let pod = json!({ "metadata": metadata, "spec": { "containers": [{ "name": "c", "image": "a:1" }] } });

    let pod: Pod = cluster.create(serde_json::from_value(pod).unwrap()).await;

    let volumes = pod.spec.unwrap().volumes.unwrap();
    assert!(volumes[0].name.starts_with("kube-api-access-"), "{volumes:?}");
}
