//! The lifetime of Events.

use flyball_test::Cluster;
use jiff::ToSpan;
use k8s_openapi::api::core::v1::Event;
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;
use std::time::Duration;
use tokio::time::{Instant, sleep};

const MINUTE: u64 = 60;

fn event(name: &str) -> Event {
    serde_json::from_value(json!({
        "metadata": { "name": name },
        "involvedObject": { "kind": "Pod", "namespace": "default", "name": "a" },
    }))
    .unwrap()
}

#[tokio::test(start_paused = true)]
async fn events_expire_an_hour_after_they_were_last_seen() {
    let cluster = Cluster::start().await;
    let events: Api<Event> = Api::namespaced(cluster.client(), "default");
    for name in ["once", "again"] {
        events.create(&PostParams::default(), &event(name)).await.unwrap();
    }
    let (created, started) = (events.get("again").await.unwrap(), Instant::now());
    sleep(Duration::from_secs(50 * MINUTE)).await;
    let later = created.metadata.creation_timestamp.unwrap().0 + 50.minutes();
    let repeat = json!({ "count": 2, "lastTimestamp": later.to_string() });
    events.patch("again", &PatchParams::default(), &Patch::Merge(repeat)).await.unwrap();

    cluster.until_gone::<Event>("once").await;
    let minutes = started.elapsed().as_secs() / MINUTE;
    assert!((59..=61).contains(&minutes), "{minutes}");
    assert!(events.get_opt("again").await.unwrap().is_some());
    cluster.until_gone::<Event>("again").await;
    let minutes = started.elapsed().as_secs() / MINUTE;
    assert!((109..=111).contains(&minutes), "{minutes}");
}
