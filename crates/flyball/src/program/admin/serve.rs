//! The sockets of an operator: one for probes, one for metrics and `/debug`, or one for both, and one for webhooks. A port that
//! asks for tokens speaks TLS, as does that of webhooks.

use crate::config::Webhook;
use crate::engine::runtime::Runtime;
use crate::program::admin::auth::Gate;
use crate::program::admin::{debug_routes, probes};
use crate::program::tls::ServingCertificate;
use crate::program::webhook::Keeper;
use crate::webhook::WebhookService;
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
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
    sync::Semaphore,
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_rustls::TlsAcceptor;

/// Connections that take longer for a TLS handshake, or to send a request's headers, are closed.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a connection is kept, and how long its last answer may take.
const MAX_CONNECTION_AGE: Duration = Duration::from_secs(300);
const LAST_RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long webhooks answer after the operator has stopped.
const WEBHOOK_DRAIN: Duration = Duration::from_secs(5);
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
    /// Webhooks.
    pub webhook: Option<SocketAddr>,
}

impl Servers {
    /// Listens as the configuration says. `client` is asked who may look, unless only this machine can.
    pub(crate) async fn start(operator: &Arc<Runtime>, config: &Config, client: Client) -> Result<Servers> {
        let (health, metrics) = (&config.health, &config.metrics);
        let namespace = client.default_namespace().to_owned();
        let gate = (!metrics.address.is_loopback()).then(|| Arc::new(Gate::new(client)));
        let mut servers = Servers::default();
        let tls = servers.tls(operator, config, gate.is_some(), namespace.as_str())?;
        let one = metrics.port != 0 && (metrics.address, metrics.port) == (health.address, health.port);
        if health.enabled {
            let mut router = probes(operator, config);
            if one && metrics.enabled {
                router = router.merge(debug_routes(operator, config, gate.clone()));
            }
            let tls = tls.clone().filter(|_| one && metrics.enabled);
            let address = servers.listen("health", (health.address, health.port), router, tls).await?;
            servers.addresses.health = Some(address);
            servers.addresses.metrics = (one && metrics.enabled).then_some(address);
        }
        if metrics.enabled && servers.addresses.metrics.is_none() {
            let router = debug_routes(operator, config, gate).merge(probes(operator, config));
            let address = servers.listen("metrics", (metrics.address, metrics.port), router, tls).await?;
            servers.addresses.metrics = Some(address);
        }
        Ok(servers)
    }

    /// TLS for the metrics, where a client has to send a token or a certificate is configured.
    fn tls(
        &mut self,
        operator: &Runtime,
        config: &Config,
        authorizes: bool,
        namespace: &str,
    ) -> Result<Option<TlsAcceptor>> {
        let metrics = &config.metrics;
        let certificate = match (&metrics.cert_file, &metrics.key_file) {
            _ if !metrics.enabled => return Ok(None),
            (Some(certificate), Some(key)) => ServingCertificate::from_files(certificate.as_ref(), key.as_ref())?,
            _ if !authorizes => return Ok(None),
            _ => {
                let name = &operator.name;
                let service = format!("{name}.{namespace}.svc");
                ServingCertificate::self_signed(vec![service, name.clone(), "localhost".into()])?
            }
        };
        let acceptor = TlsAcceptor::from(certificate.server_config()?);
        self.tasks.spawn(certificate.keep());
        Ok(Some(acceptor))
    }

    /// Serves webhooks, and registers them once the port listens.
    pub(crate) async fn webhooks(&mut self, config: &Webhook, service: WebhookService, keeper: Keeper) -> Result<()> {
        let tls = TlsAcceptor::from(keeper.certificate.server_config()?);
        let router = Router::new().fallback_service(service);
        let address = self.listen("webhook", (config.address, config.port), router, Some(tls)).await?;
        self.addresses.webhook = Some(address);
        self.tasks.spawn(keeper.certificate.clone().keep());
        self.tasks.spawn(keeper.run(address));
        Ok(())
    }

    /// Answers reviews for some time more: the API server learns later than this process that it stops.
    pub(crate) async fn drain(&self) {
        if self.addresses.webhook.is_some() {
            sleep(WEBHOOK_DRAIN).await;
        }
    }

    async fn listen(
        &mut self,
        what: &'static str,
        (address, port): (IpAddr, u16),
        router: Router,
        tls: Option<TlsAcceptor>,
    ) -> Result<SocketAddr> {
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
        tracing::info!(%address, tls = tls.is_some(), "serving {what}");
        self.tasks.spawn(serve(listener, router, tls));
        Ok(address)
    }
}

/// Accepts connections for ever: a bounded number at once, each for a bounded time.
async fn serve(listener: TcpListener, router: Router, tls: Option<TlsAcceptor>) {
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
        let (router, tls) = (router.clone(), tls.clone());
        connections.spawn(async move {
            match tls {
                None => serve_connection(stream, router).await,
                // A handshake that fails is the client's to notice.
                Some(tls) => match timeout(HEADER_TIMEOUT, tls.accept(stream)).await {
                    Ok(Ok(stream)) => serve_connection(stream, router).await,
                    Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
                    Err(_) => tracing::debug!("TLS handshake timed out"),
                },
            }
            drop(permit);
        });
    }
}

async fn serve_connection(stream: impl AsyncRead + AsyncWrite + Unpin, router: Router) {
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
