//! Group `kubectl`: the command lines of `kubectl.yaml`, run by a real kubectl on our server and on the real one, and
//! compared by what they print and how they end.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use flyball_apiserver::ApiServer;
use flyball_apiserver::authn::identity::Authority;
use flyball_apiserver::authn::kubeconfig;
use flyball_apiserver::http::serve::{Config, Serving, serve};
use flyball_store::Store;
use regex::Regex;
use serde::Deserialize;
use tokio::process::Command;

use crate::group::unready::Unready;
use crate::reference::{Binaries, Reference};
use crate::report::{Finding, Verdict, sentence};

/// How long one command line may take.
const WITHIN: Duration = Duration::from_secs(20);

/// Runs the command lines that contain `text` and all before them, for later ones need earlier ones.
pub async fn run(text: &str) -> Vec<Finding> {
    compare_all(text).await.unwrap_or_else(Unready::findings)
}

/// Command lines, and the files that they read.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Walk {
    /// Said to the reader of the file only.
    #[serde(rename = "about")]
    _about: String,
    files: BTreeMap<String, String>,
    commands: Vec<Step>,
}

/// One command line; where the two may differ, why.
#[derive(Deserialize)]
#[serde(untagged)]
enum Step {
    Same(String),
    Differs { run: String, because: String },
}

impl Step {
    fn line(&self) -> &str {
        match self {
            Self::Same(line) | Self::Differs { run: line, .. } => line,
        }
    }
}

async fn compare_all(text: &str) -> Result<Vec<Finding>, Unready> {
    let failed = |error: &dyn std::error::Error| Unready::Failed(sentence(error));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("kubectl.yaml");
    let document = std::fs::read_to_string(&path).map_err(|error| failed(&error))?;
    let walk: Walk = serde_saphyr::from_str(&document).map_err(|error| failed(&error))?;
    let kubectl = match std::env::var_os("KUBECTL").filter(|kubectl| !kubectl.is_empty()) {
        Some(kubectl) => PathBuf::from(kubectl),
        None => Binaries::find_or_build()?.kubectl,
    };
    let reference = Reference::start().await?;
    let directory = tempfile::tempdir().map_err(|error| failed(&error))?;
    let (serving, ours) = served(directory.path()).await.map_err(Unready::Failed)?;
    let real = Shell::new(&kubectl, &reference.admin.kubeconfig, &walk, directory.path().join("real"))?;
    let ours = Shell::new(&kubectl, &ours, &walk, directory.path().join("ours"))?;
    let mut findings = Vec::new();
    for step in &walk.commands {
        let (expected, found) = tokio::join!(real.run(step.line()), ours.run(step.line()));
        let verdict = match (expected == found, step) {
            (true, Step::Same(_)) => Verdict::Same,
            (true, Step::Differs { .. }) => Verdict::Different("is the same now: say no more why it differs".into()),
            (false, Step::Differs { because, .. }) => Verdict::Explained(because.clone()),
            (false, Step::Same(_)) => Verdict::Different(differing(&expected, &found)),
        };
        findings.push(Finding { case: step.line().to_owned(), verdict });
    }
    serving.stop().await;
    findings.retain(|finding| finding.case.contains(text));
    Ok(findings)
}

/// Our server on a port, and the kubeconfig for it.
async fn served(directory: &Path) -> Result<(Serving, PathBuf), String> {
    let server = ApiServer::start(Store::memory()).await.map_err(|error| sentence(&error))?;
    let authority = Arc::new(Authority::generate().map_err(|error| sentence(&error))?);
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let config = Config { address, hosts: Vec::new(), authority: authority.clone() };
    let serving = serve(server, config).await.map_err(|error| sentence(&error))?;
    let file = directory.join("kubeconfig");
    kubeconfig::write(&file, &authority, &serving.url()).map_err(|error| sentence(&error))?;
    Ok((serving, file))
}

/// Where command lines run: a directory of their own, with `kubectl` and its configuration.
struct Shell {
    directory: PathBuf,
    path: String,
    normal: Normal,
}

