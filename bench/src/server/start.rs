//! Starts both servers as processes, and measures how long each takes to its first answer.

use super::PEER;
use crate::{
    figure::{Figure, median},
    report::{Aim, Row},
    target::Target,
};
use conformance::reference::Reference;
use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};
use tokio::process::Child;

/// How often each is started for the median.
const STARTS: usize = 5;

/// etcd and kube-apiserver.
pub struct Peer {
    pub target: Target,
    _reference: Reference,
}

impl Peer {
    pub async fn start() -> Peer {
        let reference = Reference::start().await.unwrap_or_else(|error| panic!("bench: the peer: {error}"));
        let pids = reference.processes().into_iter().map(|(_, pid)| pid).collect();
        Peer {
            target: Target::of(PEER, &reference.admin.kubeconfig, pids).await,
            _reference: reference,
        }
    }
}

/// `flyball up` on disk.
pub struct Ours {
    pub target: Target,
    _child: Child,
    _directory: tempfile::TempDir,
}

impl Ours {
    pub async fn start() -> Ours {
        Ours::start_program("flyball", &program()).await
    }

    /// Starts another build of `flyball`.
    pub async fn start_program(name: &'static str, program: &Path) -> Ours {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let kubeconfig = directory.path().join("kubeconfig");
        let port = free_port();
        let child = tokio::process::Command::new(program)
            .args(["up", "--port", &port.to_string(), "--data"])
            .arg(directory.path().join("data"))
            .arg("--kubeconfig")
            .arg(&kubeconfig)
            .env("PORT", free_port().to_string())
            .stdout(std::process::Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("flyball starts");
        // It is written when the server listens.
        while !kubeconfig.exists() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let pid = child.id().expect("a running process");
        let target = Target::of(name, &kubeconfig, vec![pid]).await;
        Ours { target, _child: child, _directory: directory }
    }
}

/// From nothing to the first list of namespaces.
pub async fn rows() -> Vec<Row> {
    build();
    let (mut ours, mut peer) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        let start = Instant::now();
        let server = Ours::start().await;
        answers(&server.target).await;
        ours.push(start.elapsed());
        drop(server);
        let start = Instant::now();
        let server = Peer::start().await;
        answers(&server.target).await;
        peer.push(start.elapsed());
    }
    let row = |what: &str, ours, peer| Row {
        what: what.into(),
        ours: Figure::Time(ours),
        peer: Some((PEER, Figure::Time(peer))),
        aim: Aim::Times(100.0),
    };
    let peer = median(peer);
    vec![
        row("cold start to first answer, a process", median(ours), peer),
        row("cold start, in process", inside().await, peer),
    ]
}

async fn answers(target: &Target) {
    target.connect().await.send(http::Method::GET, "/api/v1/namespaces", "").await;
}

/// The whole cluster as a value in this process, as tests start it.
async fn inside() -> Duration {
    let mut times = Vec::new();
    for _ in 0..STARTS {
        let start = Instant::now();
        let store = flyball_store::Store::memory();
        let cluster = flyball_cluster::Cluster::start(store).await.expect("a cluster in memory starts");
        let namespaces: kube::Api<k8s_openapi::api::core::v1::Namespace> = kube::Api::all(cluster.client());
        namespaces.list(&Default::default()).await.expect("a list");
        times.push(start.elapsed());
    }
    median(times)
}

/// Builds `flyball` as this program was built.
pub fn build() {
    let mut command = Command::new(env!("CARGO"));
    command.args(["build", "--quiet", "--package", "flyball-cli"]).args(profile());
    let built = command.status().expect("cargo runs");
    assert!(built.success(), "flyball-cli builds");
}

/// What makes cargo build into the folder that this program is in.
pub fn profile() -> Vec<OsString> {
    let folder = program().ancestors().nth(2).map(|folder| folder.as_os_str().to_owned());
    let target = [
        OsString::from("--target-dir"),
        folder.expect("a program of cargo's is two folders down"),
    ];
    let release = (!cfg!(debug_assertions)).then(|| "--release".into());
    target.into_iter().chain(release).collect()
}

/// The program beside this one: both are built into the same folder.
fn program() -> PathBuf {
    std::env::current_exe().expect("this program's path").with_file_name("flyball")
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("bound").port()
}
