//! The configuration of a store on etcd: endpoints, prefix, TLS and login.

use super::Remote;
use crate::{Error, Result, Store};
use bytes::Bytes;
use std::time::Duration;
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};

/// The keys under a prefix in an etcd cluster; [`Etcd::open`] opens them as a store.
///
/// Several processes may open the same prefix: all of them see the same values, revisions and changes.
#[derive(Clone)]
pub struct Etcd {
    pub(super) endpoints: Vec<String>,
    pub(super) prefix: Bytes,
    pub(super) tls: Option<Tls>,
    pub(super) login: Option<(String, String)>,
    pub(super) history_revisions: Option<u64>,
    pub(super) watch_bytes: usize,
}

/// The certificate authority of etcd's certificates, and the client's own certificate; all PEM.
#[derive(Clone)]
pub struct Tls {
    authority: Vec<u8>,
    identity: Option<(Vec<u8>, Vec<u8>)>,
    server_name: Option<String>,
}

impl Etcd {
    /// Names the members of a cluster, as `http://host:2379` or `host:2379`; the keys are those under `/flyball`.
    pub fn new(endpoints: impl IntoIterator<Item = impl Into<String>>) -> Etcd {
        Etcd {
            endpoints: endpoints.into_iter().map(Into::into).collect(),
            prefix: "/flyball".into(),
            tls: None,
            login: None,
            history_revisions: Some(250_000),
            watch_bytes: 16 << 20,
        }
    }

    /// Keeps every key under another prefix of etcd's.
    pub fn prefix(self, prefix: impl Into<Bytes>) -> Etcd {
        Etcd { prefix: prefix.into(), ..self }
    }

    /// Uses TLS.
    pub fn tls(self, tls: Tls) -> Etcd {
        Etcd { tls: Some(tls), ..self }
    }

    /// Logs in with a user's name and password.
    pub fn login(self, name: impl Into<String>, password: impl Into<String>) -> Etcd {
        Etcd { login: Some((name.into(), password.into())), ..self }
    }

    /// Compacts etcd's history to this many revisions; the default is 250,000.
    pub fn history_revisions(self, revisions: u64) -> Etcd {
        Etcd { history_revisions: Some(revisions), ..self }
    }

    /// Leaves compaction to others.
    pub fn without_compaction(self) -> Etcd {
        Etcd { history_revisions: None, ..self }
    }

    /// Ends a watch that has more than this many bytes of events queued.
    pub fn watch_bytes(self, bytes: usize) -> Etcd {
        Etcd { watch_bytes: bytes, ..self }
    }

    /// Opens the store, which fails where no member answers.
    pub async fn open(self) -> Result<Store> {
        Ok(Store::new(Remote::open(self).await?))
    }

    /// The name in error messages.
    pub(super) fn name(&self) -> String {
        self.endpoints.join(",")
    }

    pub(super) fn endpoints(&self) -> Result<Vec<Endpoint>> {
        if self.endpoints.is_empty() {
            return Err(self.refuse("no endpoint is named"));
        }
        self.endpoints.iter().map(|text| self.endpoint(text)).collect()
    }

    fn endpoint(&self, text: &str) -> Result<Endpoint> {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let url = match text.split_once("://") {
            Some((found, _)) if found == scheme => text.to_owned(),
            None => format!("{scheme}://{text}"),
            Some(("https", _)) => return Err(self.refuse("https needs a certificate authority to trust")),
            Some(_) => return Err(self.refuse("an endpoint begins with http://, or with https:// where TLS is spoken")),
        };
        let endpoint = Endpoint::from_shared(url).map_err(|error| self.refuse(error))?;
        let endpoint = endpoint
            .connect_timeout(Duration::from_secs(3))
            .http2_keep_alive_interval(Duration::from_secs(10))
            .keep_alive_timeout(Duration::from_secs(5))
            .keep_alive_while_idle(true)
            .initial_stream_window_size(4 << 20)
            .initial_connection_window_size(16 << 20);
        match &self.tls {
            Some(tls) => endpoint.tls_config(tls.config()).map_err(|error| self.refuse(error)),
            None => Ok(endpoint),
        }
    }

    pub(super) fn refuse(&self, reason: impl ToString) -> Error {
        Error::Refused { place: self.name(), reason: reason.to_string() }
    }
}

impl Tls {
    /// Trusts servers whose certificate this authority signed.
    pub fn new(authority: impl Into<Vec<u8>>) -> Tls {
        Tls {
            authority: authority.into(),
            identity: None,
            server_name: None,
        }
    }

    /// Shows a certificate of our own, for clusters that ask clients for one.
    pub fn identity(self, certificate: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Tls {
        Tls { identity: Some((certificate.into(), key.into())), ..self }
    }

    /// Expects this name in the servers' certificates instead of the endpoint's.
    pub fn server_name(self, name: impl Into<String>) -> Tls {
        Tls { server_name: Some(name.into()), ..self }
    }

    fn config(&self) -> ClientTlsConfig {
        let mut config = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(&self.authority));
        if let Some((certificate, key)) = &self.identity {
            config = config.identity(Identity::from_pem(certificate, key));
        }
        if let Some(name) = &self.server_name {
            config = config.domain_name(name);
        }
        config
    }
}
