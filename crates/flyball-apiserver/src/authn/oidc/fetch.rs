//! Documents of an issuer: one bounded GET over TLS each, without redirects.

use http::{Request, Uri, header};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

const MAX_DURATION: Duration = Duration::from_secs(10);
const MAX_BYTES: usize = 1 << 20;

/// Why a document could not be fetched.
#[derive(Debug, thiserror::Error)]
pub(super) enum FetchError {
    /// The address is not an HTTPS URL.
    #[error("invalid URL {0:?}: expected https://HOST[:PORT]/PATH")]
    Url(String),
    /// The server could not be reached, or its certificate is not valid.
    #[error("connect to {url}: {source}")]
    Connect { url: String, source: io::Error },
    /// The request failed.
    #[error("GET {url}: {why}")]
    Request { url: String, why: String },
    /// The request took too long.
    #[error("GET {0}: no response in time")]
    Timeout(String),
    /// The discovery document is of another issuer.
    #[error("issuer did not match: expected {expected:?}, got {found}")]
    Issuer { expected: String, found: String },
}

/// Fetches documents from servers whose certificates some authorities have signed.
pub(super) struct Fetcher(TlsConnector);

impl Fetcher {
    /// A fetcher that trusts authorities in PEM; none if there is no certificate among them.
    pub(super) fn new(authorities: &str) -> Option<Fetcher> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(authorities.as_bytes()) {
            roots.add(certificate.ok()?).ok()?;
        }
        if roots.is_empty() {
            return None;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().ok()?;
        let config = config.with_root_certificates(roots).with_no_client_auth();
        Some(Fetcher(TlsConnector::from(Arc::new(config))))
    }

    /// The JSON document at a URL.
    pub(super) async fn json(&self, url: &str) -> Result<Value, FetchError> {
        let fetched = timeout(MAX_DURATION, self.get(url)).await;
        fetched.map_err(|_| FetchError::Timeout(url.to_owned()))?
    }

    async fn get(&self, url: &str) -> Result<Value, FetchError> {
        let uri = https(url).ok_or_else(|| FetchError::Url(url.to_owned()))?;
        let connect = |source| FetchError::Connect { url: url.to_owned(), source };
        let failed = |why: String| FetchError::Request { url: url.to_owned(), why };
        let authority = uri.authority().ok_or_else(|| FetchError::Url(url.to_owned()))?;
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        let name = ServerName::try_from(host.clone()).map_err(|_| FetchError::Url(url.to_owned()))?;
        let tcp = TcpStream::connect((host, authority.port_u16().unwrap_or(443))).await.map_err(connect)?;
        let tls = self.0.connect(name, tcp).await.map_err(connect)?;
        let handshake = http1::handshake(TokioIo::new(tls)).await;
        let (mut sender, connection) = handshake.map_err(|error| failed(error.to_string()))?;
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let request = Request::get(path).header(header::HOST, authority.as_str());
        let request = request.header(header::ACCEPT, "application/json").body(Empty::<bytes::Bytes>::new());
        let request = request.map_err(|error| failed(error.to_string()))?;
        let exchange = async {
            let response = sender.send_request(request).await.map_err(|error| failed(error.to_string()))?;
            if response.status() != http::StatusCode::OK {
                return Err(failed(response.status().to_string()));
            }
            let body = Limited::new(response.into_body(), MAX_BYTES).collect().await;
            let body = body.map_err(|error| failed(error.to_string()))?.to_bytes();
            serde_json::from_slice(&body).map_err(|error| failed(error.to_string()))
        };
        tokio::select! {
            answer = exchange => answer,
            // The connection ends before the response does.
            ended = connection => Err(failed(ended.err().map_or("the connection was closed".into(), |e| e.to_string()))),
        }
    }
}

/// A URL with the scheme `https` and a host.
pub(super) fn https(url: &str) -> Option<Uri> {
    let uri: Uri = url.parse().ok()?;
    (uri.scheme_str() == Some("https") && uri.host().is_some_and(|host| !host.is_empty())).then_some(uri)
}
