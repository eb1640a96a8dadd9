//! Group `guide`: the command lines of the guide's first chapter, run by a shell as a newcomer would: on `flyball up`, with the
//! program of `operators/hello`, which the guide's Rust is (`cargo test -p hello` sees to that).

use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::operators::built;
use super::unready::Unready;
use crate::reference::Binaries;
use crate::report::{Finding, sentence};

const GUIDE: &str = include_str!("../../../docs/guide/01-hello.md");

/// How long a command's effect may take.
const WITHIN: Duration = Duration::from_secs(60);

/// Runs the commands, those of a block in one shell, in the guide's order.
pub async fn run(text: &str) -> Vec<Finding> {
    let mut findings = walk().await.unwrap_or_else(Unready::findings);
    findings.retain(|finding| finding.case.contains(text));
    findings
}

async fn walk() -> Result<Vec<Finding>, Unready> {
    let kubectl = tokio::task::spawn_blocking(Binaries::find_or_build)
        .await
        .expect("finding binaries never panics")?
        .kubectl;
    let place = tokio::task::spawn_blocking(move || Place::start(&kubectl));
    let place = place.await.expect("starting a place never panics").map_err(Unready::Failed)?;
    let mut findings = Vec::new();
    for block in blocks() {
        let case = block.commands.lines().next().unwrap_or_default().to_owned();
        findings.push(Finding::check(case, place.run(&block).await));
    }
    findings.push(Finding::check("what is changed by hand is put back", place.puts_back().await));
    findings.push(Finding::check("the manifests are piped into kubectl apply", place.installs()));
    Ok(findings)
}

/// Commands that stand together, and what is shown below them.
struct Block {
    commands: String,
    shown: String,
}

/// The console blocks, without those whose command builds a project or goes on for ever.
fn blocks() -> Vec<Block> {
    let begun = GUIDE.split("\n```console\n").skip(1);
    let blocks = begun.map(|rest| read(rest.split("```").next().unwrap_or_default()));
    blocks.filter(|block| !block.commands.starts_with("cargo ")).collect()
}

/// A line that begins with a dollar is a command; so are those that it reads up to `END`.
fn read(text: &str) -> Block {
    let (mut block, mut reads) = (Block { commands: String::new(), shown: String::new() }, false);
    for line in text.lines() {
        let command = line.strip_prefix("$ ");
        let part = if command.is_some() || reads {
            &mut block.commands
        } else {
            &mut block.shown
        };
        part.push_str(command.unwrap_or(line));
        part.push('\n');
        reads = (reads && line != "END") || line.ends_with("<<END");
    }
    block
}

/// `flyball up`, the guide's program running on it, and a directory with both and kubectl on the path.
struct Place {
    directory: tempfile::TempDir,
    // Ended in this order.
    _greeter: Ending,
    _cluster: Ending,
}

/// A process that ends when this is dropped.
struct Ending(Child);

impl Drop for Ending {
    fn drop(&mut self) {
        if let Err(error) = self.0.kill().and_then(|()| self.0.wait()) {
            eprintln!("end a process: {error}");
        }
    }
}

impl Place {
    fn start(kubectl: &Path) -> Result<Place, String> {
        let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
        let (path, kubeconfig) = (directory.path(), directory.path().join("kubeconfig"));
        symlink(kubectl, path.join("kubectl")).map_err(|error| error.to_string())?;
        symlink(built("hello")?, path.join("greeter")).map_err(|error| error.to_string())?;
        let [port, http_port] = [free_port()?, free_port()?];
        let mut up = Command::new(built("flyball-cli")?);
        up.args(["up", "--port", &port.to_string(), "--data"]).arg(path.join("data"));
        up.arg("--kubeconfig").arg(&kubeconfig).env("PORT", http_port.to_string());
        let cluster = started(&mut up)?;
        let begun = Instant::now();
        while !kubeconfig.exists() {
            if begun.elapsed() > WITHIN {
                return Err("`flyball up` wrote no kubeconfig".into());
            }
            std::thread::yield_now();
        }
        let mut greeter = Command::new(path.join("greeter"));
        greeter.env("KUBECONFIG", &kubeconfig).args(["--metrics-port", "0", "--health-port", "0"]);
        let greeter = started(&mut greeter)?;
        Ok(Place { directory, _greeter: greeter, _cluster: cluster })
    }

    /// Runs commands until they succeed and print what the guide shows: what they ask for may take a moment.
    async fn run(&self, block: &Block) -> Result<(), String> {
        // The wrong arguments of the last block end with a failure, as the guide shows.
        let (expected, fails) = (parts(&block.shown), block.shown.starts_with("error: "));
        self.until(&block.commands, |said, succeeded| {
            // What is applied once more is as it was.
            let said = said.replace(" unchanged\n", " created\n");
            let mut rest = said.as_str();
            let told = expected.iter().all(|part| match rest.split_once(part.trim_end()) {
                Some((_, after)) => {
                    rest = after;
                    true
                }
                None => false,
            });
            told && succeeded != fails
        })
        .await
    }

    async fn puts_back(&self) -> Result<(), String> {
        let (_, said) =
            self.shell("kubectl patch configmap ada --type merge --patch '{\"data\":{\"greeting\":\"tampered\"}}'")?;
        let read = "kubectl get configmap ada -o jsonpath={.data.greeting}";
        self.until(read, |greeting, _| greeting == "hello Ada")
            .await
            .map_err(|error| format!("{said}{error}"))
    }

    fn installs(&self) -> Result<(), String> {
        match self.shell("greeter manifests --image registry.example/greeter:1 | kubectl apply -f -")? {
            (true, _) => Ok(()),
            (false, said) => Err(said),
        }
    }

    async fn until(&self, commands: &str, holds: impl Fn(&str, bool) -> bool) -> Result<(), String> {
        let started = Instant::now();
        loop {
            let (succeeded, said) = self.shell(commands)?;
            if holds(&said, succeeded) {
                return Ok(());
            }
            if started.elapsed() > WITHIN {
                return Err(format!("`{}` says\n{said}", commands.trim()));
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// Whether commands succeeded, and what they said.
    fn shell(&self, commands: &str) -> Result<(bool, String), String> {
        let directory = self.directory.path();
        let path = std::env::var("PATH").unwrap_or_default();
        let output = Command::new("bash")
            .args(["-o", "pipefail", "-e", "-c", commands])
            .env("PATH", format!("{}:{path}", directory.display()))
            .env("KUBECONFIG", directory.join("kubeconfig"))
            .env("HOME", directory)
            .current_dir(directory)
            .output()
            .map_err(|error| sentence(&error))?;
        let said = [output.stdout, output.stderr].concat();
        Ok((output.status.success(), String::from_utf8_lossy(&said).into_owned()))
    }
}

/// What is shown, between its gaps.
fn parts(shown: &str) -> Vec<String> {
    shown.split("…\n").filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

fn started(command: &mut Command) -> Result<Ending, String> {
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    child.map(Ending).map_err(|error| sentence(&error))
}

fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    listener.local_addr().map(|address| address.port()).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_reads_on_to_its_end() {
        let block = read("$ cat <<END\na\nEND\n$ echo b\na\nb\n");
        assert_eq!((&*block.commands, &*block.shown), ("cat <<END\na\nEND\necho b\n", "a\nb\n"));
    }

    #[test]
    fn the_guide_has_commands_to_run() {
        let first: Vec<_> = blocks().iter().map(|block| block.commands.lines().next().unwrap().to_owned()).collect();
        assert_eq!(first.len(), 5, "{first:?}");
        assert_eq!(first[0], "kubectl apply -f - <<END");
    }
}
