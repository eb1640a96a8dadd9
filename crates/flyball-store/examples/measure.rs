//! Measures a store: `cargo run --release -p flyball-store --example measure [memory|DIRECTORY]`.

use flyball_store::{Expect, Op, Options, Range, Store};
use std::{
    fmt::Display,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

const VALUE: usize = 1_024;
const VALUES: usize = 100_000;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

#[tokio::main]
async fn main() -> Result<()> {
    let place = std::env::args().nth(1).unwrap_or_else(|| "memory".to_owned());
    let before = resident()?;
    let start = Instant::now();
    let store = open(&place).await?;
    line("open, empty", format!("{:.1?}", start.elapsed()));
    let start = Instant::now();
    fill(&store).await?;
    line("100,000 creates, 256 tasks", format!("{:.2?}", start.elapsed()));
    line("resident memory for them, MiB", format!("{:.0}", (resident()? - before) / 1_048_576.0));
    reads(&store).await?;
    for watchers in [1, 100, 1_000] {
        let (p50, p99) = watch(&store, watchers).await?;
        line(
            &format!("put to last of {watchers} watchers, p50 and p99"),
            format!("{p50:.1?} {p99:.1?}"),
        );
    }
    let rate = beside_watchers(&store).await?;
    line("puts a second, 16 tasks, 1,000 other prefixes watched", format!("{rate:.0}"));
    for tasks in [1, 16, 256] {
        let rate = puts(&store, tasks, Duration::from_secs(3)).await?;
        line(&format!("puts of 1 KiB a second, {tasks} tasks"), format!("{rate:.0}"));
    }
    store.close().await;
    drop(store);
    if place != "memory" {
        let start = Instant::now();
        let store = open(&place).await?;
        line("open, 100,000 values", format!("{:.2?}", start.elapsed()));
        store.close().await;
    }
    Ok(())
}

async fn reads(store: &Store) -> Result<()> {
    line("gets a second, 2 tasks", format!("{:.0}", gets(store).await?));
    let (first, rest) = ranges(store, None).await?;
    line("range of 10,000", format!("{first:.2?}, again {rest:.2?}"));
    let revision = store.revision();
    for n in 30_000..31_000 {
        store.commit(put(n)).await?;
    }
    let (first, rest) = ranges(store, Some(revision)).await?;
    line("the same, 1,000 revisions ago", format!("{first:.2?}, again {rest:.2?}"));
    Ok(())
}

async fn open(place: &str) -> Result<Store> {
    Ok(if place == "memory" {
        Store::memory()
    } else {
        Options::default().open(place).await?
    })
}

fn line(what: &str, figure: impl Display) {
    println!("{what:<56} {figure:>20}");
}

fn key(n: usize) -> String {
    format!("/pods/{:02}/{n:08}", n / 10_000)
}

fn put(n: usize) -> Vec<Op> {
    vec![Op::put(key(n), vec![b'v'; VALUE], Expect::Anything)]
}

async fn puts(store: &Store, tasks: usize, time: Duration) -> Result<f64> {
    let start = Instant::now();
    let count = Arc::new(AtomicUsize::new(0));
    let mut running = tokio::task::JoinSet::new();
    for task in 0..tasks {
        let (store, count) = (store.clone(), count.clone());
        running.spawn(async move {
            for n in 0.. {
                if start.elapsed() > time {
                    break;
                }
                store.commit(put(task * 100 + n % 100)).await?;
                count.fetch_add(1, Ordering::Relaxed);
            }
            Result::Ok(())
        });
    }
    while let Some(done) = running.join_next().await {
        done??;
    }
    Ok(count.load(Ordering::Relaxed) as f64 / start.elapsed().as_secs_f64())
}

async fn fill(store: &Store) -> Result<()> {
    let mut running = tokio::task::JoinSet::new();
    for task in 0..256 {
        let store = store.clone();
        running.spawn(async move {
            for n in (task..VALUES).step_by(256) {
                store.commit(put(n)).await?;
            }
            Result::Ok(())
        });
    }
    while let Some(done) = running.join_next().await {
        done??;
    }
    Ok(())
}

async fn gets(store: &Store) -> Result<f64> {
    const GETS: usize = 1_000_000;
    let start = Instant::now();
    let get = |from: usize| {
        let store = store.clone();
        tokio::spawn(async move {
            for n in 0..GETS {
                store.get(key((from + n * 7_919) % VALUES)).await?;
            }
            Result::Ok(())
        })
    };
    let (a, b) = (get(0), get(1));
    a.await??;
    b.await??;
    Ok(2.0 * GETS as f64 / start.elapsed().as_secs_f64())
}

async fn ranges(store: &Store, revision: Option<u64>) -> Result<(Duration, Duration)> {
    let mut times = Vec::new();
    for _ in 0..20 {
        let start = Instant::now();
        let page = store.range(Range { revision, ..Range::prefix("/pods/03/") }).await?;
        times.push(start.elapsed());
        assert_eq!(page.entries.len(), 10_000);
    }
    let first = times[0];
    times.sort();
    Ok((first, times[times.len() / 2]))
}

async fn watch(store: &Store, watchers: usize) -> Result<(Duration, Duration)> {
    let (seen, mut arrivals) = tokio::sync::mpsc::unbounded_channel();
    let mut running = tokio::task::JoinSet::new();
    for _ in 0..watchers {
        let mut watch = store.watch("/pods/00/", store.revision()).await?;
        let seen = seen.clone();
        running.spawn(async move {
            while let Some(Ok(_)) = watch.next().await {
                seen.send(Instant::now()).ok();
            }
        });
    }
    let mut times = Vec::new();
    for n in 0..200 {
        let start = Instant::now();
        store.commit(put(n)).await?;
        let mut last = start;
        for _ in 0..watchers {
            last = arrivals.recv().await.expect("the watchers live");
        }
        times.push(last - start);
    }
    times.sort();
    Ok((times[100], times[197]))
}

async fn beside_watchers(store: &Store) -> Result<f64> {
    let mut watches = Vec::new();
    for n in 0..1_000 {
        watches.push(store.watch(format!("/other/{n}/"), store.revision()).await?);
    }
    puts(store, 16, Duration::from_secs(3)).await
}

/// Reads how much memory this process has, from the kernel.
fn resident() -> Result<f64> {
    let status = std::fs::read_to_string("/proc/self/statm")?;
    let pages: f64 = status.split(' ').nth(1).ok_or("no second field")?.parse()?;
    Ok(pages * 4_096.0)
}
