//! The sockets of the admin server: one for probes, one for metrics and `/debug`, or one for both.

use crate::engine::runtime::Runtime;
use crate::program::admin::auth::Gate;
use crate::program::admin::{debug_routes, probes};
use crate::{Config, Error, Result};
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use kube::Client;
use std::{
    net::{IpAddr, SocketAddr},
    pin::pin,
    sync::Arc,
    time::Duration,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinSet,
    time::{sleep, timeout},
};

/// Connections that take longer to send a request's headers are closed.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a connection is kept, and how long its last answer may take.
const MAX_CONNECTION_AGE: Duration = Duration::from_secs(300);
const LAST_RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
/// Further connections wait.
const MAX_CONNECTIONS: usize = 256;

/// The listening parts of an operator; dropping it closes them.
#[derive(Default)]
pub(crate) struct Servers {
    tasks: JoinSet<()>,
    pub(crate) addresses: Addresses,
}

/// The addresses that an operator listens on, with the ports that the system chose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Addresses {
    /// Probes.
    pub health: Option<SocketAddr>,
    /// Metrics, the leader and `/debug`.
    pub metrics: Option<SocketAddr>,
}

impl Servers {
    /// Listens as the configuration says. `client` is asked who may look, unless only this machine can.
    pub(crate) async fn start(operator: &Arc<Runtime>, config: &Config, client: Client) -> Result<Servers> {
        let (health, metrics) = (&config.health, &config.metrics);
        let gate = (!metrics.address.is_loopback()).then(|| Arc::new(Gate::new(client)));
        let mut servers = Servers::default();
        let one = metrics.port != 0 && (metrics.address, metrics.port) == (health.address, health.port);
        if health.enabled {
            let mut router = probes(operator, config);
            if one && metrics.enabled {
                router = router.merge(debug_routes(operator, config, gate.clone()));
            }
            let address = servers.listen("health", health.address, health.port, router).await?;
            servers.addresses.health = Some(address);
            servers.addresses.metrics = (one && metrics.enabled).then_some(address);
        }
        if metrics.enabled && servers.addresses.metrics.is_none() {
            let router = debug_routes(operator, config, gate).merge(probes(operator, config));
            let address = servers.listen("metrics", metrics.address, metrics.port, router).await?;
            servers.addresses.metrics = Some(address);
        }
        Ok(servers)
    }

    async fn listen(&mut self, what: &'static str, address: IpAddr, port: u16, router: Router) -> Result<SocketAddr> {
        let listener = TcpListener::bind((address, port)).await;
        let refused = |error| {
            let address = SocketAddr::new(address, port);
            Error::permanent(format!(
                "listen on {address}: {error}; give another {what}.port (--{what}-port; 0 for any that is free) or \
                 {what}.address, or turn it off with {what}.enabled"
            ))
        };
        let listener = listener.map_err(refused)?;
        let address = listener.local_addr()?;
        tracing::info!(%address, "serving {what}");
        self.tasks.spawn(serve(listener, router));
        Ok(address)
    }
}

/// Accepts connections for ever: a bounded number at once, each for a bounded time.
async fn serve(listener: TcpListener, router: Router) {
    let (mut connections, room) = (JoinSet::new(), Arc::new(Semaphore::new(MAX_CONNECTIONS)));
    loop {
        let permit = room.clone().acquire_owned().await.expect("the semaphore is never closed");
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                sleep(Duration::from_secs(1)).await;
                continue;
            }
        };
        while connections.try_join_next().is_some() {}
        let router = router.clone();
        connections.spawn(async move {
            serve_connection(stream, router).await;
            drop(permit);
        });
    }
}

async fn serve_connection(stream: TcpStream, router: Router) {
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
    let mut connection = pin!(server.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router)));
    // A connection that fails is its client's to notice.
    if timeout(MAX_CONNECTION_AGE, &mut connection).await.is_err() {
        connection.as_mut().graceful_shutdown();
        timeout(LAST_RESPONSE_TIMEOUT, connection)
            .await
            .map(|ended| ended.unwrap_or_default())
            .unwrap_or_default();
    }
}
