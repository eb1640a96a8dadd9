//! A user's way in: a kubeconfig file and clients made from it.

use std::fs;
use std::path::{Path, PathBuf};

use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::json;

use super::Error;
use super::certificates::Identity;

/// One user's access to the control plane.
#[derive(Debug)]
pub struct Access {
    /// A file that kubectl and every other client reads.
    pub kubeconfig: PathBuf,
    /// The same for kube; it does not retry, so that every answer is seen.
    pub config: kube::Config,
}

impl Access {
    /// Writes `<user>.kubeconfig` into `directory`. JSON, which is YAML too.
    pub(super) async fn write(
        directory: &Path,
        user: &str,
        port: u16,
        ca: &str,
        identity: &Identity,
    ) -> Result<Self, Error> {
        let file = |extension: &str| directory.join(format!("{user}.{extension}"));
        let document = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "reference", "cluster": {
                "server": format!("https://127.0.0.1:{port}"),
                "certificate-authority": directory.join("ca.crt"),
            }}],
            "users": [{"name": user, "user": {
                "client-certificate": file("crt"),
                "client-key": file("key"),
            }}],
            "contexts": [{"name": "reference", "context": {"cluster": "reference", "user": user}}],
            "current-context": "reference",
        });
        fs::write(directory.join("ca.crt"), ca).map_err(Error::Directory)?;
        fs::write(file("crt"), &identity.certificate).map_err(Error::Directory)?;
        fs::write(file("key"), &identity.key).map_err(Error::Directory)?;
        fs::write(file("kubeconfig"), format!("{document:#}\n")).map_err(Error::Directory)?;

        let kubeconfig = Kubeconfig::read_from(file("kubeconfig"))?;
        let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        config.default_retry = false;
        Ok(Self { kubeconfig: file("kubeconfig"), config })
    }

    /// A new client for this user; it needs a tokio runtime around it.
    pub fn client(&self) -> Result<kube::Client, Error> {
        kube::Client::try_from(self.config.clone()).map_err(|error| Error::Client(Box::new(error)))
    }
}
