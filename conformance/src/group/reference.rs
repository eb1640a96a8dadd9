//! Group `reference`: the real control plane starts, answers, refuses, and leaves nothing behind.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::Api;
use kube::api::ListParams;

use crate::bootstrap;
use crate::reference::{Error, Reference, exists};
use crate::report::{Finding, sentence};
use crate::table::{self, GenerateError};

/// How long something that must happen may take.
const WITHIN: Duration = Duration::from_secs(30);

/// A check's verdict: nothing, or what is wrong.
type Outcome = Result<(), String>;

/// Runs every check; they share the running control planes, so the filter only chooses what is reported.
pub async fn run(text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    match Reference::start().await {
        Err(error @ Error::NoGo) => return vec![Finding::skipped("start", error.to_string())],
        Err(error) => return vec![Finding::check("start", Err(sentence(&error)))],
        Ok(reference) => answers(reference, "first start", &mut findings).await,
    }
    match Reference::start().await {
        Err(error) => findings.push(Finding::check("second start", Err(sentence(&error)))),
        Ok(reference) => answers(reference, "second start", &mut findings).await,
    }
    findings.push(table_check("the table of kinds is what the specification says", table::generate()));
    findings.push(Finding::check("a panic leaves no process behind", ends_with_a_panic().await));
    findings.push(Finding::check("a killed parent leaves no process behind", ends_with_its_parent().await));
    findings.push(Finding::check("controllers run", controllers_run().await));
    findings.retain(|finding| finding.case.contains(text));
    findings
}

async fn answers(reference: Reference, start: &str, findings: &mut Vec<Finding>) {
    let mut add = |case: &str, outcome| findings.push(Finding::check(format!("{start}: {case}"), outcome));
    add("version is the pinned one", version(&reference).await);
    add("admin lists namespaces", admin_lists(&reference).await);
    add("the restricted user is refused", restricted_is_refused(&reference).await);
    add("bootstrap roles and bindings are ours", bootstrap_is_ours(&reference).await);
    let served = served(&reference, format!("{start}: the table of kinds is what is served")).await;
    let (pids, directory) = (reference.pids(), reference.directory().to_owned());
    drop(reference);
    add("leaves no process behind", gone(&pids, &directory));
    findings.push(served);
}

async fn bootstrap_is_ours(reference: &Reference) -> Outcome {
    let client = reference.admin.client().map_err(|error| sentence(&error))?;
    bootstrap::check(&client).await
}

