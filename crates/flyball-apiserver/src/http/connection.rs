//! One connection: the TLS handshake, then its requests, each with the client's certificate. Connections without requests end.

use crate::Body;
use crate::authn::x509::ClientCertificate;
use crate::encoding::output;
use crate::health::ShuttingDown;
use crate::http::head_limits::HeadLimits;
use crate::http::request_body::{RequestBody, Unread, drain};
use crate::http::tls::Tls;
use crate::http::write_timeout::WriteTimeout;
use flyball_host::activity::{IdleLimits, Tracked};
use flyball_host::connections::Connection;
use http::header::{CONNECTION, EXPECT, HOST, HeaderValue};
use http::{Method, Request, Response, StatusCode, Version};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tower::Service;

/// How long a client may take for its handshake.
const MAX_HANDSHAKE: Duration = Duration::from_secs(10);

/// How long the head of an HTTP/1.1 request may take, the time since the last one included.
const MAX_HEADER_WAIT: Duration = Duration::from_secs(30);

// apiserver/pkg/server/secure_serving.go: 32 s and 90 s
const IDLE: IdleLimits = IdleLimits {
    first_request: Duration::from_secs(30),
    keep_alive: Duration::from_secs(90),
};

/// How many headers an HTTP/1 request may have; kube-apiserver limits their bytes only. hyper allocates and fills 64 bytes for each of
/// them at every request, however few it has: 5,000 took about a tenth of the time of a small GET.
const MAX_HEADERS: usize = 500;

/// How many bytes the headers of an HTTP/2 request may have: a URI of 64 KiB, and as much again.
const MAX_HTTP2_HEADER_BYTES: u32 = 128 * 1024;

/// The address of the client, an extension of each request of its connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientAddress(pub SocketAddr);

/// Serves one connection until either side ends it.
pub(crate) async fn run<S>(
    stream: TcpStream,
    tls: Arc<Tls>,
    service: S,
    stopped: watch::Receiver<bool>,
    connection: Connection,
) where
    S: Service<Request<RequestBody>, Response = Response<Body>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    let address = stream.peer_addr().ok().map(ClientAddress);
    let stream = tokio::select! {
        stream = handshake(stream, &tls) => stream,
        () = connection.expired(IDLE) => None,
    };
    let Some(stream) = stream else {
        return;
    };
    let session = stream.get_ref().1;
    let certificate = tls.client_certificate(session.peer_certificates());
    if certificate.as_ref().is_some_and(|certificate| tls.trusts(certificate)) {
        connection.authenticate();
    }
    let builder = builder(session.alpn_protocol());
    let (connection, stop) = (Arc::new(connection), stopped.clone());
    let requests = connection.clone();
    let handler = service_fn(move |request| {
        let (service, certificate, stop) = (service.clone(), certificate.clone(), stop.clone());
        let in_flight = requests.begin();
        async move {
            let mut request: Request<Incoming> = request;
            if let Some(address) = address {
                request.extensions_mut().insert(address);
            }
            let response = handle(service, certificate, stop, request).await;
            Ok::<_, Infallible>(response.map(|body| Tracked::new(body, in_flight)))
        }
    });
    let mut served = pin!(builder.serve_connection(TokioIo::new(HeadLimits::new(WriteTimeout::new(stream))), handler));
    let result = tokio::select! {
        result = served.as_mut() => result,
        () = ended(stopped) => {
            served.as_mut().graceful_shutdown();
            served.await
        }
        () = connection.expired(IDLE) => {
            served.as_mut().graceful_shutdown();
            tokio::select! {
                result = served.as_mut() => result,
                () = connection.drained() => Ok(()),
            }
        }
    };
    if let Err(error) = result {
        tracing::debug!(%error, "a connection ended with an error");
    }
}

/// HTTP/2 if the client chose it in the handshake. The first bytes are not used to guess: that waits without a deadline.
fn builder(protocol: Option<&[u8]>) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(MAX_HEADER_WAIT)
        .max_headers(MAX_HEADERS);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(1000)
        .max_header_list_size(MAX_HTTP2_HEADER_BYTES)
        .keep_alive_interval(Some(Duration::from_secs(30)))
        .adaptive_window(true);
    match protocol {
        Some(b"h2") => builder.http2_only(),
        _ => builder.http1_only(),
    }
}

