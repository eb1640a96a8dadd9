//! The store on disk beside etcd, through the same trait, on the same disk, both waiting for it.

mod child;
mod load;

pub use child::child;

use crate::{
    figure::{Figure, median, percentile},
    report::{Aim, Row},
};
use conformance::reference::{Etcd as Cluster, Setting};
use flyball_store::{Etcd, Store};
use std::time::{Duration, Instant};

const PEER: &str = "etcd";

/// What the figures are of.
const WHAT: &str = "\
store: both are called through the same trait, ours in this process, etcd over loopback, and both fsync the same disk before
they acknowledge a put. Creates are of new keys, updates of existing ones. Gets and ranges are of values written lately unless
the row says otherwise. Memory and opening are of processes of their own, after they were filled.";

/// Every figure, measured on both in turns.
pub fn rows() -> Vec<Row> {
    println!("{WHAT}");
    tokio::runtime::Runtime::new().expect("a runtime").block_on(measure())
}

async fn measure() -> Vec<Row> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let cluster = Cluster::start(1, Setting::Durable).await.expect("etcd starts");
    let ours = Store::open(directory.path().join("store")).await.expect("a new store");
    let peer = open(&cluster).await;
    let mut rows = compare([&ours, &peer]).await;
    ours.close().await;
    peer.close().await;
    drop(cluster);
    rows.push(memory().await);
    rows.push(opening().await);
    rows
}

async fn compare(stores: [&Store; 2]) -> Vec<Row> {
    let mut rows = Vec::new();
    for (tasks, aim) in [(1, 3.0), (16, 4.0), (256, 4.0)] {
        let rates = turns(stores, 7, async |store, round| load::creates(store, tasks, round).await).await;
        rows.push(rate(format!("durable creates of 1 KiB, {tasks} tasks"), rates, aim));
        both(stores, async |store, round| {
            if round == 0 {
                load::fill(store, &format!("/updates/{tasks}"), tasks * load::UPDATED).await
            }
        })
        .await;
        let rates = turns(stores, 7, async |store, _| load::updates(store, tasks).await).await;
        rows.push(rate(format!("durable updates of 1 KiB, {tasks} tasks"), rates, aim));
    }
    both(stores, async |store, round| {
        if round == 0 {
            load::fill(store, "/range", 10_000).await
        }
    })
    .await;
    let rates = both(stores, async |store, _| load::gets(store, 16).await).await;
    rows.push(rate("gets, 16 tasks".into(), rates, 10.0));
    let times = both(stores, async |store, _| load::ranges(store).await).await;
    let [ours, peer] = times.map(|rounds| median(rounds.concat()));
    rows.push(time("range of 10,000, p50".into(), [ours, peer], 10.0));
    let [ours, peer] = both(stores, async |store, round| load::old_range(store, round).await).await.map(median);
    rows.push(time("range of 10,000 from before 20,000 others".into(), [ours, peer], 1.0));
    // etcd delivers events of earlier writes for seconds, which takes CPU time from the next measurement.
    turns(stores, 1, async |store, _| load::watch(store, 1).await).await;
    for watchers in [1, 100, 1_000] {
        let times = both(stores, async |store, _| load::watch(store, watchers).await).await;
        let [mut ours, mut peer] = times.map(|rounds| rounds.concat());
        for (name, share) in [("p50", 0.5), ("p99", 0.99)] {
            let pair = [percentile(&mut ours, share), percentile(&mut peer, share)];
            rows.push(time(format!("put to the last of {watchers} watchers, {name}"), pair, 1.0));
        }
    }
    rows
}

/// Runs the same work on both, three rounds in turns, and gathers what it returns.
async fn both<T>(stores: [&Store; 2], work: impl AsyncFn(&Store, usize) -> T) -> [Vec<T>; 2] {
    turns(stores, 3, work).await
}

/// The same with a number of rounds: figures that depend on the disk need more of them.
async fn turns<T>(stores: [&Store; 2], rounds: usize, work: impl AsyncFn(&Store, usize) -> T) -> [Vec<T>; 2] {
    let mut results = [Vec::new(), Vec::new()];
    for round in 0..rounds {
        for (store, results) in stores.into_iter().zip(&mut results) {
            results.push(work(store, round).await);
        }
    }
    results
}

/// The resident memory of a process that holds 100,000 values of 1 KiB.
async fn memory() -> Row {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let ours = child::memory(&directory.path().join("store"));
    let cluster = Cluster::start(1, Setting::Hasty).await.expect("etcd starts");
    let peer = open(&cluster).await;
    load::fill(&peer, "/memory", load::VALUES).await;
    let of_peer = cluster.pids().into_iter().map(crate::target::resident).sum();
    Row {
        what: "resident memory, 100,000 values of 1 KiB".into(),
        ours: Figure::Bytes(ours),
        peer: Some((PEER, Figure::Bytes(of_peer))),
        aim: Aim::Times(2.0),
    }
}

/// The time until a store of 1 GiB answers: ours is opened, etcd is started.
async fn opening() -> Row {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let ours = child::opening(&directory.path().join("store"));
    let mut cluster = Cluster::start(1, Setting::Hasty).await.expect("etcd starts");
    let peer = open(&cluster).await;
    load::fill_large(&peer).await;
    peer.close().await;
    cluster.kill(0);
    let started = Instant::now();
    cluster.restart(0).expect("etcd starts again");
    drop(open(&cluster).await);
    time("open, 1 GiB".into(), [ours, started.elapsed()], 1.0)
}

async fn open(cluster: &Cluster) -> Store {
    Etcd::new(cluster.endpoints()).without_compaction().open().await.expect("etcd answers")
}

fn rate(what: String, rates: [Vec<f64>; 2], times: f64) -> Row {
    let [ours, peer] = rates.map(|mut rates| {
        rates.sort_by(f64::total_cmp);
        Figure::Rate(rates[rates.len() / 2])
    });
    Row { what, ours, peer: Some((PEER, peer)), aim: Aim::Times(times) }
}

fn time(what: String, [ours, peer]: [Duration; 2], times: f64) -> Row {
    Row {
        what,
        ours: Figure::Time(ours),
        peer: Some((PEER, Figure::Time(peer))),
        aim: Aim::Times(times),
    }
}
