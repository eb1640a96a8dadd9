//! Why a command failed, as one sentence.

use std::error::Error;

/// What a command could not do.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("there is no home directory to keep the cluster in: name one with --data DIR, or use --memory")]
    NoHome,
    #[error(transparent)]
    Store(#[from] flyball_store::Error),
    #[error(transparent)]
    Authority(#[from] flyball_apiserver::authn::identity::AuthorityError),
    #[error(transparent)]
    Cluster(#[from] flyball_cluster::StartError),
    #[error(transparent)]
    Serve(#[from] flyball_apiserver::http::serve::ServeError),
    #[error(transparent)]
    Kubeconfig(#[from] flyball_apiserver::authn::kubeconfig::WriteError),
    #[error("{0}")]
    Operator(flyball::Error),
    #[error("--etcd-user is NAME:PASSWORD")]
    EtcdUser,
    #[error("read {}", path.display())]
    Read {
        path: std::path::PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("there is no cluster in {}: name its directory with --data DIR, or its etcd with --etcd", path.display())]
    NoCluster { path: std::path::PathBuf },
    #[error("talk over {}", path.display())]
    Control {
        path: std::path::PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("the cluster that runs in this directory says: {0}")]
    Refused(String),
    #[error("a running cluster can only be told the name of a file that is text in one line")]
    FileName,
    #[error("wait for Ctrl-C")]
    Signal(#[source] std::io::Error),
}

/// The failure and everything behind it, in one line.
pub fn sentence(failure: &Failure) -> String {
    let mut text = failure.to_string();
    let mut source = failure.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}