async fn version(reference: &Reference) -> Outcome {
    let client = reference.admin.client().map_err(|error| sentence(&error))?;
    let version = client.apiserver_version().await.map_err(|error| sentence(&error))?;
    let pinned = include_str!("../../reference/kubernetes/go.mod")
        .lines()
        .find_map(|line| line.trim().trim_start_matches("require ").strip_prefix("k8s.io/kubernetes "))
        .ok_or("reference/kubernetes/go.mod requires no k8s.io/kubernetes")?;
    let found = (version.git_version.as_str(), version.major.as_str(), version.minor.as_str());
    let mut numbers = pinned.trim_start_matches('v').split('.');
    let expected = (pinned, numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
    if found == expected {
        Ok(())
    } else {
        Err(format!("pinned {expected:?}, served {found:?}"))
    }
}

async fn admin_lists(reference: &Reference) -> Outcome {
    let client = reference.admin.client().map_err(|error| sentence(&error))?;
    let list = Api::<Namespace>::all(client)
        .list(&ListParams::default())
        .await
        .map_err(|error| sentence(&error))?;
    let names: Vec<String> = list.items.into_iter().filter_map(|namespace| namespace.metadata.name).collect();
    let expected = ["default", "kube-node-lease", "kube-public", "kube-system"];
    if names == expected {
        Ok(())
    } else {
        Err(format!("expected {expected:?}, listed {names:?}"))
    }
}

async fn restricted_is_refused(reference: &Reference) -> Outcome {
    let client = reference.restricted.client().map_err(|error| sentence(&error))?;
    match Api::<Namespace>::all(client).list(&ListParams::default()).await {
        Err(kube::Error::Api(status)) if status.code == 403 => Ok(()),
        Err(error) => Err(format!("expected 403: {}", sentence(&error))),
        Ok(_) => Err("expected 403, was served".into()),
    }
}

async fn served(reference: &Reference, case: String) -> Finding {
    match reference.admin.client() {
        Ok(client) => table_check(case, table::of_server(&client).await),
        Err(error) => Finding::check(case, Err(sentence(&error))),
    }
}

/// A table that cannot be made for want of Go is not compared; every other failure is a difference.
fn table_check(case: impl Into<String>, made: Result<String, GenerateError>) -> Finding {
    match made {
        Err(error @ GenerateError::NoGo) => Finding::skipped(case, error.to_string()),
        made => Finding::check(case, made.map_err(|error| sentence(&error)).and_then(|table| same_table(&table))),
    }
}

/// Compares with the committed table, line by line.
fn same_table(expected: &str) -> Outcome {
    let committed = flyball_schema::kinds::TABLE;
    if expected == committed {
        return Ok(());
    }
    let mut lines = expected.lines().zip(committed.lines()).enumerate();
    let first = lines.find(|(_, (expected, committed))| expected != committed);
    let place = first.map_or("its end".to_owned(), |(index, _)| format!("line {}", index + 1));
    Err(format!(
        "the committed table differs from {place} on: run `cargo run -p conformance -- table`"
    ))
}

/// `resume_unwind` unwinds as a panic does, without a panic's message in the middle of the report.
async fn ends_with_a_panic() -> Outcome {
    let reference = Reference::start().await.map_err(|error| sentence(&error))?;
    let (pids, directory) = (reference.pids(), reference.directory().to_owned());
    let panicked = tokio::spawn(async move {
        let _held = reference;
        std::panic::resume_unwind(Box::new("on purpose"));
    });
    if panicked.await.is_ok() {
        return Err("the task did not panic".into());
    }
    gone(&pids, &directory)
}

/// Another process of this very program holds a control plane and is killed in the way that lets it clean up nothing.
async fn ends_with_its_parent() -> Outcome {
    let io = |error: std::io::Error| error.to_string();
    let program = std::env::current_exe().map_err(io)?;
    let mut parent = Command::new(program).arg("serve").stdout(Stdio::piped()).spawn().map_err(io)?;
    let output = BufReader::new(parent.stdout.take().ok_or("no standard output")?);
    let kubeconfig = output
        .lines()
        .map_while(Result::ok)
        .find_map(|line| line.trim().strip_prefix("export KUBECONFIG=").map(PathBuf::from));
    parent.kill().and_then(|()| parent.wait()).map_err(io)?;
    let kubeconfig = kubeconfig.ok_or("the other process started no control plane")?;
    let directory = kubeconfig.parent().ok_or("a kubeconfig in no directory")?;
    // The directory goes last, after the processes that are in it.
    let started = Instant::now();
    while directory.exists() {
        if started.elapsed() > WITHIN {
            return Err(format!("{} is still there", directory.display()));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

async fn controllers_run() -> Outcome {
    let reference = Reference::with_controllers().await.map_err(|error| sentence(&error))?;
    let accounts =
        Api::<ServiceAccount>::namespaced(reference.admin.client().map_err(|error| sentence(&error))?, "default");
    let started = Instant::now();
    while accounts.get("default").await.is_err() {
        if started.elapsed() > WITHIN {
            return Err("nobody made the default service account".into());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let (pids, directory) = (reference.pids(), reference.directory().to_owned());
    drop(reference);
    gone(&pids, &directory)
}

fn gone(pids: &[u32], directory: &Path) -> Outcome {
    for pid in pids {
        if exists(*pid).map_err(|error| error.to_string())? {
            return Err(format!("process {pid} is still there"));
        }
    }
    if directory.exists() {
        Err(format!("{} is still there", directory.display()))
    } else {
        Ok(())
    }
}
