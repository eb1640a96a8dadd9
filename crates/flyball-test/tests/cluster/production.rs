//! An operator runs in a test as it does in production: elected, one replica at a time.

use flyball::{Action, Context, Controller, Operator, Result};
use flyball_test::Cluster;
use k8s_openapi::api::{
    coordination::v1::Lease,
    core::v1::{ConfigMap, Secret},
};
use std::sync::Arc;

async fn copy(map: Arc<ConfigMap>, ctx: Context) -> Result {
    ctx.apply(Secret { string_data: map.data.clone(), ..Secret::default() }).await?;
    Ok(Action::await_change())
}

fn operator() -> Operator {
    Operator::new("copier").controller(Controller::new(copy).owns::<Secret>())
}

#[tokio::test(start_paused = true)]
async fn an_operator_is_elected_and_a_second_one_waits() {
    let mut cluster = Cluster::with(operator()).await;
    let held = |lease: &Lease| lease.spec.as_ref().is_some_and(|spec| spec.holder_identity.is_some());
    let lease = cluster.until("copier", held).await;
    cluster.run(operator()).await;
    let map = serde_json::json!({ "metadata": { "name": "ada" }, "data": { "a": "1" } });
    cluster.create(serde_json::from_value::<ConfigMap>(map).unwrap()).await;
    cluster.until("ada", |_: &Secret| true).await;
    let holder = |lease: Lease| lease.spec.unwrap().holder_identity;
    assert_eq!(holder(cluster.get("copier").await), holder(lease), "the first one leads");
}
