//! The conformance command: the same requests to Flyball's server and to a real kube-apiserver, compared.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::{Parser, Subcommand};
use conformance::answers;
use conformance::bootstrap;
use conformance::cel::{self, decide, random, rules, spec};
use conformance::corpus::{self, ask, family, recorded};
use conformance::count;
use conformance::group;
use conformance::leadership;
use conformance::published;
use conformance::reference::{Controllers, Error, Reference, Setup};
use conformance::report::{Report, sentence};
use conformance::requests::{self, record, script};
use conformance::restart;
use conformance::sequences;
use conformance::soak::{self, Soak};
use conformance::table;
use conformance::watches;

/// Compares Flyball with a real Kubernetes control plane, which is built from the Go module registry once (about six
/// minutes on two cores) and kept in the user's cache directory. KUBEBUILDER_ASSETS is used instead where it is set.
#[derive(Parser)]
#[command(after_help = after_help(), args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
struct Arguments {
    /// Which comparisons: GROUP, or GROUP/TEXT for the cases whose names contain TEXT; all by default
    #[arg(value_name = "FILTER")]
    filters: Vec<String>,
    #[command(subcommand)]
    action: Option<Action>,
}

/// What the command does besides comparing.
#[derive(Subcommand)]
enum Action {
    /// Start the real control plane, say how to reach it, and keep it until Ctrl-C
    Serve(Serve),
    /// Send the scripts of `requests/` to the real server only, and write its answers into DIRECTORY for reading
    Record {
        /// Where `<script>.http` is written
        directory: PathBuf,
        /// Only the scripts whose names contain this
        #[arg(default_value = "")]
        text: String,
    },
    /// Ask the real server every case of `corpus/` anew, every sequence of applies and every
    /// answer in protobuf; write down what it answers
    Observe,
    /// Ask the real server the validation rules of `corpus/cel` anew; write down what it answers
    ObserveCel {
        /// Only the files whose names contain this
        #[arg(default_value = "")]
        text: String,
    },
    /// Run cel-spec's conformance tests, which Go's module cache holds, through our CEL engine
    CelSpec {
        /// Only the tests whose `file/section/test` contains this
        #[arg(default_value = "")]
        text: String,
    },
    /// Evaluate random expressions with our CEL engine and with cel-go as Kubernetes configures it, and compare
    CelRandom {
        /// How many expressions
        #[arg(long, default_value_t = 100_000)]
        count: usize,
        /// What decides them; another one each time by default
        #[arg(long)]
        seed: Option<u64>,
        /// How many examples of each difference are shown
        #[arg(long, default_value_t = 4)]
        examples: usize,
        /// Compare these expressions instead
        expressions: Vec<String>,
    },
    /// Send the definitions and samples of published projects, which Go's module proxy serves, to both servers
    Published {
        /// Only the modules whose paths contain this
        #[arg(default_value = "")]
        text: String,
    },
    /// Say how many cases there are of each sort
    Count,
    /// Send the scripts of `requests/` to both servers, ours on a real etcd instead of in memory
    OnEtcd {
        /// Only the cases whose names contain this
        #[arg(default_value = "")]
        text: String,
    },
    /// Load an operator while its API fails in every way, and its server is killed and started again
    Soak(Soak),
    /// Keep thousands of watches open while objects change, and see that memory and disk stay flat
    Watches(watches::Options),
    /// Write the table of built-in kinds anew from Kubernetes' specification
    Table,
    /// Write the roles and bindings of every cluster anew from what the real server has
    Bootstrap,
    /// Kill, suspend, cut off and stop the leader of three replicas, and see that never two of them write
    Leadership(leadership::Options),
    /// Restart an operator of many objects, let it fail over, and see that neither writes anything
    Restart(restart::Options),
    /// Be one of those replicas
    #[command(hide = true)]
    Replica(leadership::replica::Options),
}

#[derive(clap::Args)]
struct Serve {
    /// The port, a free one by default
    #[arg(long)]
    port: Option<u16>,
    /// Run kube-controller-manager too
    #[arg(long)]
    controllers: bool,
}

fn after_help() -> String {
    let groups: String = group::GROUPS
        .iter()
        .map(|group| format!("  {:12} {}\n", group.name, group.about))
        .collect();
    format!(
        "Groups:\n{groups}
Examples:
  cargo run -p conformance                              everything
  cargo run -p conformance -- reference                 one group
  cargo run -p conformance -- reference/version         cases of a group whose names contain `version`
  cargo run -p conformance -- on-etcd                   the group `requests`, with our server on a real etcd
  cargo run -p conformance -- serve --port 6443         a real API server to try things on

The last line counts: `N same, N explained, N different`, and `N skipped` where neither Go nor assets are present.
Exit code: 0 all same or explained, 1 a difference, 2 bad arguments, 77 something was skipped."
    )
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match arguments.action {
        None => return compare(&arguments.filters).await,
        Some(Action::Serve(options)) => serve(&options).await.map_err(|error| sentence(&error)),
        Some(Action::Published { text }) => return published(&text).await,
        Some(Action::OnEtcd { text }) => return on_etcd(&text).await,
        Some(Action::Soak(soak)) => soak::run(&soak).await,
        Some(Action::Watches(options)) => watches::run(&options).await,
        Some(Action::Table) => table::write()
            .map(|path| println!("wrote {}", path.display()))
            .map_err(|error| sentence(&error)),
        Some(Action::Bootstrap) => bootstrap::write().await,
        Some(Action::Count) => count(),
        Some(Action::CelSpec { text }) => cel_spec(&text),
        Some(Action::CelRandom { count, seed, examples, expressions }) => {
            cel_random(count, seed, examples, &expressions)
        }
        Some(Action::Observe) => observe().await,
        Some(Action::ObserveCel { text }) => observe_cel(&text).await,
        Some(Action::Leadership(options)) => leadership::run(&options).await,
        Some(Action::Restart(options)) => restart::run(&options).await,
        Some(Action::Replica(options)) => leadership::replica::run(&options).await.map_err(|error| error.to_string()),
        Some(Action::Record { directory, text }) => record(&directory, &text).await,
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => failed(&message, 1),
    }
}

