//! An operator at work, until it is stopped.

use crate::cache::client::ObservedClient;
use crate::clock::Clock;
use crate::declare::controller::ControllerSpec;
use crate::engine::crds::{self, CrdInstall};
use crate::engine::runtime::Runtime;
use crate::engine::task;
use crate::leader::{Connection, Elections, FencedClient};
use crate::metrics::MeasuredClient;
#[cfg(feature = "program")]
use crate::program::admin::{self, Servers};
#[cfg(feature = "program")]
use crate::program::webhook::{Keeper, WebhookHealth};
#[cfg(feature = "program")]
use crate::webhook::{WebhookService, registration};
#[cfg(feature = "program")]
use crate::{Addresses, Config};
use crate::{Cache, Election, Events, Leadership, Metrics, Operator, Result, event};
use kube::Client;
use std::{mem::take, sync::Arc, time::Duration};
use tokio::{task::JoinSet, time::timeout};
use tokio_util::sync::CancellationToken;

/// How long a stop waits for the API server to take the events that are left.
const LAST_EVENTS_TIMEOUT: Duration = Duration::from_secs(10);

/// What an operator is started with: what it declares, and what its configuration says.
struct Setup {
    operator: Operator,
    election: Option<Election>,
    install: CrdInstall,
    /// Whether its webhooks answer, if it serves any.
    #[cfg(feature = "program")]
    webhooks: Option<WebhookHealth>,
}

impl Setup {
    #[cfg(feature = "program")]
    fn of(operator: &Operator) -> Result<Setup> {
        let Some(config) = operator.configuration() else {
            return Ok(Setup::declared(operator));
        };
        let mut configured = config.applied_to(operator.clone())?;
        let webhooks = (config.webhook.enabled && registration::has_webhooks(operator)).then(WebhookHealth::new);
        if let Some(health) = webhooks.clone() {
            configured = configured.ready_check("webhook", move || health.check());
        }
        Ok(Setup {
            operator: configured,
            webhooks,
            election: Election::configured(operator.name(), &config.leader_election),
            install: config.crds.install,
        })
    }

    #[cfg(not(feature = "program"))]
    fn of(operator: &Operator) -> Result<Setup> {
        Ok(Setup::declared(operator))
    }

    fn declared(operator: &Operator) -> Setup {
        Setup {
            operator: operator.clone(),
            election: None,
            install: CrdInstall::default(),
            #[cfg(feature = "program")]
            webhooks: None,
        }
    }
}

/// An operator that was started. Dropping it ends everything at once, as a crash would.
#[must_use = "an operator ends when it is dropped"]
pub struct Running {
    pub(crate) operator: Arc<Runtime>,
    publisher: JoinSet<()>,
    /// No reconcile is left that could tell of events.
    ended: CancellationToken,
    elections: Option<Elections>,
    #[cfg(feature = "program")]
    servers: Servers,
    /// Writes whether this process leads or not.
    #[cfg(feature = "program")]
    client: Client,
}

impl Running {
    pub(crate) async fn start(operator: &Operator, connection: Connection) -> Result<Running> {
        let setup = Setup::of(operator)?;
        setup.operator.check()?;
        Running::start_checked(&setup, connection).await
    }

    async fn start_checked(setup: &Setup, connection: Connection) -> Result<Running> {
        let Setup { operator, election, install, .. } = setup;
        let cache = Cache::new(operator.name(), operator.namespaces_watched(), operator.lists());
        let metrics = operator.own_metrics();
        let unmeasured = connection.client()?;
        let client = MeasuredClient::new(unmeasured.clone(), metrics.clone(), connection.host());
        let (recorder, publisher) = event::channel(operator.event_policy());
        let clock = Clock::start();
        let mut elections = Elections::new(operator.name(), client.to_client(), cache.clone(), metrics.clone(), clock);
        let leadership = stand(operator, election.as_ref(), &mut elections)?;
        let client = ObservedClient::new(client, cache.clone());
        let clients = FencedClientFactory {
            connection,
            unmeasured,
            client: client.clone(),
            cache: cache.clone(),
            metrics: metrics.clone(),
        };
        let client = client.to_client();
        let installation = crds::begin(&client, operator, &leadership, *install).await?;
        let api = clients.client(&leadership)?;
        let runtime = Arc::new(Runtime {
            name: operator.name().to_owned(),
            client: api.to_client(),
            api,
            leadership,
            elections: elections.leaderships(),
            checks: operator.checks().clone(),
            cache,
            recorder,
            metrics: metrics.clone(),
            clock,
            stop: CancellationToken::new(),
            grace: operator.shutdown_grace,
            installation: Arc::new(installation),
            running: Arc::default(),
            handles: Arc::default(),
        });
        metrics.observe(&runtime);
        let ended = CancellationToken::new();
        let publisher = publisher.run(client.clone(), operator.name().to_owned(), clock, ended.clone());
        let publisher = JoinSet::from_iter([publisher]);
        // Held until all controllers are connected, so that each kind is followed once, as fully as any of them needs.
        let _followed = runtime.follow(operator.controllers().iter().flat_map(ControllerSpec::kinds));
        control(operator, &runtime, &clients, &mut elections)?;
        spawn_tasks(operator, &runtime, &client);
        elections.start();
        let running = Running {
            operator: runtime,
            publisher,
            ended,
            elections: Some(elections),
            #[cfg(feature = "program")]
            servers: Servers::default(),
            #[cfg(feature = "program")]
            client,
        };
        running.serve(setup).await
    }

