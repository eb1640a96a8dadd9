//! The options for a cluster that is stored on etcd.

use crate::failure::Failure;
use clap::Args;
use flyball_store::{Etcd, Store, Tls};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// The address and credentials of etcd; the option names are kube-apiserver's.
#[derive(Args)]
pub struct EtcdOptions {
    /// Store the cluster on etcd: its endpoints, as http://host:2379,…
    #[arg(long = "etcd", value_name = "ENDPOINTS", value_delimiter = ',')]
    endpoints: Vec<String>,
    /// The prefix of all keys in etcd
    #[arg(
        long = "etcd-prefix",
        value_name = "PREFIX",
        default_value = "/flyball",
        requires = "endpoints"
    )]
    prefix: String,
    /// The certificate authority of etcd's certificates
    #[arg(long = "etcd-cafile", value_name = "FILE", requires = "endpoints")]
    authority: Option<PathBuf>,
    /// The client certificate for etcd
    #[arg(long = "etcd-certfile", value_name = "FILE", requires_all = ["authority", "key"])]
    certificate: Option<PathBuf>,
    /// The private key of the client certificate
    #[arg(long = "etcd-keyfile", value_name = "FILE", requires = "certificate")]
    key: Option<PathBuf>,
    /// The user name and password for etcd
    #[arg(
        long = "etcd-user",
        value_name = "NAME:PASSWORD",
        env = "FLYBALL_ETCD_USER",
        hide_env_values = true
    )]
    user: Option<String>,
}

impl EtcdOptions {
    /// Whether the cluster is stored on etcd.
    pub fn is_wanted(&self) -> bool {
        !self.endpoints.is_empty()
    }

    /// The endpoints and the prefix, for the report.
    pub fn place(&self) -> String {
        format!("{} under {}", self.endpoints.join(","), self.prefix)
    }

    /// Opens the store.
    pub async fn open(&self) -> Result<Store, Failure> {
        let mut etcd = Etcd::new(self.endpoints.clone()).prefix(self.prefix.clone());
        if let Some(authority) = &self.authority {
            let mut tls = Tls::new(read(authority)?);
            if let (Some(certificate), Some(key)) = (&self.certificate, &self.key) {
                tls = tls.identity(read(certificate)?, read(key)?);
            }
            etcd = etcd.tls(tls);
        }
        if let Some(user) = &self.user {
            let (name, password) = user.split_once(':').ok_or(Failure::EtcdUser)?;
            etcd = etcd.login(name, password);
        }
        Ok(etcd.open().await?)
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(|source| Failure::Read { path: path.to_owned(), source })
}
