//! Flyball's API server beside etcd and kube-apiserver: the same requests over the same kind of connection, fsync on in both.

mod load;
pub(crate) mod start;

use crate::{
    figure::{Figure, percentile},
    report::{Aim, Row},
    target::Target,
};
use std::time::Duration;

const PEER: &str = "etcd + kube-apiserver";

/// How many custom resources of 1 KiB fill a server for the figures of lists and memory.
const OBJECTS: usize = 10_000;

/// Every figure, measured on both in turns.
pub fn rows() -> Vec<Row> {
    tokio::runtime::Runtime::new().expect("a runtime").block_on(measure())
}

async fn measure() -> Vec<Row> {
    let mut rows = start::rows().await;
    let peer = start::Peer::start().await;
    let ours = start::Ours::start().await;
    rows.extend(compare(&ours.target, &peer.target).await);
    rows
}

async fn compare(ours: &Target, peer: &Target) -> Vec<Row> {
    let idle = [ours.memory(), peer.memory()];
    let mut rows = vec![memory("memory, idle", idle, Aim::Times(10.0))];
    load::prepare(ours).await;
    load::prepare(peer).await;
    for connections in [1, 16] {
        let rates = both(ours, peer, async |target, round| load::creates(target, connections, round).await).await;
        rows.push(rate(format!("creates, {connections} connections, durable"), rates, Aim::Times(5.0)));
    }
    let gets = both(ours, peer, async |target, _| load::gets(target).await).await;
    rows.push(time("get, p50", gets, 0.5, Aim::Times(1.0)));
    let before = [ours.memory(), peer.memory()];
    load::fill(ours, OBJECTS).await;
    load::fill(peer, OBJECTS).await;
    let grown = [
        (ours.memory() - before[0]) / OBJECTS as f64,
        (peer.memory() - before[1]) / OBJECTS as f64,
    ];
    rows.push(memory("memory, per custom resource of 1 KiB", grown, Aim::Times(3.0)));
    let lists = both(ours, peer, async |target, _| load::lists(target, OBJECTS).await).await;
    rows.push(time("list of 10,000, p50", lists, 0.5, Aim::Times(1.0)));
    let latencies = both(ours, peer, async |target, _| load::watch_latency(target, 100).await).await;
    rows.push(time("watch latency, 100 watchers, p50", latencies.clone(), 0.5, Aim::Times(1.0)));
    rows.push(time("watch latency, 100 watchers, p99", latencies, 0.99, Aim::Times(1.0)));
    rows
}

/// Runs the same work on both, three rounds in turns, and gathers what it returns.
async fn both<T>(ours: &Target, peer: &Target, work: impl AsyncFn(&Target, usize) -> Vec<T>) -> [Vec<T>; 2] {
    let (mut of_ours, mut of_peer) = (Vec::new(), Vec::new());
    for round in 0..3 {
        of_ours.extend(work(ours, round).await);
        of_peer.extend(work(peer, round).await);
    }
    [of_ours, of_peer]
}

fn rate(what: String, [mut ours, mut peer]: [Vec<f64>; 2], aim: Aim) -> Row {
    ours.sort_by(f64::total_cmp);
    peer.sort_by(f64::total_cmp);
    let middle = |rates: &[f64]| Figure::Rate(rates[rates.len() / 2]);
    Row {
        what,
        ours: middle(&ours),
        peer: Some((PEER, middle(&peer))),
        aim,
    }
}

pub(crate) fn time(what: &str, [mut ours, mut peer]: [Vec<Duration>; 2], share: f64, aim: Aim) -> Row {
    let (ours, peer) = (percentile(&mut ours, share), percentile(&mut peer, share));
    Row {
        what: what.into(),
        ours: Figure::Time(ours),
        peer: Some((PEER, Figure::Time(peer))),
        aim,
    }
}

fn memory(what: &str, [ours, peer]: [f64; 2], aim: Aim) -> Row {
    Row {
        what: what.into(),
        ours: Figure::Bytes(ours),
        peer: Some((PEER, Figure::Bytes(peer))),
        aim,
    }
}