    /// Opens the ports that the configuration asks for.
    #[cfg(feature = "program")]
    async fn serve(mut self, setup: &Setup) -> Result<Running> {
        if let Some(config) = setup.operator.configuration() {
            self.servers = Servers::start(&self.operator, config, self.client.clone()).await?;
            if let Some(health) = &setup.webhooks {
                let keeper = Keeper::new(
                    self.client.clone(),
                    &setup.operator,
                    &config.webhook,
                    self.operator.clock,
                    health.clone(),
                )?;
                let service =
                    WebhookService::measured(&setup.operator, self.client.clone(), self.operator.metrics.clone());
                self.servers.webhooks(&config.webhook, service, keeper).await?;
            }
        }
        Ok(self)
    }

    #[cfg(not(feature = "program"))]
    async fn serve(self, _: &Setup) -> Result<Running> {
        Ok(self)
    }

    /// Waits until the operator's kinds are installed, or until another replica is seen to lead, which installs them.
    ///
    /// Fails if an attempt of this process to install them fails. The attempts go on.
    pub async fn installed(&self) -> Result<()> {
        let runtime = &self.operator;
        tokio::select! {
            installed = runtime.installation.outcome() => installed,
            () = runtime.leadership.led_by_another() => Ok(()),
        }
    }

    /// Whether this process leads, and who does. Without an election it always does.
    pub fn leadership(&self) -> &Leadership {
        &self.operator.leadership
    }

    /// All that the operator answers on the ports of a configuration, as a tower service that needs none.
    #[cfg(feature = "program")]
    pub fn admin(&self, config: &Config) -> axum::Router {
        admin::service(&self.operator, config, self.client.clone())
    }

    /// Where probes are answered and metrics served.
    #[cfg(feature = "program")]
    pub fn addresses(&self) -> Addresses {
        self.servers.addresses
    }

    /// What the operator counts and measures.
    pub fn metrics(&self) -> &Metrics {
        &self.operator.metrics
    }

    /// What the operator remembers of its events.
    pub fn events(&self) -> &Events {
        self.operator.recorder.events()
    }

    /// Stops: begins no reconcile, lets those under way end, lets another replica lead, publishes what events are left.
    pub async fn stop(mut self) {
        self.operator.stop.cancel();
        let mut running = self.take();
        while running.join_next().await.is_some() {}
        if let Some(elections) = self.elections.take() {
            elections.release().await;
        }
        #[cfg(feature = "program")]
        self.servers.drain().await;
        let mut publisher = take(&mut self.publisher);
        self.ended.cancel();
        let operator = self.operator.name.clone();
        drop(self);
        let published = async { while publisher.join_next().await.is_some() {} };
        if timeout(LAST_EVENTS_TIMEOUT, published).await.is_err() {
            tracing::warn!(operator, "the API server did not take the last events in time");
        }
    }

    fn take(&self) -> JoinSet<()> {
        take(&mut *self.operator.running.lock().expect("nothing panics under this lock"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.operator.stop.cancel();
        drop(self.take());
    }
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Running {}", self.operator.name)
    }
}

/// Makes clients that write only while this process leads.
struct FencedClientFactory {
    connection: Connection,
    unmeasured: Client,
    client: ObservedClient,
    cache: Cache,
    metrics: Metrics,
}

impl FencedClientFactory {
    fn client(&self, leadership: &Leadership) -> Result<Arc<FencedClient>> {
        let writing = self.connection.leader_client(leadership, &self.unmeasured)?;
        let writing = MeasuredClient::new(writing, self.metrics.clone(), self.connection.host());
        Ok(Arc::new(FencedClient {
            reading: self.client.clone(),
            writing: ObservedClient::new(writing, self.cache.clone()),
            leadership: leadership.clone(),
            metrics: self.metrics.clone(),
        }))
    }
}

/// Starts what runs beside the controllers.
fn spawn_tasks(operator: &Operator, runtime: &Arc<Runtime>, client: &Client) {
    runtime.spawn(crds::install_while_leading(runtime.clone(), operator.clone(), runtime.stop.clone()));
    for task in operator.tasks() {
        runtime.spawn(task::run(task.clone(), client.clone(), runtime.metrics.clone(), runtime.stop.clone()));
    }
    for task in &operator.leader_tasks {
        runtime.spawn(task::run_while_leading(runtime.clone(), task.clone(), runtime.stop.clone()));
    }
}

/// Starts the controllers, each under the election that it stands in.
fn control(
    operator: &Operator,
    runtime: &Arc<Runtime>,
    clients: &FencedClientFactory,
    elections: &mut Elections,
) -> Result<()> {
    for controller in operator.controllers() {
        let runtime = match &controller.election {
            Some(election) => {
                let leadership = elections.stand(election)?;
                let api = clients.client(&leadership)?;
                runtime.led_by(leadership, api)
            }
            None => runtime.clone(),
        };
        runtime.control(controller.clone(), runtime.stop.clone());
    }
    Ok(())
}

/// Takes part in the operator's election, if it declares one or its configuration does, and in those of its controllers.
fn stand(operator: &Operator, configured: Option<&Election>, elections: &mut Elections) -> Result<Leadership> {
    let leadership = match operator.own_election().or(configured) {
        Some(election) => elections.stand(election)?,
        None => Leadership::unelected(),
    };
    for election in operator.controllers().iter().filter_map(|controller| controller.election.as_ref()) {
        elections.stand(election)?;
    }
    Ok(leadership)
}
