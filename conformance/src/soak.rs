//! Ten minutes of load through an API that fails in every way: what was missed, what was asked for too often, what grew.

mod faults;
mod load;
mod place;

use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};

use faults::Faults;
use load::Load;
use place::Place;

/// How many calls a change may cost: the child, the status, and what faults cost again.
const CALLS_A_CHANGE: u64 = 8;
/// Calls that have nothing to do with changes: lists and watches, after every fault of theirs and every restart.
const CALLS_A_MINUTE: u64 = 1_000;
/// Memory is flat while it stays under the first minute's by this factor and this many bytes.
const GROWTH: (f64, f64) = (1.25, 16.0 * 1048576.0);

/// What a soak is made of.
#[derive(Args)]
pub struct Soak {
    /// How long there is load
    #[arg(long, default_value_t = 10)]
    minutes: u64,
    /// Which server
    #[arg(long, default_value = "flyball")]
    against: Against,
    /// Makes load and faults the same again
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Which server the operator works on.
#[derive(Clone, Copy, ValueEnum)]
enum Against {
    /// `flyball up` on disk, killed and started again every minute
    Flyball,
    /// etcd, kube-apiserver and kube-controller-manager, of which kube-apiserver is killed and started again every minute
    Reference,
}

/// Soaks, a line a minute; the error is what went wrong.
pub async fn run(soak: &Soak) -> Result<(), String> {
    let mut place = Place::start(soak.against).await?;
    let faults = Faults::new(soak.seed);
    let operator = crate::garden::operator();
    let running = operator.start(faults.between(place.client()?)).await;
    let running = running.map_err(|error| error.to_string())?;
    let mut load = Load::start(place.client()?, soak.seed).await?;
    let mut first = None;
    faults.begin();
    for minute in 1..=soak.minutes {
        let (calls, changes) = (faults.calls(), load.changes);
        load.press(Duration::from_secs(30)).await?;
        place.restart().await?;
        load.press(Duration::from_secs(20)).await?;
        let settled = load.settles().await?;
        let (calls, changes, memory) = (faults.calls() - calls, load.changes - changes, memory());
        println!(
            "minute {minute}: {changes} changes, {calls} calls, settled after {:.1} s, memory {:.1} MiB",
            settled.as_secs_f64(),
            memory / 1048576.0
        );
        if calls > changes * CALLS_A_CHANGE + CALLS_A_MINUTE {
            return Err(format!("{calls} calls for {changes} changes: something asks in a circle"));
        }
        let flat = *first.get_or_insert(memory) * GROWTH.0 + GROWTH.1;
        if memory > flat {
            return Err(format!("memory grew to {:.1} MiB", memory / 1048576.0));
        }
    }
    faults.end();
    calm(&faults).await?;
    running.stop().await;
    println!("seed {}: {} changes, {} faults, nothing missed", soak.seed, load.changes, faults.made());
    Ok(())
}

/// When nothing changes and nothing fails, next to nothing is asked for.
async fn calm(faults: &Faults) -> Result<(), String> {
    // What failed last may come back within its backoff.
    tokio::time::sleep(Duration::from_secs(20)).await;
    let (before, start) = (faults.calls(), Instant::now());
    tokio::time::sleep(Duration::from_secs(5)).await;
    let calls = faults.calls() - before;
    if calls <= 10 {
        return Ok(());
    }
    Err(format!("{calls} calls in {:.1} s of calm", start.elapsed().as_secs_f64()))
}

/// The resident memory of this process, in bytes: operator, load and all.
pub(crate) fn memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap_or_default() * 1024.0
}
