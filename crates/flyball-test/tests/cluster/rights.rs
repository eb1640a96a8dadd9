//! Operators under test have the rights that they declare, and no others.

use flyball::{Action, Context, Controller, Operator, Result};
use flyball_test::Cluster;
use k8s_openapi::api::{
    core::v1::{ConfigMap, Secret},
    rbac::v1::PolicyRule,
};
use kube::{Api, ResourceExt, api::ListParams};
use serde_json::json;
use std::sync::Arc;

async fn copy(map: Arc<ConfigMap>, ctx: Context) -> Result {
    ctx.apply(Secret { string_data: map.data.clone(), ..Secret::default() }).await?;
    Ok(Action::await_change())
}

fn operator() -> Operator {
    Operator::new("copier").controller(Controller::new(copy).owns::<Secret>())
}

/// Lists Secrets past the cache.
async fn count(map: Arc<ConfigMap>, ctx: Context) -> Result {
    let secrets: Api<Secret> = Api::namespaced(ctx.client(), &map.namespace().unwrap_or_default());
    secrets.list(&ListParams::default()).await?;
    Ok(Action::await_change())
}

fn ada() -> ConfigMap {
    serde_json::from_value(json!({ "metadata": { "name": "ada" }, "data": { "a": "1" } })).unwrap()
}

fn verbs<'a>(rules: &'a [PolicyRule], resource: &str) -> Vec<&'a str> {
    let about = |rule: &&PolicyRule| rule.resources.iter().flatten().any(|own| own == resource);
    rules
        .iter()
        .filter(about)
        .flat_map(|rule| rule.verbs.iter().map(String::as_str))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_missing_right_fails_the_test_with_the_line_to_add() {
    let test = tokio::spawn(async {
        let counter = Operator::new("counter").controller(Controller::new(count));
        let cluster = Cluster::with(counter).await;
        cluster.create(ada()).await;
        cluster.until("ada", |_: &Secret| true).await;
    });

    let message = *test.await.unwrap_err().into_panic().downcast::<String>().unwrap();

    let hint = r#"the operator may not list secrets in API group "": add `.reads::<Secret>()`"#;
    assert!(message.ends_with(hint), "{message}");
    assert!(message.contains("tests/cluster/rights.rs"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn the_declared_right_is_enough() {
    let counter = Operator::new("counter").controller(Controller::new(count).needs::<Secret>(["list"]));
    let cluster = Cluster::with(counter).await;
    cluster.create(ada()).await;

    while cluster
        .rbac()
        .iter()
        .all(|rule| !rule.resources.iter().flatten().any(|own| own == "secrets"))
    {
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    }

    assert_eq!(cluster.missing_rights(), Vec::<String>::new());
    assert_eq!(verbs(&cluster.rbac(), "secrets"), ["list"]);
}

#[tokio::test(start_paused = true)]
async fn the_smallest_role_and_what_is_left_over_are_known() {
    let cluster = Cluster::with(operator()).await;
    cluster.create(ada()).await;
    cluster.until("ada", |_: &Secret| true).await;

    assert_eq!(verbs(&cluster.rbac(), "configmaps"), ["list", "watch"]);
    assert_eq!(verbs(&cluster.rbac(), "secrets"), ["list", "patch", "watch"]);
    let unused = cluster.unused_rights("copier");
    assert!(verbs(&unused, "secrets").contains(&"delete"), "{unused:?}");
    assert!(!verbs(&unused, "secrets").contains(&"patch"), "{unused:?}");
}
