//! One connection: the TLS handshake, then its requests, each with the client's certificate.

use crate::Body;
use crate::authn::x509::ClientCertificate;
use crate::encoding::output;
use crate::health::ShuttingDown;
use crate::http::tls::Tls;
use http::header::{CONNECTION, HOST, HeaderValue};
use http::{Method, Request, Response, StatusCode, Version};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::Watcher;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tower::Service;

/// How long a client may take for its handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// Serves one connection until either side ends it.
pub(crate) async fn run<S>(
    stream: TcpStream,
    tls: Arc<Tls>,
    service: S,
    stopped: watch::Receiver<bool>,
    watcher: Watcher,
) where
    S: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    let Some(stream) = handshake(stream, &tls).await else {
        return;
    };
    let certificate = tls.client_certificate(stream.get_ref().1.peer_certificates());
    let handler = service_fn(move |request| {
        let (service, certificate, stopped) = (service.clone(), certificate.clone(), stopped.clone());
        async move { Ok::<_, Infallible>(handle(service, certificate, stopped, request).await) }
    });
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new());
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(1000)
        .keep_alive_interval(Some(Duration::from_secs(30)))
        .adaptive_window(true);
    let connection = builder.serve_connection(TokioIo::new(stream), handler).into_owned();
    if let Err(error) = watcher.watch(connection).await {
        tracing::debug!(%error, "a connection ended badly");
    }
}

async fn handshake(mut stream: TcpStream, tls: &Tls) -> Option<TlsStream<TcpStream>> {
    let accept = async {
        stream.set_nodelay(true).ok()?;
        let mut first = [0];
        // a TLS record of a handshake begins so; the first letter of an HTTP method does not
        if stream.peek(&mut first).await.ok()? == 1 && first[0].is_ascii_uppercase() {
            let refusal = "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";
            // what is left unread would reset the connection before the client has read this
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
    tokio::time::timeout(HANDSHAKE, accept).await.ok().flatten()
}

/// Passes a request to the service, with the connection's extensions.
async fn handle<S>(
    mut service: S,
    certificate: Option<ClientCertificate>,
    stopped: watch::Receiver<bool>,
    mut request: Request<Incoming>,
) -> Response<Body>
where
    S: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible>,
{
    if let Some(refusal) = check_host(&request) {
        return refusal;
    }
    if let Some(certificate) = certificate {
        request.extensions_mut().insert(certificate);
    }
    if *stopped.borrow() {
        request.extensions_mut().insert(ShuttingDown);
    }
    set_host(&mut request);
    let Ok(response) = service.call(request).await;
    response.map(|body| body.until(ended(stopped)))
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

/// HTTP/2 names the host in the URI instead of in `Host`.
fn set_host(request: &mut Request<Incoming>) {
    let authority = request.uri().authority().map(|authority| authority.as_str().to_owned());
    if let Some(Ok(host)) = authority.map(HeaderValue::try_from) {
        request.headers_mut().entry(HOST).or_insert(host);
    }
}

async fn ended(mut stopped: watch::Receiver<bool>) {
    // the other end is gone only when the server is: that is a stop too
    let _stopped = stopped.wait_for(|stopped| *stopped).await;
}
