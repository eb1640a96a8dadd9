//! Flyball's API server beside etcd and kube-apiserver: the same requests over the same kind of connection, fsync on in both.

mod load;
pub(crate) mod start;

use crate::{
    figure::{Figure, percentile},
    report::{Aim, Row},
    target::Target,
};
use std::{path::Path, time::Duration};

pub(crate) const PEER: &str = "etcd + kube-apiserver";

/// How many custom resources of 1 KiB fill a server for the figures of lists and memory.
const OBJECTS: usize = 10_000;

/// Every figure, measured on both in turns.
pub fn rows() -> Vec<Row> {
    tokio::runtime::Runtime::new().expect("a runtime").block_on(measure())
}

/// Every figure but the starts, beside those of another build of `flyball`; the aim is to be at most 10 % slower.
pub fn rows_beside(program: &Path) -> Vec<Row> {
    tokio::runtime::Runtime::new().expect("a runtime").block_on(async {
        start::build();
        let other = start::Ours::start_program("the other build", program).await;
        let ours = start::Ours::start().await;
        let rows = compare(&ours.target, &other.target).await;
        rows.into_iter().map(|row| Row { aim: Aim::Times(0.9), ..row }).collect()
    })
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
    let beside = Beside(peer.name);
    let mut rows = vec![beside.memory("memory, idle", idle, Aim::Times(10.0))];
    load::prepare(ours).await;
    load::prepare(peer).await;
    for connections in [1, 16] {
        let what = |work: &str| format!("{work}, {connections} connections, durable");
        let rates = both(ours, peer, async |target, round| load::creates(target, connections, round).await).await;
        rows.push(beside.rate(what("creates"), rates, Aim::Times(5.0)));
        let rates = both(ours, peer, async |target, round| load::updates(target, connections, round).await).await;
        rows.push(beside.rate(what("reads and updates"), rates, Aim::Times(1.0)));
        let rates =
            both(ours, peer, async |target, round| load::status_patches(target, connections, round).await).await;
        rows.push(beside.rate(what("status patches"), rates, Aim::Times(1.0)));
    }
    let gets = both(ours, peer, async |target, _| load::gets(target).await).await;
    rows.push(beside.time("get, p50", gets, 0.5, Aim::Times(1.0)));
    let before = [ours.memory(), peer.memory()];
    load::fill(ours, OBJECTS).await;
    load::fill(peer, OBJECTS).await;
    let grown = [
        (ours.memory() - before[0]) / OBJECTS as f64,
        (peer.memory() - before[1]) / OBJECTS as f64,
    ];
    rows.push(beside.memory("memory, per custom resource of 1 KiB", grown, Aim::Times(3.0)));
    let lists = both(ours, peer, async |target, _| load::lists(target, OBJECTS).await).await;
    rows.push(beside.time("list of 10,000, p50", lists, 0.5, Aim::Times(1.0)));
    let latencies = both(ours, peer, async |target, _| load::watch_latency(target, 100).await).await;
    rows.push(beside.time("watch latency, 100 watchers, p50", latencies.clone(), 0.5, Aim::Times(1.0)));
    rows.push(beside.time("watch latency, 100 watchers, p99", latencies, 0.99, Aim::Times(1.0)));
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

/// Makes rows beside the peer of this name.
pub(crate) struct Beside(pub &'static str);

impl Beside {
    fn rate(&self, what: String, [mut ours, mut peer]: [Vec<f64>; 2], aim: Aim) -> Row {
        ours.sort_by(f64::total_cmp);
        peer.sort_by(f64::total_cmp);
        let middle = |rates: &[f64]| Figure::Rate(rates[rates.len() / 2]);
        self.row(what, [middle(&ours), middle(&peer)], aim)
    }

    pub(crate) fn time(&self, what: &str, [mut ours, mut peer]: [Vec<Duration>; 2], share: f64, aim: Aim) -> Row {
        let figures = [percentile(&mut ours, share), percentile(&mut peer, share)];
        self.row(what.into(), figures.map(Figure::Time), aim)
    }

    fn memory(&self, what: &str, bytes: [f64; 2], aim: Aim) -> Row {
        self.row(what.into(), bytes.map(Figure::Bytes), aim)
    }

    fn row(&self, what: String, [ours, peer]: [Figure; 2], aim: Aim) -> Row {
        Row { what, ours, peer: Some((self.0, peer)), aim }
    }
}
