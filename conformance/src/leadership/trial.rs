//! Replicas on one server, and what is done to their leader.

use std::fmt::{self, Display, Formatter};
use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Client;
use kube::api::{Api, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::proxy::Proxy;
use super::record::Record;
use crate::report::sentence;

/// Replicas, and the record of what they write.
pub struct Trial {
    pub record: Record,
    _following: JoinSet<()>,
    replicas: Vec<Replica>,
    kubeconfig: PathBuf,
    upstream: SocketAddr,
    lease: Duration,
    started: usize,
    directory: tempfile::TempDir,
}

struct Replica {
    name: String,
    process: Child,
    proxy: Proxy,
}

/// What is done to a leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Blow {
    Kill,
    Suspend,
    CutOff,
    Stop,
}

/// How long it took at most until another replica wrote.
#[derive(Default)]
pub struct Times {
    blows: usize,
    lease: Duration,
    pub crash: Duration,
    suspension: Duration,
    pub stop: Duration,
}

impl Display for Times {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} blows, longest until another wrote: {:.2} s after a crash or cut, {:.2} s after a suspension, {:.2} s after a \
             stop (lease {} s)",
            self.blows,
            self.crash.as_secs_f64(),
            self.suspension.as_secs_f64(),
            self.stop.as_secs_f64(),
            self.lease.as_secs(),
        )
    }
}

impl Trial {
    pub async fn start(kubeconfig: &Path, upstream: SocketAddr, lease: Duration) -> Result<Trial, String> {
        let config = Kubeconfig::read_from(kubeconfig).map_err(|error| sentence(&error))?;
        let config = kube::Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await;
        let client = Client::try_from(config.map_err(|error| sentence(&error))?).map_err(|error| sentence(&error))?;
        let named = |name: &str| json!({ "metadata": { "name": name } });
        let tick: Secret = serde_json::from_value(named("tick")).expect("a Secret");
        let target: ConfigMap = serde_json::from_value(named("target")).expect("a ConfigMap");
        let params = PostParams::default();
        let created = Api::namespaced(client.clone(), "default").create(&params, &tick).await;
        created.map_err(|error| sentence(&error))?;
        let created = Api::namespaced(client.clone(), "default").create(&params, &target).await;
        created.map_err(|error| sentence(&error))?;
        let (record, following) = Record::follow(&client);
        let mut trial = Trial {
            record,
            _following: following,
            replicas: Vec::new(),
            kubeconfig: kubeconfig.to_owned(),
            upstream,
            lease,
            started: 0,
            directory: tempfile::tempdir().map_err(|error| error.to_string())?,
        };
        trial.refill().await?;
        Ok(trial)
    }

    /// Strikes the leader again and again, and says how long others took.
    pub async fn rounds(&mut self, rounds: usize) -> Result<Times, String> {
        let mut times = Times { lease: self.lease, ..Times::default() };
        for round in 0..rounds {
            let blow = [Blow::Kill, Blow::Suspend, Blow::CutOff, Blow::Stop][round % 4];
            let leader = self.leader().await?;
            // Somewhere in the middle of a write, or of a renewal.
            sleep(Duration::from_micros((round as u64).wrapping_mul(0x9e37_79b9) % 1_000_000)).await;
            let took = self
                .strike(&leader, blow)
                .await
                .map_err(|why| format!("round {round}, {blow:?}: {why}{}", self.last_words()))?;
            println!("  {round:3} {blow:?} {leader}: {:.2} s", took.as_secs_f64());
            times.blows += 1;
            let longest = match blow {
                Blow::Kill | Blow::CutOff => &mut times.crash,
                Blow::Suspend => &mut times.suspension,
                Blow::Stop => &mut times.stop,
            };
            *longest = took.max(*longest);
            self.refill().await?;
        }
        Ok(times)
    }

    /// The end of what every replica logged.
    fn last_words(&self) -> String {
        let log_of = |replica: &Replica| {
            let log = std::fs::read_to_string(self.log(&replica.name)).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            format!("\n{}:\n{}", replica.name, lines[lines.len().saturating_sub(20)..].join("\n"))
        };
        self.replicas.iter().map(log_of).collect()
    }

    fn log(&self, replica: &str) -> PathBuf {
        self.directory.path().join(format!("{replica}.log"))
    }

    async fn strike(&mut self, leader: &str, blow: Blow) -> Result<Duration, String> {
        let index = self.replicas.iter().position(|replica| replica.name == leader);
        let index = index.ok_or_else(|| format!("{leader} is no replica"))?;
        let struck = Instant::now();
        match blow {
            Blow::Kill => self.replicas[index].signal("KILL")?,
            Blow::Suspend => self.replicas[index].signal("STOP")?,
            Blow::CutOff => self.replicas[index].proxy.cut(true),
            Blow::Stop => self.replicas[index].signal("TERM")?,
        }
        let next = self.record.next(struck, leader, self.lease * 3 + Duration::from_secs(20)).await?;
        match blow {
            Blow::Kill | Blow::Stop => drop(self.replicas.remove(index)),
            Blow::Suspend => self.replicas[index].signal("CONT")?,
            Blow::CutOff => self.replicas[index].proxy.cut(false),
        }
        sleep(Duration::from_secs(1)).await;
        Ok(next.at - struck)
    }

    /// Whoever leads and writes.
    async fn leader(&self) -> Result<String, String> {
        for _ in 0..600 {
            let holder = self.record.holder().unwrap_or_default();
            if self.replicas.iter().any(|replica| replica.name == holder)
                && let Ok(write) = self.record.next(Instant::now(), "", Duration::from_secs(1)).await
                && write.writer == holder
            {
                return Ok(holder);
            }
            sleep(Duration::from_millis(100)).await;
        }
        Err("nobody leads".into())
    }

    async fn refill(&mut self) -> Result<(), String> {
        while self.replicas.len() < 3 {
            self.started += 1;
            let name = format!("replica-{}", self.started);
            let proxy = Proxy::start(self.upstream).await.map_err(|error| error.to_string())?;
            let text = std::fs::read_to_string(&self.kubeconfig).map_err(|error| error.to_string())?;
            let (from, to) = (self.upstream.to_string(), format!("127.0.0.1:{}", proxy.port));
            let kubeconfig = self.directory.path().join(format!("{name}.kubeconfig"));
            std::fs::write(&kubeconfig, text.replace(&from, &to)).map_err(|error| error.to_string())?;
            let log = File::create(self.log(&name));
            let program = std::env::current_exe().map_err(|error| error.to_string())?;
            let process = Command::new(&program)
                .args([
                    "replica",
                    "--identity",
                    &name,
                    "--lease",
                    &self.lease.as_millis().to_string(),
                ])
                .arg("--kubeconfig")
                .arg(&kubeconfig)
                .stdin(Stdio::piped())
                .stderr(log.map_err(|error| error.to_string())?)
                .spawn()
                .map_err(|error| format!("start {}: {error}", program.display()))?;
            self.replicas.push(Replica { name, process, proxy });
        }
        Ok(())
    }
}

impl Replica {
    fn signal(&self, signal: &str) -> Result<(), String> {
        let sent = Command::new("kill").args(["-s", signal, &self.process.id().to_string()]).status();
        match sent {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("kill -s {signal}: {status}")),
            Err(error) => Err(format!("kill -s {signal}: {error}")),
        }
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        if let Err(error) = self.process.kill().and_then(|()| self.process.wait().map(drop)) {
            eprintln!("end {}: {error}", self.name);
        }
    }
}
