//! Ten minutes of load on an API server that fails: no change is missed, no request is repeated without end, no queue grows.
//!
//! It takes some seconds: ten minutes are six hundred changes and as many reconciles for each seed, however fast the clock.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use flyball::{Action, Context, Controller, Operator, Result, Running};
use flyball_test::{Cluster, Faults};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{
    Api, ResourceExt,
    api::{ListParams, Patch, PatchParams, PostParams},
};
use serde_json::json;
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio::time::sleep;

const MINUTES: u64 = 10;

/// Keeps a Secret beside every ConfigMap that has a value, with the same value.
async fn reconcile(map: Arc<ConfigMap>, ctx: Context) -> Result {
    let Some(value) = map.data.as_ref().and_then(|data| data.get("value")) else {
        return Ok(Action::await_change());
    };
    let string_data = Some([("value".into(), value.clone())].into());
    ctx.apply(Secret { string_data, ..Default::default() }).await?;
    Ok(Action::await_change())
}

fn operator() -> Operator {
    let controller = Controller::new(reconcile).owns::<Secret>().timeout(Duration::from_secs(90));
    Operator::new("copier").controller(controller)
}

async fn change(maps: &Api<ConfigMap>, step: u64) {
    let name = format!("map-{}", step * 7 % 40);
    if step % 9 == 8 {
        maps.delete(&name, &Default::default()).await.map(drop).unwrap_or_default();
        return;
    }
    let value = json!({ "data": { "value": step.to_string() } });
    if maps.patch(&name, &PatchParams::default(), &Patch::Merge(&value)).await.is_err() {
        let map = json!({ "metadata": { "name": name }, "data": value["data"] });
        maps.create(&PostParams::default(), &serde_json::from_value(map).unwrap()).await.unwrap();
    }
}

/// The values of the ConfigMaps, and of the Secrets that the operator applied for them.
async fn values(cluster: &Cluster) -> [BTreeMap<String, String>; 2] {
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client(), "default");
    let secrets: Api<Secret> = Api::namespaced(cluster.client(), "default");
    let all = ListParams::default();
    let maps = maps.list(&all).await.unwrap().items.into_iter();
    let secrets = secrets.list(&all).await.unwrap().items.into_iter();
    [
        maps.filter_map(|map| Some((map.name_any(), map.data.clone()?.remove("value")?)))
            .collect(),
        secrets
            .filter_map(|secret| {
                let value = secret.data.clone()?.remove("value")?;
                Some((secret.name_any(), String::from_utf8(value.0).unwrap()))
            })
            .collect(),
    ]
}

fn sizes(running: &Running) -> (usize, usize, usize) {
    let queue = &running.queues(1_000)[0];
    let cached = running.cache().watches().iter().map(|watch| watch.objects).sum();
    (queue.ready + queue.waiting + queue.running, queue.failing.len(), cached)
}

#[tokio::test(start_paused = true)]
async fn the_operator_converges_and_goes_quiet_after_ten_minutes_of_faults() {
    for seed in [1, 2, 3] {
        let cluster = Cluster::start().await;
        let faults = Faults::seeded(seed);
        let running = operator().start(faults.client(cluster.client())).await.unwrap();
        let maps: Api<ConfigMap> = Api::namespaced(cluster.client(), "default");
        for step in 0..MINUTES * 60 {
            change(&maps, step).await;
            sleep(Duration::from_secs(1)).await;
        }
        let (requests, injected) = faults.counts();
        assert!(injected > 50, "seed {seed}: only {injected} of {requests} requests failed");
        // One apply for each change, and the lists and watches that are retried for ten minutes.
        assert!(
            requests < 4 * MINUTES * 60,
            "seed {seed}: {requests} requests for {} changes",
            MINUTES * 60
        );

        faults.heal();
        sleep(Duration::from_secs(600)).await;
        let [wanted, found] = values(&cluster).await;
        assert_eq!(found, wanted, "seed {seed}");
        let (queued, failing, cached) = sizes(&running);
        assert_eq!((queued, failing), (0, 0), "seed {seed}");

        // Without changes it renews its watches only.
        let (before, _) = faults.counts();
        sleep(Duration::from_secs(600)).await;
        let (after, _) = faults.counts();
        assert!(after - before <= 8, "seed {seed}: {} requests without a change", after - before);
        assert_eq!(sizes(&running), (0, 0, cached), "seed {seed}");
        running.stop().await;
    }
}
