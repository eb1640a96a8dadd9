//! The webhooks that scripts configure: an HTTPS server on a port of this machine, whose answers are chosen by path.
//! `/echo` refuses with what it was sent, so that the reviews of both servers are compared, too.

mod answer;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// The answer of a webhook that closes the connection instead.
#[derive(Debug, thiserror::Error)]
#[error("the connection is closed on purpose")]
struct Dropped;

/// The servers; they end when this is dropped.
pub struct Webhooks {
    variables: BTreeMap<String, String>,
    _servers: JoinSet<()>,
}

impl Webhooks {
    /// Starts the servers: one with a valid certificate, one with a certificate that has expired.
    pub async fn start() -> io::Result<Webhooks> {
        let authority = Authority::new("webhooks")?;
        let mut servers = JoinSet::new();
        let valid = serve(&mut servers, authority.acceptor(false)?).await?;
        let expired = serve(&mut servers, authority.acceptor(true)?).await?;
        let closed = TcpListener::bind("127.0.0.1:0").await?.local_addr()?;
        let variables = [
            ("hooks", valid.to_string()),
            ("expired", expired.to_string()),
            ("closed", closed.to_string()),
            ("ca", encode(&authority.certificate)),
            ("otherca", encode(&Authority::new("others")?.certificate)),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value)).into();
        Ok(Webhooks { variables, _servers: servers })
    }

    /// What scripts say for it: `${hooks}`, `${expired}` and `${closed}` are addresses, `${ca}` and `${otherca}` bundles.
    pub fn variables(&self) -> BTreeMap<String, String> {
        self.variables.clone()
    }
}

async fn serve(servers: &mut JoinSet<()>, acceptor: TlsAcceptor) -> io::Result<std::net::SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    servers.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            connections.spawn(connection(stream, acceptor.clone()));
        }
    });
    Ok(address)
}

async fn connection(stream: TcpStream, acceptor: TlsAcceptor) {
    let Ok(stream) = acceptor.accept(stream).await else {
        return;
    };
    let builder = Builder::new(TokioExecutor::new());
    // A client that is refused ends the connection, and so does an answer on purpose.
    builder.serve_connection(TokioIo::new(stream), service_fn(respond)).await.ok();
}

async fn respond(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Dropped> {
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await.map_err(|_| Dropped)?.to_bytes();
    let review = serde_json::from_slice(&body).unwrap_or_default();
    let (code, media_type, text) = match path.strip_prefix("/status/") {
        Some(code) => (code.parse().unwrap_or(500), "text/plain", "it failed\n".to_owned()),
        None => match path.as_str() {
            "/hang" => std::future::pending().await,
            "/drop" => return Err(Dropped),
            "/garbage" => (200, "application/json", "garbage".to_owned()),
            "/empty" => (200, "application/json", String::new()),
            "/list" => (200, "application/json", "[]".to_owned()),
            path => (200, "application/json", answer::to(path, &review).to_string()),
        },
    };
    let response = Response::builder().status(StatusCode::from_u16(code).unwrap_or_default());
    response.header("content-type", media_type).body(Full::from(text)).map_err(|_| Dropped)
}

/// A certificate authority.
struct Authority {
    params: CertificateParams,
    key: KeyPair,
    certificate: String,
}

impl Authority {
    fn new(name: &str) -> io::Result<Authority> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().map_err(io::Error::other)?;
        let certificate = params.self_signed(&key).map_err(io::Error::other)?.pem();
        Ok(Authority { params, key, certificate })
    }

    fn acceptor(&self, expired: bool) -> io::Result<TlsAcceptor> {
        let mut leaf = CertificateParams::new(["127.0.0.1".to_owned()]).map_err(io::Error::other)?;
        if expired {
            leaf.not_before = date_time_ymd(2019, 1, 1);
            leaf.not_after = date_time_ymd(2020, 1, 1);
        }
        let key = KeyPair::generate().map_err(io::Error::other)?;
        let issuer = Issuer::from_params(&self.params, &self.key);
        let chain = vec![leaf.signed_by(&key, &issuer).map_err(io::Error::other)?.der().clone()];
        let key = PrivateKeyDer::try_from(key.serialize_der()).map_err(io::Error::other)?;
        let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(io::Error::other)?;
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

fn encode(text: &str) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(text)
}
