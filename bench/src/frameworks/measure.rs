//! The measurements: a start until everything was reconciled, status writes a second, and reconciles with a child a second.

use super::{
    Effort, Framework, Work, Writes,
    cluster::Cluster,
    program::Program,
    run::{Round, Run, Shortfall, cpu},
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
    /// The server's processor time meanwhile.
    served: Duration,
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
    table.add_beside("  the server's", middle(|started| Figure::Time(started.served)));
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
    let mut run = Run::start(program, &cluster.target.kubeconfig, WORKERS, Round { number: 0, work: Work::Status })
        .map_err(|why| why.to_string())?;
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
    Ok(Started { time, cpu, served, memory, short })
}

/// What was written in one or more rounds, and what it took.
#[derive(Clone, Copy, Default)]
struct Written {
    count: usize,
    time: Duration,
    cpu: Duration,
    /// The server's processor time meanwhile.
    served: Duration,
    /// Resident memory at the end of a round, the largest of all rounds, in bytes.
    memory: f64,
    /// Whether its time was up before all was written.
    late: bool,
}

impl Written {
    fn and(self, more: Written) -> Written {
        Written {
            count: self.count + more.count,
            time: self.time + more.time,
            cpu: self.cpu + more.cpu,
            served: self.served + more.served,
            memory: self.memory.max(more.memory),
            late: self.late || more.late,
        }
    }

    fn rate(&self) -> f64 {
        self.count as f64 / self.time.as_secs_f64()
    }

    /// Of such a time what a thousand writes took.
    fn for_a_thousand(&self, time: Duration) -> Duration {
        time.mul_f64(1000.0 / self.count as f64)
    }
}

/// Status writes a second: all that were written in some rounds by all the time that this took, in turns. What the server does
/// now and then only (collect its garbage, compact its store) is not left to whoever is measured at that time.
pub async fn writes(
    cluster: &Cluster,
    programs: &[Program],
    (work, writes): (Work, Writes),
    effort: &Effort,
    table: &mut Table,
) {
    let mut all: Vec<Result<Written, String>> = programs.iter().map(|_| Ok(Written::default())).collect();
    for round in 0..effort.rounds {
        for turn in 0..programs.len() {
            let index = (round + turn) % programs.len();
            let Some(known) = all[index].clone().ok().filter(|known| !known.late) else {
                continue;
            };
            let more = write(cluster, &programs[index], (work, writes), effort.limit / 2).await;
            all[index] = more.map(|more| known.and(more)).map_err(|why| {
                eprintln!("bench: {}: {why}", programs[index].framework.name());
                why.to_string()
            });
        }
    }
    let line = |figure: fn(&Written) -> Figure| {
        let measured = |written: &Result<Written, String>| match written {
            Ok(written) => Measured::Exactly(figure(written)),
            Err(why) => Measured::Nothing(why.clone()),
        };
        all.iter().map(measured).collect()
    };
    let s = if writes.workers == 1 { "" } else { "s" };
    let title = format!("{}, {} worker{s}", title(work), writes.workers);
    table.add(title, line(|all| Figure::Rate(all.rate())));
    table.add("  processor time for 1,000", line(|all| Figure::Time(all.for_a_thousand(all.cpu))));
    table.add_beside("  the server's", line(|all| Figure::Time(all.for_a_thousand(all.served))));
    if work == Work::Child {
        table.add("  memory", line(|all| Figure::Bytes(all.memory)));
    }
}

fn title(work: Work) -> &'static str {
    match work {
        Work::Status => "status writes",
        Work::Child => "with a child",
    }
}

/// One round: what a program writes once it has started, or as much of it as its time suffices for.
async fn write(
    cluster: &Cluster,
    program: &Program,
    (work, writes): (Work, Writes),
    limit: Duration,
) -> Result<Written, Shortfall> {
    static ROUND: AtomicU64 = AtomicU64::new(1);
    let (number, workers) = (ROUND.fetch_add(1, Ordering::Relaxed), writes.workers);
    let mut run = Run::start(program, &cluster.target.kubeconfig, workers, Round { number, work })?;
    let first = match run.until("written", writes.first, limit).await {
        Ok(_) => writes.first,
        Err(Shortfall::Late { reached, .. }) if reached >= 100 => reached,
        Err(why) => return Err(why),
    };
    let (start, cpu, server) = (Instant::now(), run.cpu(), server_cpu(cluster));
    let (last, late) = match run.until("written", writes.first + writes.counted, limit).await {
        Ok(_) => (writes.first + writes.counted, false),
        Err(Shortfall::Late { reached, .. }) if reached > first => (reached, true),
        Err(why) => return Err(why),
    };
    let written = Written {
        count: last - first,
        time: start.elapsed(),
        cpu: run.cpu() - cpu,
        served: server_cpu(cluster) - server,
        memory: run.memory().0,
        late,
    };
    eprintln!(
        "bench: {:18} {:.0} {}/s with {workers} workers; for 1,000: processor {:.2?}, the server's {:.2?}",
        program.framework.name(),
        written.rate(),
        title(work),
        written.for_a_thousand(written.cpu),
        written.for_a_thousand(written.served),
    );
    Ok(written)
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
