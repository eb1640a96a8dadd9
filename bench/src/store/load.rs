//! The load on a store. It knows only the trait, so that every backend gets the same requests.

use flyball_store::{Expect, Op, Range, Store};
use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::task::JoinSet;

/// How many values fill a store.
pub const VALUES: usize = 100_000;

/// How many keys each task updates in turn.
pub const UPDATED: usize = 20;

const VALUE: usize = 1_024;
const FOR: Duration = Duration::from_secs(2);

/// Large values and their number, 1 GiB in all.
const LARGE: usize = 64 << 10;
const LARGES: usize = (1 << 30) / LARGE;

fn put(key: String, length: usize) -> Vec<Op> {
    vec![Op::put(key, vec![b'v'; length], Expect::Absent)]
}

/// Creates keys with some tasks for a while; returns how many a second.
pub async fn creates(store: &Store, tasks: usize, round: usize) -> f64 {
    repeat(store, tasks, move |store, task, n| async move {
        let key = format!("/creates/{tasks}/{round}/{task}/{n}");
        store.commit(put(key, VALUE)).await.expect("a create");
    })
    .await
}

/// Updates keys that are there, each task its own; returns how many a second.
pub async fn updates(store: &Store, tasks: usize) -> f64 {
    repeat(store, tasks, move |store, task, n| async move {
        let key = format!("/updates/{tasks}/{:08}", task * UPDATED + n % UPDATED);
        let update = Op::put(key, vec![b'u'; VALUE], Expect::Anything);
        store.commit(vec![update]).await.expect("an update");
    })
    .await
}

/// Gets keys that are there; returns how many a second.
pub async fn gets(store: &Store, tasks: usize) -> f64 {
    repeat(store, tasks, |store, task, n| async move {
        let key = format!("/range/{:08}", (task * 131 + n * 7_919) % 10_000);
        assert!(store.get(key).await.expect("a get").is_some());
    })
    .await
}

async fn repeat<F, W>(store: &Store, tasks: usize, work: W) -> f64
where
    F: Future<Output = ()> + Send,
    W: Fn(Store, usize, usize) -> F + Clone + Send + 'static,
{
    let count = Arc::new(AtomicUsize::new(0));
    let started = Instant::now();
    let mut running = JoinSet::new();
    for task in 0..tasks {
        let (store, work, count) = (store.clone(), work.clone(), count.clone());
        running.spawn(async move {
            let mut n = 0;
            while started.elapsed() < FOR {
                work(store.clone(), task, n).await;
                n += 1;
                // A get from memory never yields by itself.
                if n.is_multiple_of(64) {
                    tokio::task::yield_now().await;
                }
            }
            count.fetch_add(n, Ordering::Relaxed);
        });
    }
    running.join_all().await;
    count.load(Ordering::Relaxed) as f64 / started.elapsed().as_secs_f64()
}

/// Puts some values of 1 KiB under a prefix.
pub async fn fill(store: &Store, prefix: &str, values: usize) {
    fill_with(store, prefix, values, VALUE, 256).await;
}

/// Puts 1 GiB.
pub async fn fill_large(store: &Store) {
    fill_with(store, "/large", LARGES, LARGE, 16).await;
}

async fn fill_with(store: &Store, prefix: &str, values: usize, length: usize, tasks: usize) {
    let mut running = JoinSet::new();
    for task in 0..tasks {
        let (store, prefix) = (store.clone(), prefix.to_owned());
        running.spawn(async move {
            for n in (task..values).step_by(tasks) {
                store.commit(put(format!("{prefix}/{n:08}"), length)).await.expect("a put");
            }
        });
    }
    running.join_all().await;
}

/// Reads 10,000 values at once, some times.
pub async fn ranges(store: &Store) -> Vec<Duration> {
    let mut times = Vec::new();
    for _ in 0..10 {
        let started = Instant::now();
        let page = store.range(Range::prefix("/range/")).await.expect("a range");
        times.push(started.elapsed());
        assert_eq!(page.entries.len(), 10_000);
    }
    times
}

/// Reads 10,000 values at once that have not been touched while twice as many were written.
pub async fn old_range(store: &Store, round: usize) -> Duration {
    fill(store, &format!("/old/{round}"), 10_000).await;
    fill(store, &format!("/newer/{round}"), 20_000).await;
    let started = Instant::now();
    let page = store.range(Range::prefix(format!("/old/{round}/"))).await.expect("a range");
    let took = started.elapsed();
    assert_eq!(page.entries.len(), 10_000);
    took
}

/// Puts values one after the other, each after all watches have delivered the one before; returns the time from each put
/// to the last watch.
pub async fn watch(store: &Store, watchers: usize) -> Vec<Duration> {
    let (seen, mut arrivals) = tokio::sync::mpsc::unbounded_channel();
    let mut running = JoinSet::new();
    for _ in 0..watchers {
        let mut watch = store.watch("/watched/", store.revision()).await.expect("a watch");
        let seen = seen.clone();
        running.spawn(async move {
            while let Some(Ok(_)) = watch.next().await {
                seen.send(Instant::now()).expect("somebody counts");
            }
        });
    }
    let mut times = Vec::new();
    for _ in 0..100 {
        let started = Instant::now();
        let put = Op::put("/watched/a", vec![b'v'; VALUE], Expect::Anything);
        store.commit(vec![put]).await.expect("a put");
        let mut last = started;
        for _ in 0..watchers {
            last = last.max(arrivals.recv().await.expect("the watchers live"));
        }
        times.push(last - started);
    }
    running.abort_all();
    times
}
