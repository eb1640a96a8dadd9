//! An operator at work, until it is stopped.

use crate::cache::client::ObservedClient;
use crate::clock::Clock;
use crate::declare::controller::ControllerSpec;
use crate::engine::runtime::Runtime;
use crate::engine::task;
use crate::leader::{Elections, FencedClient, ending, transport};
use crate::metrics::MeasuredClient;
use crate::program::admin::{self, Servers};
use crate::program::config::CrdInstall;
use crate::program::crds;
use crate::{Addresses, Cache, Config, Election, Events, Leadership, Metrics, Operator, Result, event};
use kube::Client;
use std::{mem::take, sync::Arc, time::Duration};
use tokio::{task::JoinSet, time::timeout};
use tokio_util::sync::CancellationToken;

/// How long a stop waits for the API server to take the events that are left.
const LAST_EVENTS_TIMEOUT: Duration = Duration::from_secs(10);

/// What an operator is started with, beside itself and a client.
#[derive(Default)]
pub(crate) struct Setup {
    pub(crate) election: Option<Election>,
    /// How the client's cluster is reached.
    pub(crate) cluster: Option<kube::Config>,
    pub(crate) install: CrdInstall,
}

/// An operator that was started. Dropping it ends everything at once, as a crash would.
#[must_use = "an operator ends when it is dropped"]
pub struct Running {
    pub(crate) operator: Arc<Runtime>,
    publisher: JoinSet<()>,
    /// No reconcile is left that could tell of events.
    ended: CancellationToken,
    elections: Option<Elections>,
    servers: Servers,
    /// Writes whether this process leads or not.
    client: Client,
}

impl Running {
    pub(crate) async fn start(operator: &Operator, client: Client, setup: Setup) -> Result<Running> {
        operator.check()?;
        let cache = Cache::new(operator.name(), operator.namespaces_watched(), operator.lists());
        let metrics = operator.own_metrics();
        let unmeasured = client.clone();
        let client = MeasuredClient::new(client, metrics.clone(), setup.cluster.as_ref());
        let (recorder, publisher) = event::channel(operator.event_policy());
        let clock = Clock::start();
        let mut elections = Elections::new(operator.name(), client.to_client(), cache.clone(), metrics.clone(), clock);
        let leadership = stand(operator, &setup, &mut elections)?;
        let client = ObservedClient::new(client, cache.clone());
        let leads = Leads {
            cluster: setup.cluster,
            unmeasured,
            client: client.clone(),
            cache: cache.clone(),
            metrics: metrics.clone(),
        };
        let client = client.to_client();
        let installation = crds::begin(&client, operator, &leadership, setup.install).await?;
        let api = leads.client(&leadership)?;
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
        control(operator, &runtime, &leads, &mut elections)?;
        spawn_tasks(operator, &runtime, &client);
        elections.start();
        let elections = Some(elections);
        Ok(Running {
            operator: runtime,
            publisher,
            ended,
            elections,
            servers: Servers::default(),
            client,
        })
    }

    /// As [`Running::start`], with the namespaces, the election and the ports that a configuration asks for.
    ///
    /// Where it is known how the cluster is reached, the leader's writes have connections of their own.
    pub(crate) async fn start_with(
        operator: &Operator,
        client: Client,
        cluster: Option<kube::Config>,
        config: &Config,
    ) -> Result<Running> {
        let election = Election::configured(operator.name(), &config.leader_election);
        let election = operator.own_election().is_none().then_some(election).flatten();
        let operator = config.applied_to(operator.clone())?;
        let mut running =
            Running::start(&operator, client, Setup { election, cluster, install: config.crds.install }).await?;
        running.servers = Servers::start(&running.operator, config, running.client.clone()).await?;
        Ok(running)
    }

    /// Whether this process leads, and who does. Without an election it always does.
    pub fn leadership(&self) -> &Leadership {
        &self.operator.leadership
    }

    /// All that the operator answers on the ports of a configuration, as a tower service that needs none.
    pub fn admin(&self, config: &Config) -> axum::Router {
        admin::service(&self.operator, config, self.client.clone())
    }

    /// Where probes are answered and metrics served.
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

/// What a client is made of that writes only while this process leads.
struct Leads {
    cluster: Option<kube::Config>,
    unmeasured: Client,
    client: ObservedClient,
    cache: Cache,
    metrics: Metrics,
}

impl Leads {
    fn client(&self, leadership: &Leadership) -> Result<Arc<FencedClient>> {
        let connected = self.cluster.as_ref().map(|cluster| transport(cluster, leadership)).transpose()?.flatten();
        let writing = connected.unwrap_or_else(|| ending(self.unmeasured.clone(), leadership));
        let writing = MeasuredClient::new(writing, self.metrics.clone(), self.cluster.as_ref());
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
fn control(operator: &Operator, runtime: &Arc<Runtime>, leads: &Leads, elections: &mut Elections) -> Result<()> {
    for controller in operator.controllers() {
        let runtime = match &controller.election {
            Some(election) => {
                let leadership = elections.stand(election)?;
                let api = leads.client(&leadership)?;
                runtime.led_by(leadership, api)
            }
            None => runtime.clone(),
        };
        runtime.control(controller.clone(), runtime.stop.clone());
    }
    Ok(())
}

/// Stands in the operator's election, if there is one, and in those of its controllers.
fn stand(operator: &Operator, setup: &Setup, elections: &mut Elections) -> Result<Leadership> {
    let leadership = match setup.election.as_ref().or(operator.own_election()) {
        Some(election) => elections.stand(election)?,
        None => Leadership::unelected(),
    };
    for election in operator.controllers().iter().filter_map(|controller| controller.election.as_ref()) {
        elections.stand(election)?;
    }
    Ok(leadership)
}
