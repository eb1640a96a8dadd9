//! An operator at work, until it is stopped.

use crate::{
    Backoff, Cache, Controller, Error, Events, Metrics, Operator, Result, client, clock::Clock, crds, event, metrics,
    operator::Task, runner::panicked, shared::Shared,
};
use futures::FutureExt;
use kube::Client;
use std::{
    mem::take,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex},
};
use tokio::{task::JoinSet, time::sleep};
use tokio_util::sync::CancellationToken;

/// An operator that was started. Dropping it ends everything at once, as a crash would.
#[must_use = "an operator ends when it is dropped"]
pub struct Running {
    pub(crate) operator: Arc<Shared>,
    publisher: JoinSet<()>,
}

impl Running {
    pub(crate) async fn start(operator: &Operator, client: Client) -> Result<Running> {
        operator.check()?;
        crds::install(&client, operator.name(), operator.crds()).await?;
        let cache = Cache::default();
        let metrics = operator.own_metrics();
        let client = client::observed(metrics::measured(client, metrics.clone()), cache.clone());
        let (recorder, publisher) = event::channel(operator.event_policy());
        let clock = Clock::start();
        let shared = Arc::new(Shared {
            name: operator.name().to_owned(),
            client: client.clone(),
            cache,
            recorder,
            metrics: metrics.clone(),
            clock,
            stop: CancellationToken::new(),
            running: Mutex::default(),
            controls: Mutex::default(),
        });
        metrics.observe(&shared);
        let publisher = JoinSet::from_iter([publisher.run(client, operator.name().to_owned(), clock)]);
        // Held until all controllers are connected, so that each kind is followed once, as fully as any of them needs.
        let _followed = shared.follow(operator.controllers().iter().flat_map(Controller::kinds));
        for controller in operator.controllers() {
            shared.control(controller.clone(), shared.stop.clone());
        }
        for task in operator.tasks() {
            shared.spawn(repeat(task.clone(), shared.client.clone(), shared.stop.clone()));
        }
        Ok(Running { operator: shared, publisher })
    }

    /// What the operator counts and measures.
    pub fn metrics(&self) -> &Metrics {
        &self.operator.metrics
    }

    /// What the operator remembers of its events.
    pub fn events(&self) -> &Events {
        self.operator.recorder.events()
    }

    /// Stops: begins no reconcile, lets those under way end, publishes what events are left.
    pub async fn stop(mut self) {
        self.operator.stop.cancel();
        let mut running = self.take();
        while running.join_next().await.is_some() {}
        let mut publisher = take(&mut self.publisher);
        drop(self);
        while publisher.join_next().await.is_some() {}
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

/// Runs a task until it succeeds or is told to stop.
async fn repeat(task: Task, client: Client, stop: CancellationToken) {
    let work = async {
        let mut failures = 0;
        while let Err(error) = attempt(&task, client.clone()).await {
            failures += 1;
            let delay = Backoff::default().delay(failures, &task.name);
            tracing::warn!(task = task.name, failures, retry = ?delay, %error, "task failed");
            sleep(delay).await;
        }
    };
    tokio::select! {
        () = work => {}
        () = stop.cancelled() => {}
    }
}

async fn attempt(task: &Task, client: Client) -> Result<(), Error> {
    let work = AssertUnwindSafe(async { (task.work)(client).await }).catch_unwind();
    work.await.unwrap_or_else(|panic| Err(panicked("task", &*panic)))
}
