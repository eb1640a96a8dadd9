//! The work itself: creates, updates, status patches, gets, lists and watches, as requests to a [`Target`].

use crate::target::{Connection, Target};
use futures::future::join_all;
use http::Method;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tokio::sync::{broadcast, mpsc};

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/bench.flyball.dev/v1/namespaces/default/widgets";
const CREATES: usize = 2_000;
const GETS: usize = 2_000;
const LISTS: usize = 5;
const EVENTS: usize = 30;

/// Installs the kind that everything is measured with, and waits until it is served.
pub async fn prepare(target: &Target) {
    let mut connection = target.connect().await;
    connection.send(Method::POST, CRDS, crd().to_string()).await;
    // kube-apiserver serves a new kind some time after it answered; the first create may be held back for seconds.
    loop {
        let answer = connection.open(Method::POST, WIDGETS, widget("first").to_string()).await;
        let created = answer.status().is_success();
        answer.into_body().collect().await.expect("a whole answer");
        if created {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Creates objects over so many connections at once; the rate is objects a second.
pub async fn creates(target: &Target, connections: usize, round: usize) -> Vec<f64> {
    let count = count(connections);
    let start = Instant::now();
    create_many(target, connections, count, &prefix(connections, round)).await;
    vec![count as f64 / start.elapsed().as_secs_f64()]
}

/// Reads and replaces the objects that [`creates`] made in the same round, each once; the rate is objects a second.
pub async fn updates(target: &Target, connections: usize, round: usize) -> Vec<f64> {
    change_many(target, connections, round, async |connection, path| {
        let object = connection.send(Method::GET, path, "").await;
        let mut object: Value = serde_json::from_slice(&object).expect("JSON");
        object["spec"]["size"] = json!(4);
        connection.send(Method::PUT, path, object.to_string()).await;
    })
    .await
}

/// Patches the status of the objects that [`creates`] made in the same round, each once, as a controller does.
pub async fn status_patches(target: &Target, connections: usize, round: usize) -> Vec<f64> {
    change_many(target, connections, round, async |connection, path| {
        let patch = json!({ "status": { "phase": "Ready", "size": 4 } });
        connection.patch(&format!("{path}/status"), patch.to_string()).await;
    })
    .await
}

async fn change_many(
    target: &Target,
    connections: usize,
    round: usize,
    change: impl AsyncFn(&mut Connection, &str),
) -> Vec<f64> {
    let (count, change) = (count(connections), &change);
    let start = Instant::now();
    let tasks = (0..connections).map(|task| async move {
        let mut connection = target.connect().await;
        for index in (task..count).step_by(connections) {
            let path = format!("{WIDGETS}/{}-{index}", prefix(connections, round));
            change(&mut connection, &path).await;
        }
    });
    join_all(tasks).await;
    vec![count as f64 / start.elapsed().as_secs_f64()]
}

fn count(connections: usize) -> usize {
    if connections == 1 { CREATES / 4 } else { CREATES }
}

fn prefix(connections: usize, round: usize) -> String {
    format!("c{connections}r{round}")
}

/// Creates so many more objects.
pub async fn fill(target: &Target, count: usize) {
    create_many(target, 16, count, "fill").await;
}

async fn create_many(target: &Target, connections: usize, count: usize, prefix: &str) {
    let tasks = (0..connections).map(|task| async move {
        let mut connection = target.connect().await;
        for index in (task..count).step_by(connections) {
            let body = widget(&format!("{prefix}-{index}")).to_string();
            connection.send(Method::POST, WIDGETS, body).await;
        }
    });
    join_all(tasks).await;
}

/// Reads one object again and again over one connection.
pub async fn gets(target: &Target) -> Vec<Duration> {
    let mut connection = target.connect().await;
    let path = format!("{WIDGETS}/first");
    let mut times = Vec::with_capacity(GETS);
    for _ in 0..GETS {
        let start = Instant::now();
        connection.send(Method::GET, &path, "").await;
        times.push(start.elapsed());
    }
    times
}

/// Lists everything, unpaged.
pub async fn lists(target: &Target, least: usize) -> Vec<Duration> {
    let mut connection = target.connect().await;
    let mut times = Vec::new();
    for _ in 0..LISTS {
        let start = Instant::now();
        let body = connection.send(Method::GET, WIDGETS, "").await;
        times.push(start.elapsed());
        assert!(body.len() > least * 1024, "the list is whole");
    }
    times
}

/// From sending a create to the moment each of so many watchers has its event.
pub async fn watch_latency(target: &Target, watchers: usize) -> Vec<Duration> {
    let (seen, mut arrivals) = mpsc::unbounded_channel();
    let (stop, _) = broadcast::channel::<()>(1);
    let watches = (0..watchers).map(|_| watch(target, seen.clone(), stop.subscribe()));
    let tasks = join_all(watches).await;
    let mut connection = target.connect().await;
    let mut times = Vec::new();
    for index in 0..EVENTS {
        let name = format!("watch-{index}");
        let start = Instant::now();
        connection.send(Method::POST, WIDGETS, widget(&name).to_string()).await;
        for _ in 0..watchers {
            let arrived: Instant = arrivals.recv().await.expect("watchers go on");
            times.push(arrived.duration_since(start));
        }
        connection.send(Method::DELETE, &format!("{WIDGETS}/{name}"), "").await;
        for _ in 0..watchers {
            arrivals.recv().await.expect("watchers go on");
        }
    }
    drop(stop);
    join_all(tasks).await;
    times
}

/// Opens a watch and reports when each of its lines is complete.
async fn watch(
    target: &Target,
    seen: mpsc::UnboundedSender<Instant>,
    mut stop: broadcast::Receiver<()>,
) -> tokio::task::JoinHandle<()> {
    let mut connection = target.connect().await;
    let list = connection.send(Method::GET, &format!("{WIDGETS}?limit=1"), "").await;
    let list: Value = serde_json::from_slice(&list).expect("JSON");
    let version = list["metadata"]["resourceVersion"].as_str().expect("a version").to_owned();
    let path = format!("{WIDGETS}?watch=true&resourceVersion={version}");
    let mut body = connection.open(Method::GET, &path, "").await.into_body();
    tokio::spawn(async move {
        loop {
            let frame = tokio::select! {
                frame = body.frame() => frame,
                _ = stop.recv() => break,
            };
            let now = Instant::now();
            let data = frame.expect("a watch goes on").expect("a frame").into_data().unwrap_or_default();
            for _ in data.iter().filter(|byte| **byte == b'\n') {
                seen.send(now).expect("the measurement goes on");
            }
        }
        drop(connection);
    })
}

fn widget(name: &str) -> Value {
    json!({
        "apiVersion": "bench.flyball.dev/v1",
        "kind": "Widget",
        "metadata": { "name": name, "labels": { "app": "bench" } },
        "spec": { "size": 3, "text": "x".repeat(700) },
    })
}

fn crd() -> Value {
    let spec = json!({ "type": "object", "properties": {
        "size": { "type": "integer", "minimum": 0 },
        "text": { "type": "string", "maxLength": 2000 },
    } });
    let status = json!({ "type": "object", "properties": {
        "phase": { "type": "string" },
        "size": { "type": "integer" },
    } });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "widgets.bench.flyball.dev" },
        "spec": {
            "group": "bench.flyball.dev",
            "scope": "Namespaced",
            "names": { "plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": {
                    "type": "object", "properties": { "spec": spec, "status": status },
                } },
            }],
        },
    })
}
