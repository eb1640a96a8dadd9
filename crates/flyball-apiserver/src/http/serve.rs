//! The API server on a port: HTTPS, HTTP/1.1 and 2. Who calls is decided here, what they get is left to the service.

use crate::Body;
use crate::authn::identity::Authority;
use crate::http::connection;
use crate::http::tls::{Tls, TlsError};
use http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::server::graceful::GracefulShutdown;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tower::Service;

/// Where to serve, and as whom.
pub struct Config {
    /// The address to listen on; port 0 takes any that is free.
    pub address: SocketAddr,
    /// Names and addresses that clients may use beside this machine's own.
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
    /// Something else has the port.
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
    /// There is no TLS.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// The names and addresses that a server on this machine has anyway.
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
const PATIENCE: Duration = Duration::from_secs(10);

/// Listens, and answers until [`Serving::stop`].
pub async fn serve<S>(service: S, config: Config) -> Result<Serving, ServeError>
where
    S: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible> + Clone + Send + 'static,
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

    /// Stops listening, ends the watches, and waits until the last answer is given.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        if let Err(error) = self.task.await {
            tracing::error!(%error, "the server ended badly");
        }
    }
}

async fn accept<S>(listener: TcpListener, tls: Arc<Tls>, service: S, mut stopped: watch::Receiver<bool>)
where
    S: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    let graceful = GracefulShutdown::new();
    let stop = stopped.clone();
    loop {
        let stream = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopped.wait_for(|stopped| *stopped) => break,
        };
        match stream {
            Ok((stream, _)) => {
                let watcher = graceful.watcher();
                tokio::spawn(connection::run(stream, tls.clone(), service.clone(), stop.clone(), watcher));
            }
            // out of file descriptors, most likely: breathe, or this turns into a busy loop
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
    drop(listener);
    if tokio::time::timeout(PATIENCE, graceful.shutdown()).await.is_err() {
        tracing::warn!("connections are still open and are dropped");
    }
}