async fn compare(filters: &[String]) -> ExitCode {
    let chosen = match group::choose(filters) {
        Ok(chosen) => chosen,
        Err(message) => return failed(&message, 2),
    };
    let mut report = Report::default();
    let count = chosen.len();
    for (position, (group, text)) in chosen.into_iter().enumerate() {
        eprintln!("{} of {count}: {}, {}", position + 1, group.name, group.about);
        let started = Instant::now();
        let findings = (group.run)(text).await;
        if findings.is_empty() {
            return failed(&format!("no case of group `{}` has a name that contains `{text}`", group.name), 2);
        }
        report.add(group.name, findings, started.elapsed());
    }
    println!("{report}");
    ExitCode::from(report.exit_code())
}

async fn on_etcd(text: &str) -> ExitCode {
    let started = Instant::now();
    let findings = group::requests::run_on_etcd(text).await;
    let mut report = Report::default();
    report.add("requests", findings, started.elapsed());
    println!("{report}");
    ExitCode::from(report.exit_code())
}

async fn published(text: &str) -> ExitCode {
    match published::run(text).await {
        Err(message) => failed(&message, 1),
        Ok(report) => {
            println!("{report}");
            ExitCode::from(report.exit_code())
        }
    }
}

fn failed(message: &str, code: u8) -> ExitCode {
    eprintln!("error: {message}");
    ExitCode::from(code)
}

async fn serve(options: &Serve) -> Result<(), Error> {
    let controllers = if options.controllers {
        Controllers::Running
    } else {
        Controllers::Absent
    };
    let reference = Reference::start_with(Setup { port: options.port, controllers, ..Setup::default() }).await?;
    let programs: Vec<String> = reference.processes().iter().map(|(name, pid)| format!("{name} ({pid})")).collect();
    println!("running: {}", programs.join(", "));
    println!("  export KUBECONFIG={}", reference.admin.kubeconfig.display());
    println!("  the restricted user's is {}", reference.restricted.kubeconfig.display());
    println!("  logs are in {}", reference.directory().display());
    println!("Ctrl-C ends it");
    tokio::signal::ctrl_c().await.expect("a runtime with signals can wait for one");
    Ok(())
}

fn count() -> Result<(), String> {
    for count in count::all()? {
        println!("{:48} {:>6}, at least {}", count.of, count.found, count.least);
    }
    Ok(())
}

fn cel_spec(text: &str) -> Result<(), String> {
    let report = spec::run(text)?;
    println!("{report}");
    match report.counts().failed {
        0 => Ok(()),
        failed => Err(format!("{failed} tests of cel-spec failed")),
    }
}

fn cel_random(count: usize, seed: Option<u64>, examples: usize, expressions: &[String]) -> Result<(), String> {
    let seed = seed.unwrap_or_else(random::any_seed);
    let mut report = match expressions {
        [] => random::run(count, seed)?,
        given => random::run_given(given, seed)?,
    };
    report.examples = examples;
    println!("{report}");
    match report.differences() {
        0 => Ok(()),
        differences => Err(format!("{differences} expressions differ")),
    }
}

async fn observe() -> Result<(), String> {
    let families = family::read_all(&corpus::directory())?;
    let reference = Reference::start().await.map_err(|error| sentence(&error))?;
    let client = reference.admin.client().map_err(|error| sentence(&error))?;
    // before there is anything else: answers tell what there is
    let asked = answers::ask(&client, &answers::read()?).await?;
    println!("{} answers are in {}", asked.len(), answers::path().display());
    answers::write(&asked)?;
    let outcomes = ask::ask(&client, &families, "").await?;
    println!("{} cases are in {}", outcomes.len(), corpus::directory().display());
    recorded::write(&corpus::directory().join("recorded"), &outcomes)?;
    for document in &sequences::read_all()? {
        let outcomes = sequences::replay::replay(&client, document).await?;
        sequences::written::write(document, &outcomes)?;
        println!("{} sequences are in {}", outcomes.len(), document.path.display());
    }
    Ok(())
}

async fn observe_cel(text: &str) -> Result<(), String> {
    let mut documents = rules::read_all(&cel::directory())?;
    documents.retain(|document| document.name.contains(text));
    let reference = Reference::start().await.map_err(|error| sentence(&error))?;
    let client = reference.admin.client().map_err(|error| sentence(&error))?;
    let outcomes = decide::decide(&client, &documents, "").await?;
    recorded::write(&cel::directory().join("recorded"), &outcomes)?;
    let (rules, cases) = (rules::count(&documents), outcomes.len());
    println!("{rules} rules in {cases} cases are in {}", cel::directory().display());
    Ok(())
}

async fn record(directory: &Path, text: &str) -> Result<(), String> {
    let mut scripts = script::read_all(&requests::directory()).map_err(|error| sentence(&error))?;
    scripts.retain(|script| script.name.contains(text));
    let reference = Reference::start().await.map_err(|error| sentence(&error))?;
    let client = reference.admin.client().map_err(|error| sentence(&error))?;
    let surprises = record::record(&client, &scripts, directory).await.map_err(|error| sentence(&error))?;
    let count: usize = scripts.iter().map(|script| script.requests.len()).sum();
    println!("{count} answers are in {}", directory.display());
    if surprises.is_empty() {
        Ok(())
    } else {
        Err(surprises.join("\n"))
    }
}
