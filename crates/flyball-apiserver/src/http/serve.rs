//! The API server on a port: HTTPS with HTTP/1.1 and HTTP/2, and a bounded number of connections.

use crate::Body;
use crate::authn::identity::Authority;
use crate::http::connection;
use crate::http::request_body::RequestBody;
use crate::http::tls::{Tls, TlsError};
use flyball_host::{Connections, accept, limits};
use http::{Request, Response};
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tower::Service;

/// The address, names and certificate authority of a server.
pub struct Config {
    /// The address to listen on; port 0 chooses a free one.
    pub address: SocketAddr,
    /// Names and addresses of the server beside this machine's own.
    pub hosts: Vec<String>,
    /// The cluster's certificate authority.
    pub authority: Arc<Authority>,
}

/// A server that is listening.
pub struct Serving {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

/// Why a server does not listen.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Another process uses the port.
    #[error("port {} of {} is in use by another process: stop that process, or choose another port", address.port(), address.ip())]
    Occupied {
        /// The address wanted.
        address: SocketAddr,
    },
    /// The address cannot be listened on.
    #[error("listen on {address}")]
    Listen {
        /// The address wanted.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// TLS could not be set up.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// The names and addresses of every server.
const OWN_HOSTS: [&str; 7] = [
    "localhost",
    "127.0.0.1",
    "::1",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];

/// How long connections may take to end after a stop.
const MAX_SHUTDOWN: Duration = Duration::from_secs(10);

/// The API server takes at most one in so many of the open files for its connections; the store needs files, too.
const OPEN_FILES_PARTS: u64 = 2;

/// Listens, and serves until [`Serving::stop`].
pub async fn serve<S>(service: S, config: Config) -> Result<Serving, ServeError>
where
    S: Service<Request<RequestBody>, Response = Response<Body>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    let Config { address, hosts, authority } = config;
    let own = OWN_HOSTS.iter().map(|host| (*host).to_owned());
    let own = own.chain((!address.ip().is_unspecified()).then(|| address.ip().to_string()));
    let mut hosts: Vec<String> = own.chain(hosts).collect();
    hosts.sort();
    hosts.dedup();
    let tls = Arc::new(Tls::new(&authority, &hosts)?);
    let listener = TcpListener::bind(address).await.map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => ServeError::Occupied { address },
        _ => ServeError::Listen { address, source },
    })?;
    let address = listener.local_addr().map_err(|source| ServeError::Listen { address, source })?;
    let (stop, stopped) = watch::channel(false);
    let task = tokio::spawn(accept(listener, tls, service, stopped));
    Ok(Serving { address, stop, task })
}

impl Serving {
    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL for clients on this machine.
    pub fn url(&self) -> String {
        let address = self.address;
        match (address.ip().is_unspecified(), address.is_ipv6()) {
            (true, true) => format!("https://[::1]:{}", address.port()),
            (true, false) => format!("https://127.0.0.1:{}", address.port()),
            _ => format!("https://{address}"),
        }
    }

    /// Stops listening, ends watches, and waits for the responses in flight.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        if let Err(error) = self.task.await {
            tracing::error!(%error, "the server ended with an error");
        }
    }
}

async fn accept<S>(listener: TcpListener, tls: Arc<Tls>, service: S, mut stopped: watch::Receiver<bool>)
where
    S: Service<Request<RequestBody>, Response = Response<Body>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    let connections = Connections::new(limits::connections(OPEN_FILES_PARTS));
    let mut tasks = JoinSet::new();
    let stop = stopped.clone();
    loop {
        let accepted = async {
            let stream = accept::next(&listener).await;
            (stream, connections.open().await)
        };
        let (stream, connection) = tokio::select! {
            accepted = accepted => accepted,
            _ = stopped.wait_for(|stopped| *stopped) => break,
        };
        while tasks.try_join_next().is_some() {}
        tasks.spawn(connection::run(stream, tls.clone(), service.clone(), stop.clone(), connection));
    }
    drop(listener);
    let ended = async { while tasks.join_next().await.is_some() {} };
    if tokio::time::timeout(MAX_SHUTDOWN, ended).await.is_err() {
        tracing::warn!("connections that are still open are dropped");
    }
}
