//! The port of an operator's webhooks: its certificates, its registration with the API server, and whether it answers.

mod authority;
mod inject;
mod probe;
pub(crate) mod secret;

use crate::clock::Clock;
use crate::config::Webhook;
use crate::program::tls::{self, Pem, RENEWAL_INTERVAL, ServingCertificate};
use crate::webhook::endpoint::Endpoint;
use crate::{Backoff, Error, Operator, Result};
use authority::Authority;
use inject::Registrar;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use secret::Injected;
use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};
use tokio::{net::TcpStream, time::sleep};

/// Whether the webhooks answer; `/readyz` asks.
#[derive(Clone, Debug)]
pub(crate) struct WebhookHealth {
    state: Arc<Mutex<Result<(), String>>>,
}

impl WebhookHealth {
    pub(crate) fn new() -> WebhookHealth {
        WebhookHealth {
            state: Arc::new(Mutex::new(Err("not registered yet".into()))),
        }
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, state: Result<(), String>) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }
}

/// Keeps the certificate of the port, and what the API server trusts, up to date.
pub(crate) struct Keeper {
    client: Client,
    operator: Operator,
    endpoint: Endpoint,
    install: bool,
    pub(crate) certificate: Arc<ServingCertificate>,
    source: Source,
    clock: Clock,
    pub(crate) health: WebhookHealth,
    /// The bundle that the API server was last seen to trust.
    injected: String,
}

enum Source {
    /// `ca.crt`, beside the certificate that is served.
    Files { authority: PathBuf },
    /// The operator's own, and what is served: who signed it, and until when.
    Own { served: Option<(String, Pem)> },
}

impl Keeper {
    /// Uses the files of a directory if they are there, and an authority of the operator's otherwise.
    pub(crate) fn new(
        client: Client,
        operator: &Operator,
        config: &Webhook,
        clock: Clock,
        health: WebhookHealth,
    ) -> Result<Keeper> {
        let endpoint = operator.webhook_endpoint(client.default_namespace());
        let file = |name: &str| Path::new(&config.cert_dir).join(name);
        let (certificate, source) = match file("tls.crt").exists() {
            true => {
                let certificate = ServingCertificate::from_files(&file("tls.crt"), &file("tls.key"))?;
                (certificate, Source::Files { authority: file("ca.crt") })
            }
            // Replaced before the API server knows of the port.
            false => (ServingCertificate::self_signed(endpoint.host_names())?, Source::Own { served: None }),
        };
        Ok(Keeper {
            client,
            operator: operator.clone(),
            endpoint,
            install: config.install,
            certificate,
            source,
            clock,
            health,
            injected: String::new(),
        })
    }

    /// Keeps everything up to date for a port that listens on an address. Never ends.
    pub(crate) async fn run(mut self, address: SocketAddr) {
        let mut failures = 0;
        loop {
            let outcome = match self.turn().await {
                Ok(()) => self.answers(address).await,
                failed => failed,
            };
            let delay = match &outcome {
                Ok(()) => {
                    failures = 0;
                    RENEWAL_INTERVAL
                }
                Err(error) => {
                    failures += 1;
                    tracing::warn!(failures, %error, "the webhooks are not ready");
                    Backoff::WATCH.delay(failures, &self.operator.name()).min(RENEWAL_INTERVAL)
                }
            };
            self.health.set(outcome.map_err(|error| error.to_string()));
            sleep(delay).await;
        }
    }

    /// Renews what is due, and registers the webhooks with the bundle as it is now.
    async fn turn(&mut self) -> Result<()> {
        let bundle = match &mut self.source {
            Source::Files { authority } => authority.exists().then(|| tls::read(authority)).transpose()?,
            Source::Own { served } => {
                let api: Api<Secret> = Api::default_namespaced(self.client.clone());
                let (now, injected) = (self.clock.now(), Injected { bundle: &self.injected });
                let authority = secret::authority(&api, self.operator.name(), now, injected).await?;
                serve(served, &authority, &self.endpoint, &self.certificate, self.clock)?;
                Some(authority.bundle())
            }
        };
        let registrar = Registrar {
            client: &self.client,
            operator: &self.operator,
            endpoint: &self.endpoint,
            install: self.install,
        };
        let missing = registrar.register(bundle.as_deref()).await?;
        if !missing.is_empty() {
            return Err(Error::retry(format!("not installed: {}", missing.join(", "))));
        }
        self.injected = bundle.unwrap_or_default();
        Ok(())
    }

    /// Asks the port as the API server will.
    ///
    /// A Service has no address yet while the only replica is not ready, and others' later: so the port is asked itself, by the
    /// name of the Service.
    async fn answers(&self, listening: SocketAddr) -> Result<()> {
        if self.injected.is_empty() {
            return Ok(());
        }
        let host = self.endpoint.host_names().swap_remove(0);
        let stream = match &self.endpoint {
            Endpoint::Service { .. } => TcpStream::connect(reachable(listening)).await?,
            Endpoint::Url(url) => {
                let uri: http::Uri = url.parse().map_err(Error::permanent)?;
                TcpStream::connect((host.as_str(), uri.port_u16().unwrap_or(443))).await?
            }
        };
        probe::probe(stream, &host, &self.injected, self.clock).await
    }
}

/// Serves a certificate of an authority, a new one if that is due or another one signs now.
fn serve(
    served: &mut Option<(String, Pem)>,
    authority: &Authority,
    endpoint: &Endpoint,
    certificate: &ServingCertificate,
    clock: Clock,
) -> Result<()> {
    let now = clock.now();
    if served
        .as_ref()
        .is_some_and(|(signer, pem)| signer == authority.signer() && !pem.is_due(now))
    {
        return Ok(());
    }
    let pem = authority.issue(&endpoint.host_names(), now).map_err(Error::retry)?;
    certificate.replace(pem.clone())?;
    *served = Some((authority.signer().to_owned(), pem));
    Ok(())
}

/// An address of this machine for one that listens on all of its addresses.
fn reachable(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        ip if ip.is_unspecified() => SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), address.port()),
        _ => address,
    }
}

#[cfg(test)]
mod tests;
