//! Serves plain HTTP/1.1 with deadlines: what clients do or fail to do costs a bounded number of connections for a bounded time.

use crate::{
    accept,
    activity::Tracked,
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
    time::timeout,
};
use tower::{BoxError, Service, util::ServiceExt};

/// How long a connection may be without a request, and how long the head of a request may take.
pub const MAX_IDLE: Duration = Duration::from_secs(30);

/// How long an expired connection may take to send the rest of a response.
const MAX_FLUSH: Duration = Duration::from_secs(5);

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
        () = connection.expired(MAX_IDLE) => {
            served.as_mut().graceful_shutdown();
            timeout(MAX_FLUSH, served).await.unwrap_or(Ok(()))
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended with an error");
    }
}