async fn handshake(mut stream: TcpStream, tls: &Tls) -> Option<TlsStream<TcpStream>> {
    let accept = async {
        stream.set_nodelay(true).ok()?;
        let mut first = [0];
        // A TLS handshake starts with the byte 22, an HTTP request with an upper case letter.
        if stream.peek(&mut first).await.ok()? == 1 && first[0].is_ascii_uppercase() {
            let refusal = "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";
            // Unread data would reset the connection before the client has read the response.
            let _read = stream.read(&mut [0; 8192]).await.ok()?;
            stream.write_all(refusal.as_bytes()).await.ok()?;
            stream.shutdown().await.ok()?;
            return None;
        }
        TlsAcceptor::from(tls.config.clone())
            .accept(stream)
            .await
            .inspect_err(|error| tracing::debug!(%error, "a handshake failed"))
            .ok()
    };
    tokio::time::timeout(MAX_HANDSHAKE, accept).await.ok().flatten()
}

/// Passes a request to the service, with the connection's extensions.
async fn handle<S>(
    mut service: S,
    certificate: Option<ClientCertificate>,
    stopped: watch::Receiver<bool>,
    mut request: Request<Incoming>,
) -> Response<Body>
where
    S: Service<Request<RequestBody>, Response = Response<Body>, Error = Infallible>,
{
    if let Some(refusal) = check_host(&request).or_else(|| check_method(&request)) {
        return refusal;
    }
    if let Some(certificate) = certificate {
        request.extensions_mut().insert(certificate);
    }
    if *stopped.borrow() {
        request.extensions_mut().insert(ShuttingDown);
    }
    set_host(&mut request);
    let (version, expects) = (request.version(), request.headers().contains_key(EXPECT));
    let is_head = request.method() == Method::HEAD;
    let unread = Unread::default();
    let Ok(mut response) = service.call(request.map(|body| RequestBody::new(body, unread.clone()))).await;
    if version < Version::HTTP_2
        && let Some(body) = unread.take()
    {
        // net/http/server.go, finishRequest: to read the body of a client that waits for `100 Continue` would request it.
        if expects || !drain(body).await {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
    }
    // hyper removes the body of a response to HEAD on HTTP/1 only.
    match is_head {
        true => response.map(|_| Body::empty()),
        false => response.map(|body| body.until(ended(stopped))),
    }
}

/// HTTP/1.1 requires one `Host`.
// net/http/server.go, readRequest
fn check_host(request: &Request<Incoming>) -> Option<Response<Body>> {
    let hosts = request.headers().get_all(HOST).iter().count();
    let why = match (request.version(), hosts) {
        (Version::HTTP_11, 0) if request.method() != Method::CONNECT => "missing required Host header",
        (Version::HTTP_11, 2..) => "too many Host headers",
        _ => return None,
    };
    let mut response = output::text(StatusCode::BAD_REQUEST, format!("400 Bad Request: {why}"));
    response.headers_mut().remove("x-content-type-options");
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    Some(response)
}

/// `CONNECT` asks for a tunnel, which this server does not have; a successful response would promise one.
fn check_method(request: &Request<Incoming>) -> Option<Response<Body>> {
    (request.method() == Method::CONNECT).then(|| output::text(StatusCode::NOT_FOUND, "404 page not found\n"))
}

/// HTTP/2 names the host in the URI instead of in `Host`.
fn set_host(request: &mut Request<Incoming>) {
    let authority = request.uri().authority().map(|authority| authority.as_str().to_owned());
    if let Some(Ok(host)) = authority.map(HeaderValue::try_from) {
        request.headers_mut().entry(HOST).or_insert(host);
    }
}

async fn ended(mut stopped: watch::Receiver<bool>) {
    // An error means that the sender was dropped, which is a stop too.
    let _stopped = stopped.wait_for(|stopped| *stopped).await;
}
