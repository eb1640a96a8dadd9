//! The model of a store, on one member of etcd and on three of which one is always about to die.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use flyball_store::Etcd;
use flyball_store::testing::{Chance, Model};
use futures::future::{Either, FutureExt, select};
use tokio::time::sleep;

use super::Outcome;
use crate::reference::{Etcd as Cluster, Setting};
use crate::report::sentence;

const OPERATIONS: usize = 100_000;

/// Fewer where most of the time is spent on waiting for a new leader.
const OPERATIONS_OF_THREE: usize = 20_000;

/// How long a member lives at most, and how long it is dead: sometimes too short for anybody to be elected instead.
const ALIVE: usize = 3_000;
const DEAD: usize = 3_000;

/// Does so many operations, and goes on as long as more are wanted.
async fn model(chance: Chance, endpoints: Vec<String>, operations: usize, is_more_wanted: impl Fn() -> bool) {
    let started = Instant::now();
    let etcd = Etcd::new(endpoints).without_compaction().watch_bytes(64 << 20);
    let open = move || etcd.clone().open().boxed();
    let model = Model::new(open).concurrent();
    model.run_on(chance, operations, is_more_wanted).await;
    println!("{:.0?} for the operations", started.elapsed());
}

pub(super) async fn one_member() -> Outcome {
    let etcd = super::cluster().await?;
    model(Chance::from_environment(), etcd.endpoints(), OPERATIONS, || false).await;
    Ok(())
}

/// Kills the members in turns, the leader among them, until the model is through, which is not before each has died.
pub(super) async fn three_members() -> Outcome {
    let mut etcd = Cluster::start(3, Setting::Hasty).await.map_err(|error| sentence(&error))?;
    let endpoints = etcd.endpoints();
    let deaths = AtomicUsize::new(0);
    let has_somebody_not_died = || deaths.load(Ordering::Relaxed) < endpoints.len();
    let chance = Chance::from_environment();
    let mut lives = Chance::new(!chance.seed);
    let mut some = |most| sleep(Duration::from_millis(lives.below(most) as u64));
    let model = Box::pin(model(chance, endpoints.clone(), OPERATIONS_OF_THREE, has_somebody_not_died));
    let trouble = Box::pin(async {
        loop {
            let member = deaths.load(Ordering::Relaxed) % endpoints.len();
            some(ALIVE).await;
            etcd.kill(member);
            some(DEAD).await;
            if let Err(error) = etcd.restart(member) {
                break sentence(&error);
            }
            // The next one lives until this one is back: two of three must be there to elect somebody.
            if let Err(error) = Etcd::new([endpoints[member].clone()]).without_compaction().open().await {
                break sentence(&error);
            }
            deaths.fetch_add(1, Ordering::Relaxed);
        }
    });
    match select(model, trouble).await {
        Either::Left(((), trouble)) => drop(trouble),
        Either::Right((error, _)) => return Err(error),
    }
    println!("{} deaths", deaths.load(Ordering::Relaxed));
    Ok(())
}
