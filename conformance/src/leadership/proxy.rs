//! What lies between a replica and the server, and can be cut: then bytes vanish, and both ends learn nothing.

use std::net::{Ipv4Addr, SocketAddr};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// A way to the server.
pub struct Proxy {
    pub port: u16,
    cut: watch::Sender<bool>,
    _serving: JoinSet<()>,
}

impl Proxy {
    pub async fn start(upstream: SocketAddr) -> std::io::Result<Proxy> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        let (cut, is_cut) = watch::channel(false);
        let serving = JoinSet::from_iter([accept(listener, upstream, is_cut)]);
        Ok(Proxy { port, cut, _serving: serving })
    }

    /// Cuts, or mends: connections from before are then ended, and new ones work.
    pub fn cut(&self, cut: bool) {
        self.cut.send_replace(cut);
    }
}

async fn accept(listener: TcpListener, upstream: SocketAddr, is_cut: watch::Receiver<bool>) {
    let mut connections = JoinSet::new();
    while let Ok((downstream, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        connections.spawn(connect(downstream, upstream, is_cut.clone()));
    }
}

async fn connect(downstream: TcpStream, upstream: SocketAddr, mut is_cut: watch::Receiver<bool>) {
    if *is_cut.borrow() {
        return mended(&mut is_cut).await;
    }
    let Ok(upstream) = TcpStream::connect(upstream).await else {
        return;
    };
    let (mut from, mut to) = (downstream.into_split(), upstream.into_split());
    let cut = is_cut.clone();
    let ended = tokio::select! {
        () = pump(&mut from.0, &mut to.1) => true,
        () = pump(&mut to.0, &mut from.1) => true,
        _ = is_cut.wait_for(|cut| *cut) => false,
    };
    if !ended {
        // The server's end is closed with what it has not sent; the replica's hears nothing until the end.
        drop(to);
        mended(&mut cut.clone()).await;
    }
}

async fn mended(is_cut: &mut watch::Receiver<bool>) {
    if is_cut.wait_for(|cut| !*cut).await.is_err() {
        std::future::pending::<()>().await;
    }
}

async fn pump(from: &mut (impl AsyncRead + Unpin), to: &mut (impl AsyncWrite + Unpin)) {
    let mut bytes = vec![0; 16 * 1024];
    while let Ok(read) = from.read(&mut bytes).await
        && read > 0
    {
        if to.write_all(&bytes[..read]).await.is_err() {
            return;
        }
    }
}
