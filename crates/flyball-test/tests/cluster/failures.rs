//! The messages of verbs and waits that fail.

use flyball::{Action, Context, Controller, Error, Operator, Result};
use flyball_test::Cluster;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::{
    CustomResource,
    core::{ApiResource, GroupVersionKind},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::{sync::Arc, time::Duration};

/// A kind that is not installed.
#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "example.dev", version = "v1", kind = "Ghost", namespaced)]
struct GhostSpec {}

fn ada() -> ConfigMap {
    serde_json::from_value(json!({ "metadata": { "name": "ada" }, "data": { "greeting": "hello" } })).unwrap()
}

/// The message that a test panics with, and the line that it names.
async fn panic_of<T: Send + 'static>(test: impl Future<Output = T> + Send + 'static) -> (u32, String) {
    let Err(error) = tokio::spawn(test).await else {
        panic!("the test passed")
    };
    let message = *error.into_panic().downcast::<String>().expect("a panic has a message");
    let after = message.split_once("tests/cluster/failures.rs:").expect("the message names this file").1;
    let (line, message) = after.split_once(':').unwrap();
    let (_column, message) = message.split_once(": ").unwrap();
    (line.parse().unwrap(), message.to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_verb_names_its_line_its_object_and_the_servers_answer() {
    let cluster = Cluster::start().await;
    cluster.create(ada()).await;
    let before = line!();
    let (line, twice) = panic_of(async move { cluster.create(ada()).await }).await;
    assert!((before..line!()).contains(&line), "{line}");
    assert_eq!(twice, "create ConfigMap default/ada: configmaps \"ada\" already exists");

    let cluster = Cluster::start().await;
    let absent = panic_of(async move { cluster.get::<Namespace>("mars").await }).await.1;
    assert_eq!(absent, "get Namespace mars: namespaces \"mars\" not found");

    let cluster = Cluster::start().await;
    let elsewhere = panic_of(async move { cluster.delete::<ConfigMap>("kube-system/ada").await }).await.1;
    assert_eq!(elsewhere, "delete ConfigMap kube-system/ada: configmaps \"ada\" not found");

    let cluster = Cluster::start().await;
    let edited = panic_of(async move { cluster.edit("ada", |map: &mut ConfigMap| map.data = None).await })
        .await
        .1;
    assert_eq!(edited, "edit ConfigMap default/ada: configmaps \"ada\" not found");

    let cluster = Cluster::start().await;
    let ghosts = ApiResource::from_gvk(&GroupVersionKind::gvk("example.dev", "v1", "Ghost"));
    let unserved = panic_of(async move { cluster.dynamic(&ghosts).get("prod/boo").await }).await.1;
    assert!(unserved.starts_with("get Ghost prod/boo: "), "{unserved}");
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_fails_names_its_line_and_shows_the_object_as_last_seen() {
    let cluster = Cluster::start().await;
    cluster.create(ada()).await;
    let before = line!();
    let (line, message) =
        panic_of(async move { cluster.until("ada", |map: &ConfigMap| map.data.is_none()).await }).await;
    assert!((before..line!()).contains(&line), "{line}");
    let begin = "ConfigMap default/ada did not become what was expected; last seen:\n";
    assert!(message.starts_with(begin), "{message}");
    assert!(message.contains("  greeting: hello\n") && !message.contains("managedFields"), "{message}");

    let cluster = Cluster::start().await;
    let (_, message) = panic_of(async move { cluster.until("ada", |_: &ConfigMap| true).await }).await;
    assert!(message.ends_with("last seen:\nnothing: there is no such object"), "{message}");
}

/// Fails for every ConfigMap but `slow`, which it does not finish, and `later`, which it asks to see in six hours.
async fn fail(map: Arc<ConfigMap>, ctx: Context) -> Result {
    match map.metadata.name.as_deref() {
        Some("slow") => std::future::pending().await,
        Some("later") => Ok(Action::requeue_after(Duration::from_secs(6 * 3600))),
        Some("ghost") => Err(Error::permanent("there are no ghosts")),
        _ => {
            ctx.apply(Secret {
                type_: Some("kubernetes.io/tls".into()),
                ..Default::default()
            })
            .await?;
            Ok(Action::await_change())
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_fails_shows_errors_retries_and_queues_of_the_operator() {
    let controller = Controller::new(fail).owns::<Secret>().timeout(Duration::from_secs(6 * 3600));
    let cluster = Cluster::with(Operator::new("failer").controller(controller)).await;
    for name in ["ada", "ghost", "later", "slow"] {
        cluster.create(ConfigMap { metadata: named(name), ..Default::default() }).await;
    }
    let cluster = Arc::new(cluster);
    let waiter = cluster.clone();
    let (_, message) = panic_of(async move { waiter.until_gone::<ConfigMap>("slow").await }).await;
    let (_, report) = message.split_once("operator \"failer\":\n").expect(&message);
    let line = |about: &str| report.lines().find(|line| line.contains(about)).unwrap_or_else(|| panic!("{report}"));
    let ada = line("ConfigMap default/ada: failed ");
    assert!(
        ada.contains(" times in a row, last ") && ada.contains(": apply Secret default/ada: "),
        "{ada}"
    );
    assert!(
        ada.contains("data[tls.crt]") && ada.contains("; queued until ") && ada.contains(" (retry "),
        "{ada}"
    );
    assert!(line("default/ghost").contains("failed once "), "{report}");
    assert!(
        line("default/ghost").ends_with("there are no ghosts; not retried before a change; not queued"),
        "{report}"
    );
    assert!(line("default/slow").contains("being reconciled for "), "{report}");
    assert!(!report.contains("later"), "{report}");

    let waiter = cluster.clone();
    let (_, message) = panic_of(async move { waiter.until_event::<ConfigMap>("later", "Done").await }).await;
    assert!(
        message.starts_with("ConfigMap default/later has no event Done; it has: none\n"),
        "{message}"
    );
    assert!(
        message.contains("ConfigMap default/later: queued until ") && message.contains(" (requeued)"),
        "{message}"
    );
}

fn named(name: &str) -> kube::core::ObjectMeta {
    kube::core::ObjectMeta { name: Some(name.into()), ..Default::default() }
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_fails_shows_watches_that_fail() {
    let operator = Operator::new("seeker").controller(Controller::new(fail).owns::<Ghost>().owns::<Secret>());
    let cluster = Cluster::with(operator).await;
    let (_, message) = panic_of(async move { cluster.until("ada", |_: &Secret| true).await }).await;
    assert!(message.contains("\n  the watch of Ghost fails: "), "{message}");
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_kind_that_is_not_installed_fails_at_once() {
    let cluster = Cluster::start().await;
    let (_, message) = panic_of(async move { cluster.until_gone::<Ghost>("boo").await }).await;
    assert!(message.starts_with("watch Ghost default/boo: ") && message.contains("404"), "{message}");
}
