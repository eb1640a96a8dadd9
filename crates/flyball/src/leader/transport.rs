//! Connections for a leader's writes. They carry nothing once the lease's time is up, and what was not sent by then is lost with
//! them: also when the process slept between deciding to write and writing.

use crate::leader::Leadership;
use futures::future::BoxFuture;
use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::{
    client::legacy::{
        Client as HttpClient,
        connect::{Connected, Connection, HttpConnector},
    },
    rt::{TokioExecutor, TokioIo},
};
use kube::{
    Client,
    client::{Body, ConfigExt},
};
use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};
use tokio::net::TcpStream;
use tower::{BoxError, Service, ServiceBuilder};

/// A client of a cluster whose connections end with `leadership`; none where a proxy is between.
pub(crate) fn transport(cluster: &kube::Config, leadership: &Leadership) -> kube::Result<Option<Client>> {
    if cluster.proxy_url.is_some() || leadership.election().is_none() {
        return Ok(None);
    }
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_connect_timeout(cluster.connect_timeout);
    let connector = Connector { http, leadership: leadership.clone() };
    let connector = cluster.rustls_https_connector_with_connector(connector)?;
    let client: HttpClient<_, Body> = HttpClient::builder(TokioExecutor::new()).build(connector);
    let service = ServiceBuilder::new()
        .layer(cluster.base_uri_layer())
        .option_layer(cluster.auth_layer()?)
        .layer(cluster.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(client);
    Ok(Some(Client::new(service, &cluster.default_namespace)))
}

#[derive(Clone)]
struct Connector {
    http: HttpConnector,
    leadership: Leadership,
}

/// One connection, and the end of what it may carry.
struct Leased {
    stream: TokioIo<TcpStream>,
    leadership: Leadership,
    ended: BoxFuture<'static, ()>,
}

impl Service<Uri> for Connector {
    type Response = Leased;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Leased, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.http.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let (connecting, leadership) = (self.http.call(uri), self.leadership.clone());
        Box::pin(async move {
            let stream = connecting.await?;
            stream.inner().set_nodelay(true)?;
            // Closed is reset: what the kernel has not sent is not sent later.
            stream.inner().set_zero_linger()?;
            let ending = leadership.clone();
            let ended = Box::pin(async move { ending.fence().passed().await });
            Ok(Leased { stream, leadership, ended })
        })
    }
}

impl Connection for Leased {
    fn connected(&self) -> Connected {
        self.stream.connected()
    }
}

impl Leased {
    fn check(&self) -> io::Result<()> {
        match self.leadership.fence().is_open() {
            true => Ok(()),
            false => Err(io::Error::new(io::ErrorKind::BrokenPipe, "this process leads no more")),
        }
    }
}

impl Read for Leased {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        if self.ended.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::BrokenPipe, "this process leads no more")));
        }
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl Write for Leased {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }
}
