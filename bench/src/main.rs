//! The `bench` command: the same work on Flyball and on its peers, in one run, printed as one table.

use bench::{
    hello, kinds, reconciles,
    report::{self, Row},
    server,
};
use clap::Parser;
use std::process::ExitCode;

/// Measures Flyball beside its peers and prints: what | ours | peer | ratio | aim | ok.
#[derive(Parser)]
#[command(name = "bench")]
struct Arguments {
    /// Only the groups whose name contains this.
    filter: Option<String>,
    /// Exit with 1 where an aim is missed.
    #[arg(long)]
    check: bool,
}

/// A group of measurements under one name.
type Group = (&'static str, fn() -> Vec<Row>);

const GROUPS: [Group; 4] = [
    ("kinds", kinds::rows),
    ("hello", hello::rows),
    ("reconciles", reconciles::rows),
    ("server", server::rows),
];

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let filter = arguments.filter.unwrap_or_default();
    let chosen: Vec<Group> = GROUPS.into_iter().filter(|(name, _)| name.contains(&filter)).collect();
    if chosen.is_empty() {
        let names = GROUPS.map(|(name, _)| name).join(", ");
        eprintln!("bench: no group is called `{filter}`; there are: {names}");
        return ExitCode::from(2);
    }
    if cfg!(debug_assertions) {
        eprintln!("bench: this is a debug build; figures count in a release build: cargo run --release -p bench");
    }
    let mut rows = Vec::new();
    for (name, measure) in chosen {
        eprintln!("bench: {name} …");
        rows.extend(measure());
    }
    print!("{}", report::table(&rows));
    let missed = rows.iter().filter(|row| !row.ok()).count();
    println!("{} of {} aims reached", rows.len() - missed, rows.len());
    if arguments.check && missed > 0 {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}
