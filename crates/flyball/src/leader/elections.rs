//! The elections that one operator takes part in: its own, and those of single controllers.

use crate::clock::Clock;
use crate::leader::{Election, Elector, Leadership};
use crate::{Cache, Metrics, Result};
use kube::Client;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// The candidates of this process. Dropping it ends them without releasing a Lease, as a crash would.
pub(crate) struct Elections {
    operator: String,
    client: Client,
    cache: Cache,
    metrics: Metrics,
    clock: Clock,
    /// By the namespace of their Lease; each has a candidate until they start.
    stood: Vec<(String, Leadership)>,
    candidates: Vec<Elector>,
    running: JoinSet<()>,
    release: CancellationToken,
}

impl Elections {
    pub(crate) fn new(operator: &str, client: Client, cache: Cache, metrics: Metrics, clock: Clock) -> Elections {
        Elections {
            operator: operator.to_owned(),
            client,
            cache,
            metrics,
            clock,
            stood: Vec::new(),
            candidates: Vec::new(),
            running: JoinSet::new(),
            release: CancellationToken::new(),
        }
    }

    /// Stands in an election; those by the same Lease are one.
    pub(crate) fn stand(&mut self, election: &Election) -> Result<Leadership> {
        election.check()?;
        let namespace = election.namespace.as_deref().unwrap_or(self.client.default_namespace()).to_owned();
        let same = |(known, leadership): &(String, Leadership)| {
            *known == namespace && leadership.election() == Some(&election.lease)
        };
        if let Some(index) = self.stood.iter().position(same) {
            self.candidates[index].join(election)?;
            return Ok(self.stood[index].1.clone());
        }
        let elector = Elector::new(election, self.client.clone(), &self.operator, &self.metrics, self.clock);
        let leadership = elector.leadership().clone();
        self.stood.push((namespace, leadership.clone()));
        self.candidates.push(elector);
        Ok(leadership)
    }

    /// Whether this process leads each election.
    pub(crate) fn leaderships(&self) -> Vec<Leadership> {
        self.stood.iter().map(|(_, leadership)| leadership.clone()).collect()
    }

    /// Begins: the caches are filled first, as far as that works, so that a new leader works at once.
    pub(crate) fn start(&mut self) {
        for elector in std::mem::take(&mut self.candidates) {
            let (cache, release) = (self.cache.clone(), self.release.clone());
            self.running.spawn(async move {
                tokio::select! {
                    () = warm(&cache) => elector.run(release).await,
                    () = release.cancelled() => {}
                }
            });
        }
    }

    /// Gives back what is held.
    pub(crate) async fn release(mut self) {
        self.release.cancel();
        while self.running.join_next().await.is_some() {}
    }
}

async fn warm(cache: &Cache) {
    for mirror in cache.mirrors() {
        if let Err(error) = mirror.ready().await {
            tracing::warn!(%error, "a cache is empty as the election begins");
        }
    }
}
