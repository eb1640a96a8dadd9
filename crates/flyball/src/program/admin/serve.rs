//! The sockets of the admin server: one for probes, one for metrics and `/debug`, or one for both.

use crate::engine::shared::Shared;
use crate::program::admin::auth::Gate;
use crate::program::admin::{insight, probes};
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

/// Whoever takes longer to ask is hung up on.
const QUESTION: Duration = Duration::from_secs(10);
/// How long a connection is kept, and how long its last answer may take.
const CONNECTION: Duration = Duration::from_secs(300);
const ANSWER: Duration = Duration::from_secs(30);
/// More connections at once wait.
const CONNECTIONS: usize = 256;

/// The listening parts of an operator; dropping it closes them.
#[derive(Default)]
pub(crate) struct Servers {
    tasks: JoinSet<()>,
    pub(crate) addresses: Addresses,
}

/// Where an operator answers; ports that were left to the system are told here.
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
    pub(crate) async fn start(operator: &Arc<Shared>, config: &Config, client: Client) -> Result<Servers> {
        let (health, metrics) = (&config.health, &config.metrics);
        let gate = (!metrics.address.is_loopback()).then(|| Arc::new(Gate::new(client)));
        let mut servers = Servers::default();
        let one = metrics.port != 0 && (metrics.address, metrics.port) == (health.address, health.port);
        if health.enabled {
            let mut router = probes(operator, config);
            if one && metrics.enabled {
                router = router.merge(insight(operator, config, gate.clone()));
            }
            let address = servers.listen("health", health.address, health.port, router).await?;
            servers.addresses.health = Some(address);
            servers.addresses.metrics = (one && metrics.enabled).then_some(address);
        }
        if metrics.enabled && servers.addresses.metrics.is_none() {
            let router = insight(operator, config, gate).merge(probes(operator, config));
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

/// Answers whoever connects, for ever. What clients do, or fail to do, costs a bounded number of connections for a bounded time.
async fn serve(listener: TcpListener, router: Router) {
    let (mut connections, room) = (JoinSet::new(), Arc::new(Semaphore::new(CONNECTIONS)));
    loop {
        let place = room.clone().acquire_owned().await.expect("nobody closes it");
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
            converse(stream, router).await;
            drop(place);
        });
    }
}

async fn converse(stream: TcpStream, router: Router) {
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(QUESTION);
    let mut connection = pin!(server.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router)));
    // Whatever ends a connection is its client's to notice.
    if timeout(CONNECTION, &mut connection).await.is_err() {
        connection.as_mut().graceful_shutdown();
        timeout(ANSWER, connection)
            .await
            .map(|ended| ended.unwrap_or_default())
            .unwrap_or_default();
    }
}
