//! The two pieces of work: start until everything was reconciled, and as many status writes as go.

use super::{Framework, cluster::Cluster, program::Program, run::Run, run::cpu, table::Table};
use crate::figure::Figure;
use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

/// Workers for the reconciles that do nothing.
const WORKERS: usize = 16;
/// Each start is measured so often, in turns; whoever takes long is measured less often.
const STARTS: usize = 3;
/// Beyond this time a peer is not measured again.
const LONG: Duration = Duration::from_secs(20);
/// Beyond this time a peer is given up.
const LIMIT: Duration = Duration::from_secs(600);
/// Status writes a worker, at most as many as there are objects.
const WRITES: [(usize, usize); 2] = [(1, 2_000), (16, 5_000)];

/// What one start showed.
struct Started {
    time: Duration,
    cpu: Duration,
    memory: (f64, f64),
}

/// From starting each peer to its last first reconcile, and what it holds then.
pub async fn starts(cluster: &Cluster, programs: &[Program], objects: usize, table: &mut Table) {
    let mut all: Vec<Vec<Result<Started, String>>> = programs.iter().map(|_| Vec::new()).collect();
    for _ in 0..STARTS {
        for (program, known) in programs.iter().zip(&mut all) {
            let again = |last: &Result<Started, String>| last.as_ref().is_ok_and(|started| started.time < LONG);
            if known.last().is_none_or(again) {
                known.push(start(cluster, program, objects).await);
            }
        }
    }
    let middle = |figure: fn(&Started) -> Figure| {
        all.iter()
            .map(|known| {
                let figures: Result<Vec<Figure>, String> =
                    known.iter().map(|started| started.as_ref().map(figure).map_err(Clone::clone)).collect();
                figures.map(Figure::middle)
            })
            .collect()
    };
    let objects = grouped(objects);
    table.add(format!("{objects} no-ops from a start"), middle(|started| Figure::Time(started.time)));
    table.add("  processor time", middle(|started| Figure::Time(started.cpu)));
    table.add_memory(format!("memory, {objects} cached"), middle(|started| Figure::Bytes(started.memory.0)));
    table.add("  at its peak", middle(|started| Figure::Bytes(started.memory.1)));
}

async fn start(cluster: &Cluster, program: &Program, objects: usize) -> Result<Started, String> {
    let before = server_cpu(cluster);
    let mut run = Run::start(program, &cluster.target.kubeconfig, WORKERS, 0)?;
    let time = run.until("reconciled", objects, LIMIT).await;
    let time = time.inspect_err(|error| eprintln!("bench: {}: {error}", program.framework.name()))?;
    let (cpu, served) = (run.cpu(), server_cpu(cluster) - before);
    run.settle().await;
    let memory = run.memory();
    eprintln!(
        "bench: {:18} {objects} reconciled in {time:.2?}, processor {cpu:.2?}, the server's {served:.2?}; memory {:.1} MiB, peak {:.1} MiB",
        program.framework.name(),
        memory.0 / 1048576.0,
        memory.1 / 1048576.0
    );
    Ok(Started { time, cpu, memory })
}

/// Status writes a second with so many workers.
pub async fn writes(cluster: &Cluster, programs: &[Program], objects: usize, workers: usize, table: &mut Table) {
    let wanted = WRITES.into_iter().find(|(of, _)| *of == workers).map_or(1_000, |(_, writes)| writes);
    let wanted = wanted.min(objects);
    let (mut rates, mut costs) = (Vec::new(), Vec::new());
    for program in programs {
        let written = write(cluster, program, workers, wanted).await;
        rates.push(written.clone().map(|(rate, _)| Figure::Rate(rate)));
        costs.push(written.map(|(_, cost)| Figure::Time(cost)));
    }
    let s = if workers == 1 { "" } else { "s" };
    table.add(format!("status writes, {workers} worker{s}"), rates);
    table.add("  processor time for 1,000", costs);
}

/// Writes a second between the first hundred and the last, and the processor time of a thousand.
async fn write(cluster: &Cluster, program: &Program, workers: usize, wanted: usize) -> Result<(f64, Duration), String> {
    static ROUND: AtomicU64 = AtomicU64::new(1);
    let round = ROUND.fetch_add(1, Ordering::Relaxed);
    let mut run = Run::start(program, &cluster.target.kubeconfig, workers, round)?;
    let failed = |error: &String| eprintln!("bench: {}: {error}", program.framework.name());
    run.until("written", 100, LIMIT).await.inspect_err(failed)?;
    let (start, cpu, server) = (Instant::now(), run.cpu(), server_cpu(cluster));
    run.until("written", wanted, LIMIT).await.inspect_err(failed)?;
    let written = (wanted - 100) as f64;
    let rate = written / start.elapsed().as_secs_f64();
    let cost = (run.cpu() - cpu).mul_f64(1000.0 / written);
    let served = (server_cpu(cluster) - server).mul_f64(1000.0 / written);
    eprintln!(
        "bench: {:18} {rate:.0} status writes/s with {workers} workers; for 1,000: processor {cost:.2?}, the server's {served:.2?}",
        program.framework.name(),
    );
    Ok((rate, cost))
}

fn server_cpu(cluster: &Cluster) -> Duration {
    cluster.target.pids.iter().map(|pid| cpu(*pid)).sum()
}

/// `10000` as `10,000`.
fn grouped(number: usize) -> String {
    match number {
        0..1000 => number.to_string(),
        _ => format!("{},{:03}", grouped(number / 1000), number % 1000),
    }
}

/// Whether memory is asked to be a third of this one's.
pub fn is_memory_peer(framework: Framework) -> bool {
    framework == Framework::ControllerRuntime
}
