//! The two pieces of work: start until everything was reconciled, and as many status writes as go.

use super::{
    Effort, Framework,
    cluster::Cluster,
    program::Program,
    run::{Run, Shortfall, cpu},
    table::{Measured, Table},
};
use crate::figure::Figure;
use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

/// Workers for the reconciles that do nothing.
const WORKERS: usize = 16;
/// Beyond this time a peer is not measured again.
const LONG: Duration = Duration::from_secs(20);

/// What one start showed.
struct Started {
    time: Duration,
    cpu: Duration,
    memory: (f64, f64),
    /// How far it came, if its time was up before the end.
    short: Option<String>,
}

/// From starting each peer to its last first reconcile, and what it holds then.
pub async fn starts(cluster: &Cluster, programs: &[Program], objects: usize, effort: &Effort, table: &mut Table) {
    let mut all: Vec<Vec<Result<Started, String>>> = programs.iter().map(|_| Vec::new()).collect();
    for _ in 0..effort.starts {
        for (program, known) in programs.iter().zip(&mut all) {
            let again = |last: &Result<Started, String>| last.as_ref().is_ok_and(|started| started.time < LONG);
            if known.last().is_none_or(again) {
                known.push(start(cluster, program, objects, effort).await);
            }
        }
    }
    let middle = |figure: fn(&Started) -> Figure| all.iter().map(|known| middle(known, figure)).collect();
    let objects = grouped(objects);
    table.add(format!("{objects} no-ops from a start"), middle(|started| Figure::Time(started.time)));
    table.add("  processor time", middle(|started| Figure::Time(started.cpu)));
    table.add_memory(format!("memory, {objects} cached"), middle(|started| Figure::Bytes(started.memory.0)));
    table.add("  at its peak", middle(|started| Figure::Bytes(started.memory.1)));
}

/// The middle of a peer's starts; what was not finished was at least that.
fn middle(starts: &[Result<Started, String>], figure: fn(&Started) -> Figure) -> Measured {
    let figures: Result<Vec<Figure>, &String> = starts.iter().map(|started| started.as_ref().map(figure)).collect();
    let short = starts.iter().flatten().find_map(|started| started.short.clone());
    match (figures, short) {
        (Err(why), _) => Measured::Nothing(why.clone()),
        (Ok(figures), Some(short)) => Measured::Beyond(Figure::middle(figures), short),
        (Ok(figures), None) => Measured::Exactly(Figure::middle(figures)),
    }
}

async fn start(cluster: &Cluster, program: &Program, objects: usize, effort: &Effort) -> Result<Started, String> {
    let (name, before) = (program.framework.name(), server_cpu(cluster));
    let mut run = Run::start(program, &cluster.target.kubeconfig, WORKERS, 0).map_err(|why| why.to_string())?;
    let reconciled = run.until("reconciled", objects, effort.limit).await;
    let (cpu, served) = (run.cpu(), server_cpu(cluster) - before);
    let (time, short) = match reconciled {
        Ok(time) => (time, None),
        Err(late @ Shortfall::Late { .. }) => (effort.limit, Some(late.to_string())),
        Err(Shortfall::Failed(why)) => {
            eprintln!("bench: {name}: {why}");
            return Err(why);
        }
    };
    if short.is_none() {
        run.settle().await;
    }
    let memory = run.memory();
    let how_far = short.clone().unwrap_or_else(|| format!("{objects} reconciled in {time:.2?}"));
    let (now, peak) = (memory.0 / 1048576.0, memory.1 / 1048576.0);
    eprintln!(
        "bench: {name:18} {how_far}, processor {cpu:.2?}, the server's {served:.2?}; memory {now:.1} MiB, peak {peak:.1} MiB"
    );
    Ok(Started { time, cpu, memory, short })
}

/// Status writes a second with so many workers.
pub async fn writes(
    cluster: &Cluster,
    programs: &[Program],
    (workers, wanted): (usize, usize),
    effort: &Effort,
    table: &mut Table,
) {
    let (mut rates, mut costs) = (Vec::new(), Vec::new());
    for program in programs {
        match write(cluster, program, workers, wanted, effort.limit / 2).await {
            Ok((rate, cost)) => {
                rates.push(Measured::Exactly(Figure::Rate(rate)));
                costs.push(Measured::Exactly(Figure::Time(cost)));
            }
            Err(why) => {
                eprintln!("bench: {}: {why}", program.framework.name());
                rates.push(Measured::Nothing(why.to_string()));
                costs.push(Measured::Nothing(why.to_string()));
            }
        }
    }
    let s = if workers == 1 { "" } else { "s" };
    table.add(format!("status writes, {workers} worker{s}"), rates);
    table.add("  processor time for 1,000", costs);
}

/// Writes a second between the first hundred and the last, or those that it came to, and the processor time of a thousand.
async fn write(
    cluster: &Cluster,
    program: &Program,
    workers: usize,
    wanted: usize,
    limit: Duration,
) -> Result<(f64, Duration), Shortfall> {
    static ROUND: AtomicU64 = AtomicU64::new(1);
    let round = ROUND.fetch_add(1, Ordering::Relaxed);
    let mut run = Run::start(program, &cluster.target.kubeconfig, workers, round)?;
    run.until("written", 100, limit).await?;
    let (start, cpu, server) = (Instant::now(), run.cpu(), server_cpu(cluster));
    let wanted = match run.until("written", wanted, limit).await {
        Ok(_) => wanted,
        Err(Shortfall::Late { reached, .. }) if reached >= 200 => reached,
        Err(why) => return Err(why),
    };
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
