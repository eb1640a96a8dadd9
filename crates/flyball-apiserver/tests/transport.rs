//! The transport on a real port: deadlines of connections, and requests that HTTP libraries do not send.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use flyball_apiserver::authn::identity::Authority;
use flyball_apiserver::authn::token::StaticToken;
use flyball_apiserver::http::serve::{Config, Serving, serve};
use flyball_apiserver::{ServerOptions, User};
use flyball_store::Store;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// The token of an administrator.
const TOKEN: &str = "an-administrators-token";
const VERSION: &str = "GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n";
const PREFACE: &str = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// An HTTP/2 frame: SETTINGS without any.
const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];

struct Server {
    serving: Serving,
    client: Arc<rustls::ClientConfig>,
}

impl Server {
    async fn start() -> Server {
        let authority = Arc::new(Authority::generate().unwrap());
        let address = "127.0.0.1:0".parse().unwrap();
        let config = Config { address, hosts: vec![], authority: authority.clone() };
        let token = StaticToken::new(TOKEN, User::admin());
        let options = ServerOptions { static_tokens: vec![token], ..ServerOptions::default() };
        let serving = serve(options.start(Store::memory()).await.unwrap(), config).await.unwrap();
        let mut roots = rustls::RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_slice(authority.certificate().as_bytes()).unwrap())
            .unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let client = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let client = client.unwrap().with_root_certificates(roots).with_no_client_auth();
        Server { serving, client: Arc::new(client) }
    }

    /// A TLS connection with that application protocol.
    async fn connect(&self, protocol: &str) -> TlsStream<TcpStream> {
        let mut config = (*self.client).clone();
        config.alpn_protocols = vec![protocol.into()];
        let stream = TcpStream::connect(self.serving.address()).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap()
    }

    /// What the server sends to a client that sends this until the connection is closed.
    async fn answer(&self, request: &str) -> String {
        let mut stream = self.connect("http/1.1").await;
        stream.write_all(request.as_bytes()).await.unwrap();
        read_to_end(&mut stream).await
    }
}

