//! An etcd cluster of its own on loopback, whose members can be killed and started again.

use super::{Binaries, Certificates, Error, Process, free_ports};
use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;

/// The most members that a cluster has.
const MOST: usize = 3;

const NAMES: [&str; MOST] = ["etcd-0", "etcd-1", "etcd-2"];

/// How a cluster is started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Setting {
    /// As etcd is by default: every write waits for the disk.
    #[default]
    Durable,
    /// Writes do not wait for the disk. What is written survives the death of a process all the same, but not that of the
    /// machine: for tests whose point is another.
    Hasty,
    /// Members speak TLS, and ask clients for a certificate.
    Tls,
}

/// A running cluster; it ends, and its data goes, when this is dropped or the process that holds it dies.
pub struct Etcd {
    // Dropped before the directory.
    members: Vec<Option<Process>>,
    ports: [u16; 2 * MOST],
    setting: Setting,
    binaries: Binaries,
    certificates: Certificates,
    directory: tempfile::TempDir,
}

impl Etcd {
    /// Starts a cluster of one member or three; its programs are built first if this machine has none.
    pub async fn start(members: usize, setting: Setting) -> Result<Etcd, Error> {
        let binaries = tokio::task::spawn_blocking(Binaries::find_or_build)
            .await
            .expect("finding binaries never panics")?;
        let directory = tempfile::Builder::new().prefix("flyball-etcd-").tempdir().map_err(Error::Directory)?;
        let certificates = Certificates::write(directory.path())?;
        let mut etcd = Etcd {
            members: (0..members).map(|_| None).collect(),
            ports: free_ports()?,
            setting,
            binaries,
            certificates,
            directory,
        };
        for member in 0..members {
            etcd.restart(member)?;
        }
        Ok(etcd)
    }

    /// Where clients reach the members.
    pub fn endpoints(&self) -> Vec<String> {
        let scheme = if self.setting == Setting::Tls { "https" } else { "http" };
        let endpoint = |member: usize| format!("{scheme}://localhost:{}", self.ports[member]);
        (0..self.members.len()).map(endpoint).collect()
    }

    /// The authority's certificate, and the certificate and key of a client, in PEM.
    pub fn identity(&self) -> [&str; 3] {
        let Certificates { ca, admin, .. } = &self.certificates;
        [ca, &admin.certificate, &admin.key]
    }

    /// Posts to the JSON face of the first member; returns the answer's status line and body.
    pub fn post(&self, path: &str, body: &str) -> io::Result<String> {
        let port = self.ports[0];
        let length = body.len();
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }

    /// The process ids of the members that run.
    pub fn pids(&self) -> Vec<u32> {
        self.members.iter().flatten().filter_map(Process::pid).collect()
    }

    /// Kills a member, as `kill -9` does.
    pub fn kill(&mut self, member: usize) {
        // The last program to end takes the directory with it, unless another one seems to run.
        fs::write(self.killed(), "").expect("the directory can be written");
        self.members[member] = None;
    }

    fn killed(&self) -> PathBuf {
        self.directory.path().join("killed.pid")
    }

    /// Starts a member, again with what it had.
    pub fn restart(&mut self, member: usize) -> Result<(), Error> {
        let path = self.directory.path();
        let client = self.endpoints()[member].replace("localhost", "127.0.0.1");
        let peer = |member: usize| format!("http://127.0.0.1:{}", self.ports[MOST + member]);
        let cluster: Vec<_> = (0..self.members.len()).map(|at| format!("{}={}", NAMES[at], peer(at))).collect();
        let file = |name: &str| path.join(name).display().to_string();
        let mut arguments = vec![
            format!("--name={}", NAMES[member]),
            format!("--data-dir={}", file(&format!("data-{member}"))),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            format!("--listen-peer-urls={}", peer(member)),
            format!("--initial-advertise-peer-urls={}", peer(member)),
            format!("--initial-cluster={}", cluster.join(",")),
        ];
        match self.setting {
            Setting::Durable => {}
            Setting::Hasty => arguments.push("--unsafe-no-fsync".into()),
            Setting::Tls => arguments.extend([
                format!("--cert-file={}", file("server.crt")),
                format!("--key-file={}", file("server.key")),
                format!("--trusted-ca-file={}", file("ca.crt")),
                "--client-cert-auth".into(),
            ]),
        }
        self.members[member] = Some(Process::start(NAMES[member], &self.binaries.etcd, path, &arguments)?);
        // Nobody else looks for it before this member has written its own.
        fs::remove_file(self.killed()).or_else(|error| match error.kind() {
            io::ErrorKind::NotFound => Ok(()),
            _ => Err(Error::Directory(error)),
        })
    }
}
