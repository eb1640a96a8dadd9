//! The errors of the commands, each printed as one sentence.

use std::{error::Error, io, path::PathBuf};

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A file of the audit flags cannot be used.
    #[error("open {}", path.display())]
    Audit {
        /// The file.
        path: std::path::PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The audit policy is invalid.
    #[error(transparent)]
    AuditPolicy(#[from] flyball_apiserver::audit::PolicyError),
    #[error("no home directory for the data directory: set HOME, or use --data DIR or --memory")]
    NoHome,
    #[error(transparent)]
    Store(#[from] flyball_store::Error),
    #[error(transparent)]
    Authority(#[from] flyball_apiserver::authn::identity::AuthorityError),
    #[error(transparent)]
    TokenKeys(#[from] flyball_apiserver::authn::token_keys::TokenKeysError),
    #[error(transparent)]
    Cluster(#[from] flyball_cluster::StartError),
    #[error(transparent)]
    Serve(#[from] flyball_apiserver::http::serve::ServeError),
    #[error(transparent)]
    Kubeconfig(#[from] flyball_apiserver::authn::kubeconfig::WriteError),
    #[error(transparent)]
    Oidc(#[from] flyball_apiserver::authn::oidc::OidcError),
    #[error("invalid --oidc-required-claim: expected CLAIM=VALUE")]
    RequiredClaim,
    #[error("read the tokens of {}", path.display())]
    TokenFile {
        path: PathBuf,
        #[source]
        source: flyball_apiserver::authn::token_file::TokenFileError,
    },
    #[error("{0}")]
    Operator(flyball::Error),
    #[error("invalid --etcd-user: expected NAME:PASSWORD")]
    EtcdUser,
    #[error("read {}", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("prepare the data directory {}", path.display())]
    DataDirectory {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("use {} for the kubeconfig (choose another file with --kubeconfig)", path.display())]
    TemporaryDirectory {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("no cluster in {}: set its directory with --data DIR, or its etcd with --etcd", path.display())]
    NoCluster { path: PathBuf },
    #[error("use the control socket {}", path.display())]
    Control {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the running cluster refused the backup: {0}")]
    Refused(String),
    #[error("invalid file name: the running cluster takes UTF-8 without line breaks")]
    FileName,
    #[error("wait for Ctrl-C")]
    Signal(#[source] io::Error),
}

/// The failure and its sources, in one line.
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
