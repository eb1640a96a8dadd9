//! Measurements in a process of their own: this program again; an environment variable names the task and the directory.

use super::load;
use crate::target::resident;
use flyball_store::Store;
use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

const TASK: &str = "FLYBALL_BENCH_STORE";

/// Runs the task of a child process, if this process is one.
pub fn child() -> bool {
    let Ok(task) = std::env::var(TASK) else { return false };
    let (what, path) = task.split_once(' ').expect("a task and a directory");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    println!("{}", runtime.block_on(answer(what, path.into())));
    true
}

async fn answer(what: &str, path: PathBuf) -> f64 {
    let started = Instant::now();
    let store = Store::open(path).await.expect("the store opens");
    let opened = started.elapsed().as_secs_f64();
    match what {
        "open" => {}
        "fill" => load::fill(&store, "/memory", load::VALUES).await,
        "fill-large" => load::fill_large(&store).await,
        what => panic!("no child does {what}"),
    }
    let figure = if what == "open" {
        opened
    } else {
        resident(std::process::id())
    };
    store.close().await;
    figure
}

/// The resident memory of a process that has put 100,000 values of 1 KiB.
pub fn memory(path: &Path) -> f64 {
    ask("fill", path)
}

/// How long a process takes to open a store of 1 GiB.
pub fn opening(path: &Path) -> Duration {
    ask("fill-large", path);
    Duration::from_secs_f64(ask("open", path))
}

fn ask(what: &str, path: &Path) -> f64 {
    let program = std::env::current_exe().expect("this program is a file");
    let mut command = Command::new(program);
    command.env(TASK, format!("{what} {}", path.display())).stderr(Stdio::inherit());
    let output = command.output().expect("this program starts again");
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().parse().unwrap_or_else(|_| panic!("the child said {text:?}"))
}
