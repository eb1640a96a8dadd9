//! One connection: the handshake, who is at the other end, and its requests.

use crate::Body;
use crate::encoding::output;
use crate::http::tls::{Caller, Tls};
use crate::request::info::Query;
use crate::status::Status;
use futures::FutureExt;
use http::header::{AUTHORIZATION, HOST, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::Watcher;
use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
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
    let caller = tls.caller(stream.get_ref().1.peer_certificates());
    let answer = service_fn(move |request| {
        let (service, caller, stopped) = (service.clone(), caller.clone(), stopped.clone());
        async move { Ok::<_, Infallible>(answer(service, caller, stopped, request).await) }
    });
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new());
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(1000)
        .keep_alive_interval(Some(Duration::from_secs(30)))
        .adaptive_window(true);
    let connection = builder.serve_connection(TokioIo::new(stream), answer).into_owned();
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

async fn answer<S>(
    mut service: S,
    caller: Caller,
    stopped: watch::Receiver<bool>,
    mut request: Request<Incoming>,
) -> Response<Body>
where
    S: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible>,
{
    if *stopped.borrow() && request.uri().path() == "/readyz" {
        return output::text(
            StatusCode::INTERNAL_SERVER_ERROR,
            "[-]shutdown failed: reason withheld\nreadyz check failed\n",
        );
    }
    if let Some(refusal) = refusal(&caller, &request) {
        return refusal;
    }
    if let Caller::User(user) = caller {
        request.extensions_mut().insert(user);
    }
    name_host(&mut request);
    let headers = request.headers().clone();
    let query = Query::parse(request.uri().query().unwrap_or_default());
    match AssertUnwindSafe(service.call(request)).catch_unwind().await {
        Ok(Ok(response)) => response.map(|body| body.until(ended(stopped))),
        Err(_) => {
            let status = Status::internal("this request made the server panic: its log says where");
            output::finish(&headers, output::audit_id(&headers), output::refuse(&headers, &query, &status))
        }
    }
}

/// HTTP/2 has no `Host`: what it has instead is in the URI.
fn name_host(request: &mut Request<Incoming>) {
    let authority = request.uri().authority().map(|authority| authority.as_str().to_owned());
    if let Some(Ok(host)) = authority.map(HeaderValue::try_from) {
        request.headers_mut().entry(HOST).or_insert(host);
    }
}

async fn ended(mut stopped: watch::Receiver<bool>) {
    // the other end is gone only when the server is: that is a stop too
    let _stopped = stopped.wait_for(|stopped| *stopped).await;
}

/// Nobody but the admin gets in, and only as the admin; anybody may ask whether the server is well, and which version it is.
fn refusal(caller: &Caller, request: &Request<Incoming>) -> Option<Response<Body>> {
    let public = matches!(request.uri().path(), "/healthz" | "/livez" | "/readyz" | "/version" | "/version/");
    let public = public && request.method() == Method::GET;
    let allowed = match caller {
        Caller::User(user) => user.is_master(),
        // a token that nobody gave out is not the same as none
        Caller::Anonymous => public && !request.headers().contains_key(AUTHORIZATION),
        Caller::Stranger => false,
    };
    let headers = request.headers();
    let impersonation = headers.keys().find(|name| name.as_str().starts_with("impersonate-"));
    let status = match impersonation {
        _ if !allowed => Status::unauthorized(),
        Some(name) => Status::bad_request(format!("impersonation is not supported: remove the header {name}")),
        None => return None,
    };
    let query = Query::parse(request.uri().query().unwrap_or_default());
    Some(output::finish(
        headers,
        output::audit_id(headers),
        output::refuse(headers, &query, &status),
    ))
}
