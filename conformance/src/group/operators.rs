//! Group `operators`: our operators as programs, against a real control plane with its controllers.
//! Nothing runs pods there, so the scenario sets them Ready.

mod application;
mod hello;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::reference::{Error, Process, Reference};
use crate::report::{Finding, sentence};
use crate::scenario::World;

/// A step's verdict: nothing, or what is wrong.
pub(super) type Outcome = Result<(), String>;

/// Runs both scenarios; the filter chooses what is reported.
pub async fn run(text: &str) -> Vec<Finding> {
    let reference = match Reference::with_controllers().await {
        Err(error @ Error::NoGo) => return vec![Finding::skipped("start", error.to_string())],
        Err(error) => return vec![Finding::check("start", Err(sentence(&error)))],
        Ok(reference) => reference,
    };
    let mut findings = Vec::new();
    match Trial::new(&reference) {
        Err(message) => return vec![Finding::check("start", Err(message))],
        Ok(trial) => {
            scenarios(&trial, &mut findings).await;
        }
    }
    findings.retain(|finding| finding.case.contains(text));
    findings
}

/// Runs both scenarios as whom the trial says.
pub(super) async fn scenarios(trial: &Trial<'_>, findings: &mut Vec<Finding>) {
    hello::run(trial, findings).await;
    application::run(trial, findings).await;
}

/// Where operators are tried: a control plane, and a directory for their logs.
pub(super) struct Trial<'a> {
    pub(super) reference: &'a Reference,
    pub(super) world: World,
    /// As whom the program of a crate runs, where that is not the admin.
    pub(super) accounts: HashMap<&'static str, PathBuf>,
    /// The port of the Application's HTTP API.
    port: u16,
}

impl<'a> Trial<'a> {
    pub(super) fn new(reference: &'a Reference) -> Result<Self, String> {
        let client = reference.admin.client().map_err(|error| sentence(&error))?;
        let accounts = HashMap::new();
        let port = free_port().map_err(|error| format!("find a free port: {error}"))?;
        Ok(Self { reference, world: World::new(client), accounts, port })
    }

    /// Builds the program of crate `name` and runs it; it ends when the returned value is dropped.
    fn start(&self, name: &'static str) -> Result<Process, String> {
        let program = built(name)?;
        let kubeconfig = self.accounts.get(name).unwrap_or(&self.reference.admin.kubeconfig);
        let kubeconfig = format!("KUBECONFIG={}", kubeconfig.display());
        let free = [
            "FLYBALL_METRICS_PORT=0".to_owned(),
            "FLYBALL_HEALTH_PORT=0".to_owned(),
            format!("PORT={}", self.port),
        ];
        let arguments = [&[kubeconfig], &free[..], &[program.display().to_string()]].concat();
        let process = Process::start(name, Path::new("env"), self.reference.directory(), &arguments);
        process.map_err(|error| sentence(&error))
    }
}

/// A port that no process listens on now.
fn free_port() -> std::io::Result<u16> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// What is built with the first program that is asked for.
const PROGRAMS: [(&str, &str); 3] = [
    ("flyball-cli", "flyball"),
    ("application", "application"),
    ("hello", "hello"),
];

/// The program of a crate of this workspace, built now: the same cargo, the same target directory.
pub(crate) fn built(name: &str) -> Result<PathBuf, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    // This package is named, but not its program: what all of them are made of has the same features then, and is built once.
    command.args([
        "build",
        "--quiet",
        "--message-format=json-render-diagnostics",
        "--package",
        "conformance",
    ]);
    for (package, program) in PROGRAMS {
        command.args(["--package", package, "--bin", program]);
    }
    let output = command
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cargo build: {error}"))?;
    let messages = serde_json::Deserializer::from_slice(&output.stdout).into_iter::<Value>().flatten();
    let mut executables = messages.filter_map(|message| {
        let manifest = Path::new(message["manifest_path"].as_str()?);
        let is_wanted = manifest.parent()?.file_name()? == name;
        let executable = message["executable"].as_str().filter(|_| is_wanted);
        executable.map(PathBuf::from)
    });
    executables.next().ok_or_else(|| format!("`cargo build` built no program of `{name}`"))
}

/// Adds a step's finding, with the operator's last words where it failed.
fn step(findings: &mut Vec<Finding>, case: &str, operator: &Process, outcome: Outcome) {
    let outcome = outcome.map_err(|message| format!("{message}\nthe operator's last words:\n{}", operator.log_tail()));
    findings.push(Finding::check(case, outcome));
}
