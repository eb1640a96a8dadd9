//! Flyball beside controller-runtime, kube-runtime and Kopf: the same kind and objects, each a process of its own.

mod cluster;
mod measure;
pub(crate) mod program;
mod run;
mod table;
pub mod tally;
pub mod widget;

use clap::ValueEnum;
use cluster::Cluster;
use program::Program;
use std::time::Duration;
use table::Table;

/// What is measured, as far as the command line chooses.
///
/// A peer reads KUBECONFIG, WORKERS, ROUND and WORK. In round 0 it does nothing with an object and prints `reconciled N`; else it sets
/// `status.round` of objects that have another one and prints `written N`; both at every hundredth. With WORK=child it first reads
/// a Secret and a ServiceAccount from its cache and applies a ConfigMap of both, which it owns.
pub struct Options {
    /// How many objects there are; one or more, growing.
    pub objects: Vec<usize>,
    /// Which frameworks; all of them if empty.
    pub only: Vec<Framework>,
    /// Which servers; both if empty.
    pub against: Vec<Server>,
    /// How thoroughly.
    pub effort: Effort,
}

/// How much is done for a figure.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Each start is measured so often, in turns; whoever takes long is measured less often.
    pub starts: usize,
    /// What is written, with few workers and with many.
    pub writes: [Writes; 2],
    /// The same for reconciles with a child.
    pub children: [Writes; 2],
    /// So often each, in turns. kube-apiserver collects its garbage about once in 1,000 writes, a quarter of its work.
    pub rounds: usize,
    /// Beyond this time a peer is given up, and shown with how far it came.
    pub limit: Duration,
}

impl Effort {
    /// For figures that are published.
    pub const FULL: Effort = Effort {
        starts: 3,
        writes: [Writes::new(1, 300, 800), Writes::new(16, 1_000, 3_000)],
        children: [Writes::new(1, 200, 600), Writes::new(16, 500, 2_000)],
        rounds: 4,
        limit: Duration::from_secs(60),
    };
    /// For a look while working.
    pub const QUICK: Effort = Effort {
        starts: 1,
        writes: [Writes::new(1, 100, 300), Writes::new(16, 200, 800)],
        children: [Writes::new(1, 100, 200), Writes::new(16, 200, 500)],
        rounds: 1,
        limit: Duration::from_secs(30),
    };
}

/// How many statuses are written in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Writes {
    /// By so many workers.
    pub workers: usize,
    /// The first ones do not count. Some write while they still list, others list before; that is another line's.
    pub first: usize,
    /// So many do.
    pub counted: usize,
}

impl Writes {
    const fn new(workers: usize, first: usize, counted: usize) -> Writes {
        Writes { workers, first, counted }
    }

    /// The same, but each object is written once; programs count by the hundred.
    fn of(self, objects: usize) -> Writes {
        let all = (self.first + self.counted).min(objects);
        let first = self.first.min(all / 200 * 100);
        Writes { first, counted: all - first, ..self }
    }
}

/// What a reconcile does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// It sets a status.
    Status,
    /// It reads two other kinds from the cache, applies a child and sets a status.
    Child,
}

impl Work {
    /// As peers read it.
    pub fn word(self) -> &'static str {
        match self {
            Work::Status => "status",
            Work::Child => "child",
        }
    }
}

/// Who does the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Framework {
    /// This repository's.
    Flyball,
    /// Go's.
    ControllerRuntime,
    /// Rust's `Controller` of kube-runtime.
    KubeRuntime,
    /// Python's.
    Kopf,
}

/// What they work against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Server {
    /// etcd and kube-apiserver.
    Reference,
    /// `flyball up`, on disk.
    Flyball,
}

impl Framework {
    /// What the table calls it.
    pub fn name(self) -> &'static str {
        match self {
            Framework::Flyball => "flyball",
            Framework::ControllerRuntime => "controller-runtime",
            Framework::KubeRuntime => "kube-runtime",
            Framework::Kopf => "kopf",
        }
    }
}

impl Server {
    /// What the table calls it.
    pub fn name(self) -> &'static str {
        match self {
            Server::Reference => "etcd + kube-apiserver",
            Server::Flyball => "flyball up, on disk",
        }
    }
}

/// How many aims were reached, of how many.
pub struct Aims {
    /// Reached.
    pub reached: usize,
    /// Asked for.
    pub asked: usize,
}

/// Measures, and prints one table a server.
pub fn run(options: &Options) -> Aims {
    let chosen = |framework: &Framework| options.only.is_empty() || options.only.contains(framework);
    let frameworks = Framework::value_variants().iter().copied().filter(chosen);
    let programs: Vec<Program> = frameworks.map(Program::prepare).collect();
    let servers = Server::value_variants().iter().copied();
    let servers = servers.filter(|server| options.against.is_empty() || options.against.contains(server));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let mut aims = Aims { reached: 0, asked: 0 };
    for server in servers {
        let table = runtime.block_on(compare(server, &programs, options));
        table.print_remarks();
        aims.reached += table.aims().filter(|(_, reached)| *reached).count();
        aims.asked += table.aims().count();
    }
    aims
}

async fn compare(server: Server, programs: &[Program], options: &Options) -> Table {
    let (cluster, effort) = (Cluster::start(server).await, &options.effort);
    widget::install(&cluster.target).await;
    widget::create_teams(&cluster.target).await;
    let mut table = Table::new(server, programs);
    let mut there = 0;
    for (index, count) in options.objects.iter().copied().enumerate() {
        widget::fill(&cluster.target, there..count).await;
        there = count;
        measure::starts(&cluster, programs, count, effort, &mut table).await;
        table.print();
        if index > 0 {
            continue;
        }
        let status = effort.writes.map(|writes| (Work::Status, writes));
        let child = effort.children.map(|writes| (Work::Child, writes));
        for (work, writes) in status.into_iter().chain(child) {
            measure::writes(&cluster, programs, (work, writes.of(count)), effort, &mut table).await;
            table.print();
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_object_is_written_twice_in_a_round() {
        let writes = Writes::new(16, 1_000, 2_500);
        assert_eq!(writes.of(10_000), writes);
        assert_eq!(writes.of(3_000), Writes::new(16, 1_000, 2_000));
        assert_eq!(writes.of(500), Writes::new(16, 200, 300));
        assert_eq!(writes.of(200), Writes::new(16, 100, 100));
    }
}
