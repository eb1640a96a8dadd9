//! Watches at the latest revision, and updates: memory and disk stay flat, each event arrives, no snapshot stays open.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use clap::Args;
use flyball_apiserver::{ApiServer, Body, User};
use flyball_store::Store;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tokio::task::JoinSet;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
/// How many objects are updated in turn; each watch selects one of them by name.
const OBJECTS: usize = 100;
/// How often memory and disk are measured.
const SAMPLES: u32 = 10;
/// Memory is flat while it stays under the first sample's by this factor and this many bytes.
const MEMORY_GROWTH: (f64, f64) = (1.25, 16.0 * 1048576.0);
/// Disk is flat by the same rule; the history that the store keeps may double it once.
const DISK_GROWTH: (f64, f64) = (2.0, 64.0 * 1048576.0);

/// What the soak of watches is made of. `--seconds 20 --watches 500` is a short form.
#[derive(Args)]
pub struct Options {
    /// How many watches are open
    #[arg(long, default_value_t = 5_000)]
    watches: usize,
    /// How many minutes there are updates
    #[arg(long, default_value_t = 10)]
    minutes: u64,
    /// How many seconds there are updates, instead of minutes
    #[arg(long)]
    seconds: Option<u64>,
    /// How many updates there are a second
    #[arg(long, default_value_t = 50)]
    rate: u32,
}

/// Runs the soak, a line a sample; the error is what grew or got lost.
pub async fn run(options: &Options) -> Result<(), String> {
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    let limits = flyball_store::Options {
        history_revisions: 2_000,
        history_bytes: 4 << 20,
        ..Default::default()
    };
    let store = limits.open(directory.path()).await.map_err(|error| error.to_string())?;
    let server = ApiServer::start(store.clone()).await.map_err(|error| error.to_string())?;
    for index in 0..OBJECTS {
        send(&server, Method::POST, MAPS, Some(&map(index, 0))).await?;
    }
    print(&format!("before {} watches", options.watches), &store, directory.path());
    let received = Arc::new(AtomicU64::new(0));
    let mut watches = open(&server, options.watches, &received).await?;
    let updates = update(options, &server, &store, directory.path()).await?;
    let expected = watched(updates, options.watches);
    arrive(&received, expected).await?;
    watches.shutdown().await;
    print("after all watches are closed", &store, directory.path());
    match store.open_snapshots() {
        0 => {
            println!("{updates} updates, {expected} events, nothing lost");
            Ok(())
        }
        open => Err(format!("{open} snapshots are still open")),
    }
}

/// Opens watches at the latest revision; each counts its events.
async fn open(server: &ApiServer, count: usize, received: &Arc<AtomicU64>) -> Result<JoinSet<()>, String> {
    let list = send(server, Method::GET, &format!("{MAPS}?limit=1"), None).await?;
    let list = list.into_body().collect().await.map_err(|error| error.to_string())?.to_bytes();
    let list: Value = serde_json::from_slice(&list).map_err(|error| error.to_string())?;
    let version = list["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    let mut watches = JoinSet::new();
    for index in 0..count {
        let name = format!("map-{}", index % OBJECTS);
        let path = format!("{MAPS}?watch=true&resourceVersion={version}&fieldSelector=metadata.name%3D{name}");
        let mut body = send(server, Method::GET, &path, None).await?.into_body();
        let received = received.clone();
        watches.spawn(async move {
            while let Some(Ok(frame)) = body.frame().await {
                let lines = frame.data_ref().map_or(0, |data| data.iter().filter(|byte| **byte == b'\n').count());
                received.fetch_add(lines as u64, Ordering::Relaxed);
            }
        });
    }
    Ok(watches)
}

/// Updates the objects in turn, and returns how often; fails if memory or disk grow.
async fn update(options: &Options, server: &ApiServer, store: &Store, directory: &Path) -> Result<u64, String> {
    let total = Duration::from_secs(options.seconds.unwrap_or(options.minutes * 60));
    let (start, mut updates, mut first) = (Instant::now(), 0_u64, None);
    for sample in 1..=SAMPLES {
        while start.elapsed() < total * sample / SAMPLES {
            let index = usize::try_from(updates).unwrap_or_default() % OBJECTS;
            let path = format!("{MAPS}/map-{index}");
            send(server, Method::PUT, &path, Some(&map(index, updates + 1))).await?;
            updates += 1;
            let due = Duration::from_secs_f64(updates as f64 / f64::from(options.rate));
            tokio::time::sleep(due.saturating_sub(start.elapsed())).await;
        }
        let (memory, disk) = print(
            &format!("after {:.0} s and {updates} updates", start.elapsed().as_secs_f64()),
            store,
            directory,
        );
        let (first_memory, first_disk) = *first.get_or_insert((memory, disk));
        if memory > first_memory * MEMORY_GROWTH.0 + MEMORY_GROWTH.1 {
            return Err(format!("memory grew to {:.1} MiB", memory / 1048576.0));
        }
        if disk > first_disk * DISK_GROWTH.0 + DISK_GROWTH.1 {
            return Err(format!("the disk grew to {:.1} MiB", disk / 1048576.0));
        }
    }
    Ok(updates)
}

/// How many events all watches get of updates made in turn.
fn watched(updates: u64, watches: usize) -> u64 {
    let objects = OBJECTS as u64;
    let per_object = |object: u64| {
        let updates = updates / objects + u64::from(object < updates % objects);
        let watches = watches as u64 / objects + u64::from(object < watches as u64 % objects);
        updates * watches
    };
    (0..objects).map(per_object).sum()
}

async fn arrive(received: &AtomicU64, expected: u64) -> Result<(), String> {
    let start = Instant::now();
    while received.load(Ordering::Relaxed) != expected {
        if start.elapsed() > Duration::from_secs(60) {
            return Err(format!("{} of {expected} events arrived", received.load(Ordering::Relaxed)));
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

async fn send(server: &ApiServer, method: Method, path: &str, body: Option<&Value>) -> Result<Response<Body>, String> {
    let body = body.map(Value::to_string).unwrap_or_default();
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    let request = request.body(Full::new(Bytes::from(body))).map_err(|error| error.to_string())?;
    let response = server.as_user(User::admin()).respond(request).await;
    match response.status().is_success() {
        true => Ok(response),
        false => Err(format!("{path}: {}", response.status())),
    }
}

fn map(index: usize, round: u64) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("map-{index}")},
        "data": {"round": round.to_string(), "text": "x".repeat(900)},
    })
}

/// Prints and returns resident memory and disk use, in bytes.
fn print(when: &str, store: &Store, directory: &Path) -> (f64, f64) {
    let (memory, disk) = (crate::soak::memory(), used(directory));
    let snapshots = store.open_snapshots();
    println!(
        "{when}: memory {:.1} MiB, disk {:.1} MiB, {snapshots} snapshots open",
        memory / 1048576.0,
        disk / 1048576.0
    );
    (memory, disk)
}

/// The bytes that files take on disk.
fn used(directory: &Path) -> f64 {
    use std::os::unix::fs::MetadataExt;
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let size = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => used(&entry.path()),
        Ok(metadata) => metadata.blocks() as f64 * 512.0,
        Err(_) => 0.0,
    };
    entries.map(size).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_watch_gets_the_updates_of_its_object() {
        assert_eq!(watched(100, 5_000), 5_000);
        assert_eq!(watched(101, 100), 101);
        assert_eq!(watched(3, 102), 5);
    }
}
