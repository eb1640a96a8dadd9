//! Serves plain HTTP/1.1 with deadlines: what clients do or fail to do costs a bounded number of connections for a bounded time.

use crate::{
    accept,
    activity::{IdleLimits, Tracked},
    connections::{Connection, Connections},
};
use http::{Request, Response};
use http_body::Body;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::{convert::Infallible, pin::pin, sync::Arc, time::Duration};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tower::{BoxError, Service, util::ServiceExt};

/// How long a connection may be without a request, and how long the head of a request may take.
pub const MAX_IDLE: Duration = Duration::from_secs(30);

const IDLE: IdleLimits = IdleLimits { first_request: MAX_IDLE, keep_alive: MAX_IDLE };

/// Serves until the future is dropped.
pub async fn serve<S, B>(listener: &TcpListener, service: S, connections: Connections)
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
    B: Body + Send + Unpin + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    let mut tasks = JoinSet::new();
    loop {
        let stream = accept::next(listener).await;
        let connection = connections.open().await;
        while tasks.try_join_next().is_some() {}
        tasks.spawn(run(stream, connection, service.clone()));
    }
}

async fn run<S, B>(stream: TcpStream, connection: Connection, service: S)
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
    B: Body + Send + Unpin + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    let connection = Arc::new(connection);
    let requests = connection.clone();
    let service = service_fn(move |request| {
        let (service, in_flight) = (service.clone(), requests.begin());
        async move {
            let response = service.oneshot(request).await?;
            Ok::<_, Infallible>(response.map(|body| Tracked::new(body, in_flight)))
        }
    });
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(MAX_IDLE);
    let mut served = pin!(server.serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        ended = served.as_mut() => ended,
        () = connection.expired(IDLE) => {
            served.as_mut().graceful_shutdown();
            tokio::select! {
                ended = served.as_mut() => ended,
                () = connection.drained() => Ok(()),
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended with an error");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::Full;
    use std::net::SocketAddr;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        time::Instant,
    };

    async fn start() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let service = tower::service_fn(|_: Request<Incoming>| async {
            Ok::<_, Infallible>(Response::new(Full::new(bytes::Bytes::from_static(b"hello"))))
        });
        tokio::spawn(async move { serve(&listener, service, Connections::new(2)).await });
        address
    }

    #[tokio::test]
    async fn idle_connections_are_closed() {
        let address = start().await;
        tokio::time::pause();
        for sent in ["", "GET / HTTP/1.1\r\nHost: a\r\n", "GET / HTTP/1.1\r\nHost: a\r\n\r\n"] {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let started = Instant::now();
            stream.write_all(sent.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            assert_eq!(answer.ends_with("hello"), sent.ends_with("\r\n\r\n"), "{answer}");
            let seconds = started.elapsed().as_secs();
            assert!((29..=32).contains(&seconds), "{sent:?}: {seconds} s");
        }
    }

    #[tokio::test]
    async fn idle_connections_do_not_lock_out_others() {
        let address = start().await;
        let mut idle = Vec::new();
        for _ in 0..5 {
            idle.push(TcpStream::connect(address).await.unwrap());
        }
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.ends_with("hello"), "{answer}");
    }
}