async fn read_to_end(stream: &mut TlsStream<TcpStream>) -> String {
    let mut answer = Vec::new();
    // An idle connection may be closed without TLS' close notification.
    stream.read_to_end(&mut answer).await.ok();
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn idle_connections_are_closed() {
    let server = Server::start().await;
    let preface = [PREFACE.as_bytes(), SETTINGS].concat();
    tokio::time::pause();
    for (protocol, sent, expected) in [
        ("http/1.1", &b""[..], 30..=32),
        ("http/1.1", b"GET /version HTTP/1.1\r\nHost:", 30..=32),
        ("http/1.1", VERSION.as_bytes(), 30..=32),
        ("h2", b"", 30..=32),
        ("h2", b"PRI * HT", 30..=32),
        ("h2", &preface, 30..=32),
    ] {
        let mut stream = server.connect(protocol).await;
        let started = Instant::now();
        stream.write_all(sent).await.unwrap();
        read_to_end(&mut stream).await;
        let seconds = started.elapsed().as_secs();
        assert!(expected.contains(&seconds), "{protocol} {:?}: {seconds} s", String::from_utf8_lossy(sent));
    }
}

#[tokio::test]
async fn a_connection_without_a_handshake_is_closed() {
    let server = Server::start().await;
    tokio::time::pause();
    let mut stream = TcpStream::connect(server.serving.address()).await.unwrap();
    let started = Instant::now();

    assert_eq!(stream.read(&mut [0]).await.unwrap(), 0);

    assert_eq!(started.elapsed().as_secs(), 10);
}

#[tokio::test]
async fn a_body_that_was_not_needed_does_not_break_the_connection() {
    let server = Server::start().await;
    let post = "POST /nowhere HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n";
    let last = VERSION.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");

    let mut stream = server.connect("http/1.1").await;
    stream.write_all(post.as_bytes()).await.unwrap();
    stream.flush().await.unwrap();
    stream.write_all(format!("hello{last}").as_bytes()).await.unwrap();
    let answer = read_to_end(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 403 ") && answer.contains("gitVersion"), "{answer}");

    tokio::time::pause();
    for unread in [
        post.to_owned(),
        post.replace("\r\n\r\n", "\r\nExpect: 100-continue\r\n\r\n"),
    ] {
        let answer = server.answer(&unread).await;
        assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
        assert!(answer.contains("connection: close\r\n"), "{answer}");
    }
}

#[tokio::test]
async fn requests_that_no_library_sends_are_answered() {
    let server = Server::start().await;
    let close = "Host: localhost\r\nConnection: close\r\n";
    let many = (0..490).fold(String::new(), |headers, number| format!("{headers}X-{number}: {number}\r\n"));
    for (request, expected) in [
        (format!("GET /version HTTP/1.1\r\n{close}{many}\r\n"), "HTTP/1.1 200 OK\r\n"),
        (format!("CONNECT 127.0.0.1:22 HTTP/1.1\r\n{close}\r\n"), "HTTP/1.1 404 Not Found\r\n"),
        (
            "GET /version HTTP/1.1\r\nConnection: close\r\n\r\n".into(),
            "HTTP/1.1 400 Bad Request\r\n",
        ),
        (format!("GET /version HTTP/1.1\r\n{close}{close}\r\n"), "HTTP/1.1 400 Bad Request\r\n"),
        (format!("GET /version HTTP/1.0\r\n{close}\r\n"), "HTTP/1.0 200 OK\r\n"),
    ] {
        let answer = server.answer(&request).await;
        assert!(answer.starts_with(expected), "{}\n{answer}", &request[..request.len().min(80)]);
    }
}

#[tokio::test]
async fn a_request_head_that_is_too_large_is_refused_with_a_status() {
    let server = Server::start().await;
    let (host, long) = ("Host: localhost\r\n", "x".repeat(70_000));
    let many = "X: y\r\n".repeat(5001);
    for (request, expected) in [
        (format!("GET /api/v1/pods?labelSelector={long} HTTP/1.1\r\n{host}\r\n"), 414),
        (format!("GET /version HTTP/1.1\r\n{host}{many}\r\n"), 431),
    ] {
        let answer = server.answer(&request).await;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status: serde_json::Value = serde_json::from_str(body).unwrap();
        assert!(head.starts_with(&format!("HTTP/1.1 {expected} ")), "{head}");
        assert_eq!((&status["kind"], &status["code"]), (&"Status".into(), &expected.into()), "{status}");
    }
}

#[tokio::test]
async fn requests_with_ambiguous_lengths_are_refused_and_hide_no_other_request() {
    let server = Server::start().await;
    let hidden = "GET /version HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let chunked = "Transfer-Encoding: chunked\r\n";
    for (headers, body) in [
        ("Content-Length: 4\r\nContent-Length: 60\r\n", "abcd"),
        ("Content-Length: 4, 60\r\n", "abcd"),
        ("Content-Length: +4\r\n", "abcd"),
        ("Content-Length: 0x4\r\n", "abcd"),
        ("Content-Length : 4\r\n", "abcd"),
        ("Content-Length: -1\r\n", "abcd"),
        ("Transfer-Encoding: identity\r\n", "abcd"),
        ("Transfer-Encoding: chunked, identity\r\n", "0\r\n\r\n"),
        ("Transfer-Encoding : chunked\r\n", "0\r\n\r\n"),
        ("X: y\r\n Content-Length: 0\r\n", ""),
        (chunked, "zz\r\nabcd\r\n0\r\n\r\n"),
        (chunked, "ffffffffffffffff1\r\nabcd\r\n0\r\n\r\n"),
        (chunked, "4;\nx\r\nabcd\r\n0\r\n\r\n"),
    ] {
        let head = format!(
            "POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
        );
        let answer = server.answer(&format!("{head}{headers}\r\n{body}{hidden}")).await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{headers:?} {body:?}\n{answer}");
        assert!(
            !answer.contains("gitVersion"),
            "{headers:?} {body:?}: the hidden request was answered\n{answer}"
        );
    }
}

#[tokio::test]
async fn a_body_that_comes_slowly_holds_a_request_until_its_deadline() {
    let server = Server::start().await;
    let head = format!(
        "POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\
         Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{{"
    );
    tokio::time::pause();
    let started = Instant::now();

    let answer = server.answer(&head).await;

    assert!(answer.starts_with("HTTP/1.1 504 "), "{answer}");
    assert!(started.elapsed().as_secs() <= 92, "{} s", started.elapsed().as_secs());
}

#[tokio::test]
async fn compressed_bodies_are_not_inflated() {
    let server = Server::start().await;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let object = br#"{"metadata": {"name": "bomb"}, "data": {"#;
    std::io::Write::write_all(&mut encoder, object).unwrap();
    for _ in 0..64 {
        std::io::Write::write_all(&mut encoder, &[b' '; 1 << 20]).unwrap();
    }
    std::io::Write::write_all(&mut encoder, b"}}").unwrap();
    let body = encoder.finish().unwrap();
    let head = format!(
        "POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {TOKEN}\r\n\
         Content-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let mut stream = server.connect("http/1.1").await;
    stream.write_all(&[head.as_bytes(), &body].concat()).await.unwrap();
    let answer = read_to_end(&mut stream).await;

    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
}

/// HTTP/2 frames: a GET of `/version` on a stream, and the end of that stream by the client.
fn reset_request(stream: u32) -> Vec<u8> {
    let block: &[u8] = b"\x82\x87\x04\x08/version\x41\x09localhost";
    let mut frames = vec![0, 0, block.len() as u8, 1, 5];
    frames.extend(stream.to_be_bytes());
    frames.extend(block);
    frames.extend([0, 0, 4, 3, 0]);
    frames.extend(stream.to_be_bytes());
    frames.extend([0, 0, 0, 8]);
    frames
}

#[tokio::test]
async fn a_connection_that_resets_its_streams_rapidly_is_closed() {
    let server = Server::start().await;
    let mut stream = server.connect("h2").await;
    stream.write_all(&[PREFACE.as_bytes(), SETTINGS].concat()).await.unwrap();

    for number in 0..20_000 {
        if stream.write_all(&reset_request(2 * number + 1)).await.is_err() {
            break;
        }
    }
    let answer = read_to_end(&mut stream).await;

    assert!(answer.contains("too_many_resets"), "the connection ended otherwise: {answer:?}");
    let version = server.answer(&VERSION.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n")).await;
    assert!(version.contains("gitVersion"), "{version}");
}
