//! What a test is told when it asks for what it does not get.

use flyball_test::Cluster;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// A kind that nobody has defined.
#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "example.dev", version = "v1", kind = "Ghost", namespaced)]
struct GhostSpec {}

fn ada() -> ConfigMap {
    serde_json::from_value(json!({ "metadata": { "name": "ada" }, "data": { "greeting": "hello" } })).unwrap()
}

/// What a test panics with.
async fn complaint<T: Send + 'static>(test: impl Future<Output = T> + Send + 'static) -> String {
    let Err(error) = tokio::spawn(test).await else {
        panic!("nobody complained")
    };
    *error.into_panic().downcast::<String>().expect("a complaint is a sentence")
}

#[tokio::test(start_paused = true)]
async fn a_verb_says_what_it_was_about_and_why_it_failed() {
    let cluster = Cluster::start().await;
    cluster.create(ada()).await;
    let twice = complaint(async move {
        cluster.create(ada()).await;
    });
    assert_eq!(twice.await, "create ConfigMap default/ada: configmaps \"ada\" already exists");

    let cluster = Cluster::start().await;
    let absent = complaint(async move { cluster.get::<Namespace>("mars").await });
    assert_eq!(absent.await, "get Namespace mars: namespaces \"mars\" not found");

    let cluster = Cluster::start().await;
    let elsewhere = complaint(async move { cluster.delete::<ConfigMap>("kube-system/ada").await });
    assert_eq!(elsewhere.await, "delete ConfigMap kube-system/ada: configmaps \"ada\" not found");
}

#[tokio::test(start_paused = true)]
async fn a_wait_in_vain_says_what_was_last_seen() {
    let cluster = Cluster::start().await;
    cluster.create(ada()).await;
    let told = complaint(async move { cluster.until("ada", |map: &ConfigMap| map.data.is_none()).await }).await;
    assert!(
        told.starts_with("ConfigMap default/ada did not become what was expected; last seen:\n"),
        "{told}"
    );
    assert!(told.contains("  greeting: hello\n") && !told.contains("managedFields"), "{told}");

    let cluster = Cluster::start().await;
    let told = complaint(async move { cluster.until("ada", |_: &ConfigMap| true).await }).await;
    assert!(told.ends_with("last seen:\nnothing: there is no such object"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_kind_that_nobody_serves_fails_at_once() {
    let cluster = Cluster::start().await;
    let told = complaint(async move { cluster.until_gone::<Ghost>("boo").await }).await;
    assert!(told.starts_with("watch Ghost default/boo: ") && told.contains("404"), "{told}");
}
