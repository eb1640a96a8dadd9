//! Connections to webhooks: the address of a URL or of an endpoint of a Service, then TLS.

use crate::clock::Clock;
use crate::webhook::client_config::{ClientConfig, Target};
use crate::webhook::error;
use flyball_store::{Range, Store};
use futures::future::BoxFuture;
use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::time_provider::TimeProvider;
use rustls::{ClientConfig as TlsConfig, RootCertStore};
use serde_json::Value;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Connects to one webhook.
#[derive(Clone)]
pub(super) struct Connector {
    store: Store,
    target: Target,
    /// TLS, or why there is none.
    tls: Result<TlsConnector, String>,
    server_name: ServerName<'static>,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct ConnectError(String);

impl Connector {
    /// Prepares connections. Certificates that are missing or invalid are reported by the connection.
    pub fn new(store: Store, clock: Clock, config: &ClientConfig) -> Result<Connector, String> {
        let name = config.server_name();
        let server_name = ServerName::try_from(name.clone()).map_err(|_| format!("invalid host {name:?}"))?;
        let target = config.target.clone();
        Ok(Connector { store, target, tls: tls(clock, config), server_name })
    }

    async fn connect(self) -> Result<TlsConnection, ConnectError> {
        let address = match &self.target {
            Target::Url { authority, .. } => match authority.rsplit_once(':') {
                Some((_, port)) if !port.ends_with(']') => authority.clone(),
                _ => format!("{authority}:443"),
            },
            Target::Service { namespace, name, port, .. } => {
                endpoint(&self.store, namespace, name, *port).await.map_err(ConnectError)?
            }
        };
        let tls = self.tls.map_err(ConnectError)?;
        let stream = TcpStream::connect(&address).await.map_err(|error| {
            let why = match error.kind() {
                io::ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
                _ => error.to_string(),
            };
            ConnectError(format!("dial tcp {address}: {why}"))
        })?;
        stream.set_nodelay(true).map_err(|error| ConnectError(error.to_string()))?;
        let stream = tls.connect(self.server_name, stream).await;
        let stream = stream.map_err(|error| ConnectError(error::handshake(&error)))?;
        Ok(TlsConnection(TokioIo::new(stream)))
    }
}

fn tls(clock: Clock, config: &ClientConfig) -> Result<TlsConnector, String> {
    let provider = Arc::new(ring::default_provider());
    let tls = TlsConfig::builder_with_details(provider, Arc::new(ServerTime(clock)))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let mut tls = tls.with_root_certificates(roots(config)?).with_no_client_auth();
    tls.alpn_protocols = match config.offers_http2() {
        true => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
        false => vec![b"http/1.1".to_vec()],
    };
    Ok(TlsConnector::from(Arc::new(tls)))
}

fn roots(config: &ClientConfig) -> Result<RootCertStore, String> {
    if config.ca_bundle.is_empty() {
        return Err(
            "this server has no system roots: set clientConfig.caBundle to the certificates of the authority \
                    that signs the certificate of the webhook"
                .to_owned(),
        );
    }
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&config.ca_bundle) {
        let certificate = certificate.map_err(|error| format!("invalid caBundle: {error}"))?;
        roots.add(certificate).map_err(|error| format!("invalid caBundle: {error}"))?;
    }
    match roots.is_empty() {
        true => Err("invalid caBundle: it has no certificate".to_owned()),
        false => Ok(roots),
    }
}

/// The address of a ready endpoint of a Service.
// apiserver/pkg/util/proxy/proxy.go, ResolveEndpoint
async fn endpoint(store: &Store, namespace: &str, name: &str, port: u16) -> Result<String, String> {
    let failed = |error: flyball_store::Error| error.to_string();
    let entry = store.get(format!("core/services/{namespace}/{name}")).await.map_err(failed)?;
    let service = entry.ok_or_else(|| format!("service {name:?} not found"))?;
    let service: Value = serde_json::from_slice(&service.value).unwrap_or_default();
    if service["spec"]["type"] == "ExternalName" {
        let host = service["spec"]["externalName"].as_str().unwrap_or_default();
        return Ok(format!("{host}:{port}"));
    }
    let mut ports = service["spec"]["ports"].as_array().into_iter().flatten();
    let found = ports.find(|known| known["port"] == port);
    let found = found.ok_or_else(|| format!("no service port {port} found for service {name:?}"))?;
    let port_name = found["name"].as_str().unwrap_or_default();
    let slices = store.range(Range::prefix(format!("discovery.k8s.io/endpointslices/{namespace}/"))).await;
    for entry in slices.map_err(failed)?.entries {
        let slice: Value = serde_json::from_slice(&entry.value).unwrap_or_default();
        if slice["metadata"]["labels"]["kubernetes.io/service-name"] == name
            && let Some(address) = ready(&slice, port_name)
        {
            return Ok(address);
        }
    }
    Err(format!("no endpoints available for service {name:?}"))
}

fn ready(slice: &Value, port_name: &str) -> Option<String> {
    let mut ports = slice["ports"].as_array()?.iter();
    let port = ports.find(|port| port["name"].as_str().unwrap_or_default() == port_name)?["port"].as_u64()?;
    let mut endpoints = slice["endpoints"].as_array()?.iter();
    let address = endpoints.find(|endpoint| endpoint["conditions"]["ready"] != false)?["addresses"][0].as_str()?;
    Some(match address.contains(':') {
        true => format!("[{address}]:{port}"),
        false => format!("{address}:{port}"),
    })
}

/// The time of the server, for the validity of certificates.
#[derive(Debug)]
struct ServerTime(Clock);

impl TimeProvider for ServerTime {
    fn current_time(&self) -> Option<UnixTime> {
        let seconds = u64::try_from(self.0.now().as_second()).ok()?;
        Some(UnixTime::since_unix_epoch(Duration::from_secs(seconds)))
    }
}

impl tower::Service<Uri> for Connector {
    type Response = TlsConnection;
    type Error = ConnectError;
    type Future = BoxFuture<'static, Result<TlsConnection, ConnectError>>;

    fn poll_ready(&mut self, _ctx: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _uri: Uri) -> Self::Future {
        Box::pin(self.clone().connect())
    }
}

/// A connection to a webhook.
pub(super) struct TlsConnection(TokioIo<TlsStream<TcpStream>>);

impl Connection for TlsConnection {
    fn connected(&self) -> Connected {
        match self.0.inner().get_ref().1.alpn_protocol() {
            Some(b"h2") => Connected::new().negotiated_h2(),
            _ => Connected::new(),
        }
    }
}

impl Read for TlsConnection {
    fn poll_read(mut self: Pin<&mut Self>, ctx: &mut Context<'_>, buf: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(ctx, buf)
    }
}

impl Write for TlsConnection {
    fn poll_write(mut self: Pin<&mut Self>, ctx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(ctx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, ctx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(ctx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, ctx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(ctx)
    }
}
