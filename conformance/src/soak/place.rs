//! The server of a soak: `flyball up` on disk, or the reference; either can be killed and started again.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use kube::config::{KubeConfigOptions, Kubeconfig};

use super::Against;
use crate::group::built;
use crate::reference::Reference;
use crate::report::sentence;

/// How long a server may take to start.
const WITHIN: Duration = Duration::from_secs(60);

/// A running server.
pub enum Place {
    Flyball(Box<Flyball>),
    Reference(Box<Reference>),
}

/// `flyball up`.
pub struct Flyball {
    child: Child,
    program: std::path::PathBuf,
    ports: [u16; 2],
    directory: tempfile::TempDir,
    config: kube::Config,
}

impl Place {
    /// Builds and starts a server.
    pub async fn start(against: Against) -> Result<Place, String> {
        match against {
            Against::Flyball => Ok(Place::Flyball(Box::new(Flyball::start().await?))),
            Against::Reference => {
                let reference = Reference::with_controllers().await.map_err(|error| sentence(&error))?;
                Ok(Place::Reference(Box::new(reference)))
            }
        }
    }

    /// A client that does not retry by itself.
    pub fn client(&self) -> Result<kube::Client, String> {
        match self {
            Place::Flyball(flyball) => kube::Client::try_from(flyball.config.clone()).map_err(|error| sentence(&error)),
            Place::Reference(reference) => reference.admin.client().map_err(|error| sentence(&error)),
        }
    }

    /// Kills the server as a power cut would, and starts it on what it had kept.
    pub async fn restart(&mut self) -> Result<(), String> {
        match self {
            Place::Flyball(flyball) => flyball.restart().await,
            Place::Reference(reference) => reference.restart().map_err(|error| sentence(&error)),
        }
    }
}

impl Flyball {
    async fn start() -> Result<Flyball, String> {
        let program = built("flyball-cli")?;
        let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
        let ports = [free_port()?, free_port()?];
        let child = spawn(&program, directory.path(), ports)?;
        let kubeconfig = directory.path().join("kubeconfig");
        let started = Instant::now();
        while !kubeconfig.exists() && started.elapsed() < WITHIN {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let kubeconfig = Kubeconfig::read_from(&kubeconfig).map_err(|error| sentence(&error))?;
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        let mut config = config.map_err(|error| sentence(&error))?;
        config.default_retry = false;
        Ok(Flyball { child, program, ports, directory, config })
    }

    async fn restart(&mut self) -> Result<(), String> {
        self.stop();
        // Long enough that somebody notices.
        tokio::time::sleep(Duration::from_secs(2)).await;
        self.child = spawn(&self.program, self.directory.path(), self.ports)?;
        Ok(())
    }

    fn stop(&mut self) {
        if let Err(error) = self.child.kill().and_then(|()| self.child.wait()) {
            eprintln!("stop flyball: {error}");
        }
    }
}

impl Drop for Flyball {
    fn drop(&mut self) {
        self.stop();
    }
}

fn spawn(program: &Path, directory: &Path, [port, http_port]: [u16; 2]) -> Result<Child, String> {
    Command::new(program)
        .args(["up", "--port", &port.to_string(), "--data"])
        .arg(directory.join("data"))
        .arg("--kubeconfig")
        .arg(directory.join("kubeconfig"))
        .env("PORT", http_port.to_string())
        .stdout(Stdio::null())
        .spawn()
        .map_err(|error| format!("start {}: {error}", program.display()))
}

fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    listener.local_addr().map(|address| address.port()).map_err(|error| error.to_string())
}