impl Shell {
    fn new(kubectl: &Path, kubeconfig: &Path, walk: &Walk, directory: PathBuf) -> Result<Self, Unready> {
        let prepare = || -> std::io::Result<()> {
            std::fs::create_dir_all(directory.join("bin"))?;
            std::os::unix::fs::symlink(kubectl, directory.join("bin/kubectl"))?;
            std::fs::copy(kubeconfig, directory.join("kubeconfig"))?;
            walk.files.iter().try_for_each(|(name, text)| std::fs::write(directory.join(name), text))
        };
        prepare().map_err(|error| Unready::Failed(sentence(&error)))?;
        let path = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{path}", directory.join("bin").display());
        Ok(Self { normal: Normal::new(&directory), directory, path })
    }

    /// What a command line prints and how it ends, without what must differ.
    async fn run(&self, line: &str) -> String {
        let mut command = Command::new("sh");
        command.args(["-c", line]).current_dir(&self.directory).stdin(Stdio::null());
        command
            .env("PATH", &self.path)
            .env("KUBECONFIG", "kubeconfig")
            .env("HOME", &self.directory);
        let output = tokio::time::timeout(WITHIN, command.kill_on_drop(true).output()).await;
        let (stdout, stderr, status) = match output {
            Err(_) => return format!("did not end within {} s", WITHIN.as_secs()),
            Ok(Err(error)) => return error.to_string(),
            Ok(Ok(output)) => (output.stdout, output.stderr, output.status),
        };
        let code = status.code().map_or("a signal".to_owned(), |code| code.to_string());
        let shown = |bytes: &[u8]| self.normal.of(&String::from_utf8_lossy(bytes));
        format!("{}{}ended with {code}", shown(&stdout), shown(&stderr))
    }
}

/// Takes out of what is printed what must differ between two servers.
struct Normal(Vec<(Regex, &'static str)>);

impl Normal {
    fn new(directory: &Path) -> Self {
        let pattern = |text: &str| Regex::new(text).expect("a constant pattern");
        Self(vec![
            (pattern(&regex::escape(&directory.display().to_string())), "<directory>"),
            (pattern(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "<uid>"),
            (pattern(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "<time>"),
            (pattern(r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4}"), "<time>"),
            (pattern(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)? [+-]\d{4}( UTC)?"), "<time>"),
            (pattern(r#"(?i)(resourceVersion"?: )"?\d+"?"#), "$1<version>"),
            (pattern(r"127\.0\.0\.1:\d+"), "<address>"),
            (pattern(r"\b10\.\d+\.\d+\.\d+\b"), "<address>"),
            (pattern(r":3[0-2]\d{3}/"), ":<port>/"),
            (pattern(r"(?i)(nodePort:? +)(\S+ +)?3[0-2]\d{3}"), "$1$2<port>"),
            (pattern(r"/tmp/\S+"), "<file>"),
            (pattern(r"\b\d+[smh]\b"), "<age>"),
            (pattern(r"(?m) +$"), ""),
            (pattern(r"[ \t]{2,}"), "  "),
        ])
    }

    fn of(&self, text: &str) -> String {
        let normal = |text: String, (pattern, with): &(Regex, &str)| pattern.replace_all(&text, *with).into_owned();
        self.0.iter().fold(text.to_owned(), normal)
    }
}

/// The lines that only one side has.
fn differing(expected: &str, found: &str) -> String {
    let only = |lines: &str, other: &str| -> Vec<String> {
        lines
            .lines()
            .filter(|line| !other.lines().any(|known| known == *line))
            .map(str::to_owned)
            .collect()
    };
    let mut lines: Vec<String> = only(expected, found).iter().map(|line| format!("real {line}")).collect();
    lines.extend(only(found, expected).iter().map(|line| format!("ours {line}")));
    if lines.is_empty() {
        lines.push(format!("the same lines in another order:\n{expected}\nand\n{found}"));
    }
    lines.truncate(24);
    lines.join("\n")
}
