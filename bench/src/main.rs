//! The `bench` command: the same work on Flyball and on its peers, in one run, printed as one table.

use bench::{
    cel, crds,
    frameworks::{self, Effort, Framework, Server},
    hello, kinds, reconciles,
    report::{self, Row},
    schema, server, store,
};
use clap::Parser;
use std::{path::PathBuf, process::ExitCode};

/// Measures Flyball beside its peers and prints: what | ours | peer | ratio | aim | ok.
#[derive(Parser)]
#[command(name = "bench")]
struct Arguments {
    /// Only the groups whose name contains this.
    filter: Option<String>,
    /// Exit with 1 where an aim is missed.
    #[arg(long)]
    check: bool,
    #[arg(long, value_delimiter = ',', value_name = "N,…", value_parser = hundreds, help = "frameworks: with how many objects, in hundreds [default: 10000,50000]")]
    objects: Vec<usize>,
    /// frameworks: which of them
    #[arg(long, value_delimiter = ',', value_name = "FRAMEWORK")]
    only: Vec<Framework>,
    /// frameworks: on which server
    #[arg(long, value_delimiter = ',', value_name = "SERVER")]
    against: Vec<Server>,
    /// frameworks: with 2,000 objects unless said otherwise, once, and fewer writes
    #[arg(long)]
    quick: bool,
    /// server: measure beside another build of `flyball`, at this path, and not beside etcd and kube-apiserver
    #[arg(long, value_name = "PROGRAM")]
    beside: Option<PathBuf>,
}

/// A group of measurements under one name.
type Group = (&'static str, fn() -> Vec<Row>);

const GROUPS: [Group; 8] = [
    ("cel", cel::rows),
    ("crds", crds::rows),
    ("kinds", kinds::rows),
    ("hello", hello::rows),
    ("reconciles", reconciles::rows),
    ("schema", schema::rows),
    ("server", server::rows),
    ("store", store::rows),
];

/// The group that prints a table of its own.
const FRAMEWORKS: &str = "frameworks";

fn main() -> ExitCode {
    if store::child() {
        return ExitCode::SUCCESS;
    }
    let arguments = Arguments::parse();
    let filter = arguments.filter.as_deref().unwrap_or_default();
    let chosen: Vec<Group> = GROUPS.into_iter().filter(|(name, _)| name.contains(filter)).collect();
    let with_frameworks = FRAMEWORKS.contains(filter);
    if chosen.is_empty() && !with_frameworks {
        let names = GROUPS.map(|(name, _)| name).join(", ");
        return refused(&format!("no group is called `{filter}`; there are: {names}, {FRAMEWORKS}"));
    }
    if !with_frameworks && arguments.chooses_frameworks() {
        return refused("--objects, --only, --against and --quick are for the group `frameworks`");
    }
    let is_server = matches!(&*chosen, [("server", _)]);
    if arguments.beside.is_some() && !is_server {
        return refused("--beside is for the group `server`");
    }
    if cfg!(debug_assertions) {
        eprintln!("bench: this is a debug build; figures count in a release build: cargo run --release -p bench");
    }
    let mut rows = Vec::new();
    for (name, measure) in chosen {
        eprintln!("bench: {name} …");
        rows.extend(arguments.beside.as_deref().map_or_else(measure, server::rows_beside));
    }
    if !rows.is_empty() {
        println!("{}", report::table(&rows));
    }
    let (mut reached, mut asked) = (rows.iter().filter(|row| row.ok()).count(), rows.len());
    if with_frameworks {
        let aims = frameworks::run(&arguments.frameworks());
        reached += aims.reached;
        asked += aims.asked;
    }
    println!("{reached} of {asked} aims reached");
    if arguments.check && reached < asked {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

impl Arguments {
    fn chooses_frameworks(&self) -> bool {
        self.quick || !(self.objects.is_empty() && self.only.is_empty() && self.against.is_empty())
    }

    fn frameworks(&self) -> frameworks::Options {
        let mut objects = match (&*self.objects, self.quick) {
            ([], true) => vec![2_000],
            ([], false) => vec![10_000, 50_000],
            (objects, _) => objects.to_vec(),
        };
        objects.sort_unstable();
        objects.dedup();
        frameworks::Options {
            objects,
            only: self.only.clone(),
            against: self.against.clone(),
            effort: if self.quick { Effort::QUICK } else { Effort::FULL },
        }
    }
}

fn hundreds(text: &str) -> Result<usize, String> {
    let number: usize = text.parse().map_err(|error| format!("{error}"))?;
    if number >= 200 && number.is_multiple_of(100) {
        Ok(number)
    } else {
        Err("it must be a multiple of 100, and at least 200".into())
    }
}

fn refused(message: &str) -> ExitCode {
    eprintln!("bench: {message}");
    ExitCode::from(2)
}
