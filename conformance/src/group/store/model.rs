//! The model of a store, on one member of etcd and on three of which one is always about to die.

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

/// How long a member lives, and how long it is dead.
const ALIVE: Duration = Duration::from_secs(2);
const DEAD: Duration = Duration::from_secs(2);

async fn model(endpoints: Vec<String>, operations: usize) {
    let started = Instant::now();
    let etcd = Etcd::new(endpoints).without_compaction().watch_bytes(64 << 20);
    let open = move || etcd.clone().open().boxed();
    Model::new(open).concurrent().run(Chance::from_environment(), operations).await;
    println!("{:.0?} for the operations", started.elapsed());
}

pub(super) async fn one_member() -> Outcome {
    let etcd = super::cluster().await?;
    model(etcd.endpoints(), OPERATIONS).await;
    Ok(())
}

/// Kills the members in turns, the leader among them, until the model is through.
pub(super) async fn three_members() -> Outcome {
    let mut etcd = Cluster::start(3, Setting::Hasty).await.map_err(|error| sentence(&error))?;
    let model = Box::pin(model(etcd.endpoints(), OPERATIONS_OF_THREE));
    let mut deaths = 0;
    let trouble = Box::pin(async {
        loop {
            sleep(ALIVE).await;
            etcd.kill(deaths % 3);
            sleep(DEAD).await;
            if let Err(error) = etcd.restart(deaths % 3) {
                break sentence(&error);
            }
            deaths += 1;
        }
    });
    match select(model, trouble).await {
        Either::Left(((), trouble)) => drop(trouble),
        Either::Right((error, _)) => return Err(error),
    }
    println!("{deaths} deaths");
    if deaths < 3 {
        return Err(format!("the model was through after {deaths} deaths, before every member had died once"));
    }
    Ok(())
}
