//! CustomResourceDefinitions on a server that has many: what one more costs, and what it costs others meanwhile.

use crate::{
    report::{Aim, Row},
    server::{Beside, PEER, start},
    target::{Connection, Target},
};
use http::Method;
use serde_json::{Map, Value, json};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// What other clients read meanwhile.
const UNRELATED: &str = "/api/v1/namespaces/default";
/// How many definitions there are before anything is measured.
const INSTALLED: usize = 700;
/// How many definitions share a group, as in the definitions of published operators.
const PER_GROUP: usize = 3;
/// How many definitions are created and deleted again, in each of the three rounds.
const MEASURED: usize = 20;

/// Every figure, measured on both in turns.
pub fn rows() -> Vec<Row> {
    tokio::runtime::Runtime::new().expect("a runtime").block_on(measure())
}

async fn measure() -> Vec<Row> {
    start::build();
    let peer = start::Peer::start().await;
    let ours = start::Ours::start().await;
    let [ours, peer] = [&ours.target, &peer.target];
    for target in [ours, peer] {
        let start = Instant::now();
        install(target).await;
        let took = start.elapsed().as_secs();
        let memory = target.memory() / (1 << 20) as f64;
        eprintln!(
            "bench: {}: {INSTALLED} definitions in {took} s, then {memory:.0} MiB resident",
            target.name
        );
    }
    let (mut of_ours, mut of_peer) = (Times::default(), Times::default());
    for round in 0..3 {
        change(ours, round, &mut of_ours).await;
        change(peer, round, &mut of_peer).await;
    }
    let row = |what: &str, share, of: fn(&Times) -> &Vec<Duration>| {
        Beside(PEER).time(what, [of(&of_ours).clone(), of(&of_peer).clone()], share, Aim::Times(1.0))
    };
    vec![
        row("create a CRD beside 700, p50", 0.5, |times| &times.creates),
        row("create a CRD beside 700, p99", 0.99, |times| &times.creates),
        row("delete a CRD beside 700, p50", 0.5, |times| &times.deletes),
        row("delete a CRD beside 700, p99", 0.99, |times| &times.deletes),
        row("unrelated get meanwhile, p50", 0.5, |times| &times.gets),
        row("unrelated get meanwhile, slowest", 1.0, |times| &times.gets),
    ]
}

#[derive(Default)]
struct Times {
    creates: Vec<Duration>,
    deletes: Vec<Duration>,
    gets: Vec<Duration>,
}

async fn install(target: &Target) {
    let mut connection = target.connect().await;
    for index in 0..INSTALLED {
        connection.send(Method::POST, CRDS, definition("installed", index).to_string()).await;
    }
    until_established(&mut connection, &name("installed", INSTALLED - 1)).await;
}

/// Creates and deletes definitions, while another connection reads something else.
async fn change(target: &Target, round: usize, times: &mut Times) {
    let (stop, stopped) = oneshot::channel();
    let reads = tokio::spawn(read(target.clone(), stopped));
    let mut connection = target.connect().await;
    let prefix = format!("more{round}x");
    for index in 0..MEASURED {
        let body = definition(&prefix, index).to_string();
        let start = Instant::now();
        connection.send(Method::POST, CRDS, body).await;
        times.creates.push(start.elapsed());
        until_established(&mut connection, &name(&prefix, index)).await;
    }
    for index in 0..MEASURED {
        let path = format!("{CRDS}/{}", name(&prefix, index));
        let start = Instant::now();
        connection.send(Method::DELETE, &path, "").await;
        times.deletes.push(start.elapsed());
    }
    stop.send(()).expect("the reader goes on until it is stopped");
    times.gets.extend(reads.await.expect("the reader ends"));
}

async fn read(target: Target, mut stopped: oneshot::Receiver<()>) -> Vec<Duration> {
    let mut connection = target.connect().await;
    let mut times = Vec::new();
    while stopped.try_recv() == Err(oneshot::error::TryRecvError::Empty) {
        let start = Instant::now();
        connection.send(Method::GET, UNRELATED, "").await;
        times.push(start.elapsed());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    times
}

async fn until_established(connection: &mut Connection, name: &str) {
    loop {
        let body = connection.send(Method::GET, &format!("{CRDS}/{name}"), "").await;
        let definition: Value = serde_json::from_slice(&body).expect("JSON");
        let conditions = definition["status"]["conditions"].as_array().cloned().unwrap_or_default();
        if conditions.iter().any(|it| it["type"] == "Established" && it["status"] == "True") {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn name(prefix: &str, index: usize) -> String {
    format!("{prefix}{index}s.{}", group(prefix, index))
}

fn group(prefix: &str, index: usize) -> String {
    format!("{prefix}{}.bench.flyball.dev", index / PER_GROUP)
}

/// A definition of about 60 KiB, most of it descriptions, as those of published operators.
fn definition(prefix: &str, index: usize) -> Value {
    let names = json!({"plural": format!("{prefix}{index}s"), "kind": format!("K{prefix}{index}")});
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": sections()},
        "status": {"type": "object", "properties": {"observedGeneration": {"type": "integer"}}},
    }});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": name(prefix, index)},
        "spec": {
            "group": group(prefix, index), "scope": "Namespaced", "names": names,
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": schema}}],
        },
    })
}

fn sections() -> Map<String, Value> {
    let text =
        "Says how the controller treats this part of the object, which values it takes, and what follows if absent. ";
    let field = |number: usize| match number % 4 {
        0 => json!({"type": "string", "description": text.repeat(2), "maxLength": 253, "pattern": "^[a-z0-9-]*$"}),
        1 => json!({"type": "integer", "description": text.repeat(2), "format": "int32", "minimum": 0, "default": 1}),
        2 => {
            json!({"type": "array", "description": text, "items": {"type": "string"}, "x-kubernetes-list-type": "set"})
        }
        _ => json!({"type": "object", "description": text, "additionalProperties": {"type": "string"}}),
    };
    let section = |number: usize| {
        let fields: Map<String, Value> = (0..16).map(|index| (format!("field{index}"), field(index))).collect();
        (
            format!("section{number}"),
            json!({"type": "object", "description": text, "properties": fields}),
        )
    };
    (0..14).map(section).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_of_a_real_size() {
        let bytes = definition("more", 7).to_string().len();
        assert!((55_000..70_000).contains(&bytes), "{bytes}");
    }
}
