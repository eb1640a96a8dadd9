//! What can go wrong while the control plane is found, built and started; each message says what to do.

use std::io;
use std::path::PathBuf;

/// Why there is no running reference.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Neither built programs nor a way to build them.
    #[error(
        "no Go on the PATH and KUBEBUILDER_ASSETS is not set: install Go 1.26 or newer, or point KUBEBUILDER_ASSETS at a directory with etcd and kube-apiserver"
    )]
    NoGo,
    /// `KUBEBUILDER_ASSETS` lacks a program.
    #[error("KUBEBUILDER_ASSETS is {}, which has no executable {name}: put it there, or unset the variable to have it built", directory.display())]
    MissingBinary {
        /// The program that was looked for.
        name: &'static str,
        /// Where it was looked for.
        directory: PathBuf,
    },
    /// No place to keep what is built.
    #[error("neither XDG_CACHE_HOME nor HOME is set: set XDG_CACHE_HOME to a directory for the built control plane")]
    NoCacheDirectory,
    /// The cache directory cannot be written.
    #[error("write {}: make the directory writable, or set XDG_CACHE_HOME to one that is", path.display())]
    Cache {
        /// The file or directory that failed.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The Go compiler refused.
    #[error(
        "go could not build {name}; it needs Go 1.26 or newer and a reachable module proxy (`go env GOPROXY`). Its last words:\n{output}"
    )]
    GoBuild {
        /// The program that was being built.
        name: &'static str,
        /// The tail of what the compiler printed.
        output: String,
    },
    /// The requested port is taken.
    #[error("port {port} on 127.0.0.1 is in use by another process: stop it, or leave the port out to get a free one")]
    PortInUse {
        /// The port that was asked for.
        port: u16,
        /// Why it could not be bound.
        source: io::Error,
    },
    /// Loopback has no free port.
    #[error("find a free port on 127.0.0.1: loopback must be up")]
    NoFreePort(#[source] io::Error),
    /// No temporary directory.
    #[error("write the control plane's temporary directory: free some space, or set TMPDIR to a writable directory")]
    Directory(#[source] io::Error),
    /// A certificate could not be made.
    #[error("make the control plane's certificates")]
    Certificate(#[from] rcgen::Error),
    /// A kubeconfig could not be read back.
    #[error("read the control plane's kubeconfig")]
    Kubeconfig(#[from] kube::config::KubeconfigError),
    /// No client could be made.
    #[error("make a client for the control plane")]
    Client(#[source] Box<kube::Error>),
    /// A program could not be started.
    #[error("start {name} from {}: it must be a program for this machine", program.display())]
    Start {
        /// The program's name.
        name: &'static str,
        /// The program's file.
        program: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A program ended by itself.
    #[error("{name} ended with {status} before it was ready. Its last words:\n{log}")]
    Ended {
        /// The program's name.
        name: &'static str,
        /// How it ended.
        status: std::process::ExitStatus,
        /// The tail of its log.
        log: String,
    },
    /// It runs, but never became ready.
    #[error("kube-apiserver was not ready after {seconds} s: is the machine overloaded? Its last words:\n{log}")]
    NotReady {
        /// How long was waited.
        seconds: u64,
        /// The tail of its log.
        log: String,
    },
}

impl Error {
    /// Whether another process took a port between our choosing and using it.
    pub(super) fn is_lost_port(&self) -> bool {
        matches!(self, Self::Ended { log, .. } if log.contains("address already in use"))
    }
}
