//! Takes part in an election until it is stopped (client-go: `tools/leaderelection`, `LeaderElector`).

use crate::clock::Clock;
use crate::leader::lease::{Lock, News, Observed};
use crate::leader::{Election, JITTER, Leadership};
use crate::{Error, Metrics};
use kube::Client;
use std::{
    hash::{DefaultHasher, Hash, Hasher},
    panic::{AssertUnwindSafe, catch_unwind},
};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until, timeout_at},
};
use tokio_util::sync::CancellationToken;

/// A candidate.
pub(crate) struct Elector {
    election: Election,
    lock: Lock,
    leadership: Leadership,
    metrics: Metrics,
    observed: Option<Observed>,
    /// Whether the Lease may be ours: it was asked for.
    claimed: bool,
    /// When the last renewal that succeeded was sent.
    sent: Instant,
    attempts: u64,
}

impl Elector {
    pub(crate) fn new(election: &Election, client: Client, operator: &str, metrics: &Metrics, clock: Clock) -> Elector {
        let lock = Lock::new(client, election.namespace.as_deref(), &election.lease, operator, clock);
        metrics.leads(&election.lease, false);
        Elector {
            leadership: Leadership::of(election),
            election: election.clone(),
            lock,
            metrics: metrics.clone(),
            observed: None,
            claimed: false,
            sent: Instant::now(),
            attempts: 0,
        }
    }

    pub(crate) fn leadership(&self) -> &Leadership {
        &self.leadership
    }

    /// Stands in one more election by the same Lease: it is the same one, and its callbacks are called, too.
    pub(crate) fn join(&mut self, other: &Election) -> crate::Result<()> {
        self.election.join(other)
    }

    /// Stands, leads, stands again, until `stop`; then gives the Lease back if it is held.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        loop {
            let stopped = tokio::select! {
                biased;
                () = stop.cancelled() => true,
                () = self.acquire() => false,
            };
            if stopped {
                break;
            }
            self.begin();
            let stopped = tokio::select! {
                biased;
                () = stop.cancelled() => true,
                () = self.renew() => false,
            };
            self.end();
            if stopped {
                break;
            }
        }
        self.release().await;
    }

    async fn acquire(&mut self) {
        let (mut news, _watch) = self.lock.news();
        loop {
            let limit = Instant::now() + self.election.renew_deadline / 2;
            match timeout_at(limit, self.attempt()).await {
                Ok(Ok(true)) if self.leadership.fence().is_open() => return,
                Ok(Ok(_)) => {}
                Ok(Err(error)) => self.complain("the lease was not acquired", &error.into()),
                Err(_) => self.complain("the lease was not acquired", &Error::from("the API server is silent")),
            }
            self.wait(&mut news).await;
        }
    }

    /// Waits for the next attempt: the retry period with jitter, or until the Lease runs out, is released or is gone.
    async fn wait(&mut self, news: &mut mpsc::Receiver<News>) {
        let retry = Instant::now() + self.election.retry_period.mul_f64(1.0 + JITTER * self.random());
        loop {
            let now = Instant::now();
            let expiry = self.observed.as_ref().map(Observed::expires).filter(|expiry| *expiry > now);
            tokio::select! {
                () = sleep_until(expiry.map_or(retry, |expiry| expiry.min(retry))) => return,
                Some(news) = news.recv() => match news {
                    // A watch may lag behind what was read.
                    News::Seen(lease) if self.observed.as_ref().is_some_and(|seen| seen.is_after(&lease)) => {}
                    News::Seen(lease) => {
                        self.observe(*lease);
                        if self.observed.as_ref().is_some_and(|observed| observed.holder().is_empty()) {
                            return;
                        }
                    }
                    News::Gone => return,
                }
            }
        }
    }

    /// Renews until that has failed for too long, or another candidate holds the Lease.
    async fn renew(&mut self) {
        loop {
            sleep_until(self.sent + self.election.retry_period).await;
            let deadline = self.sent + self.election.renew_deadline;
            loop {
                let limit = deadline.min(Instant::now() + self.election.renew_deadline / 2);
                match timeout_at(limit, self.attempt()).await {
                    Ok(Ok(true)) => break,
                    Ok(Ok(false)) => return,
                    Ok(Err(error)) => self.complain("the lease was not renewed", &error.into()),
                    Err(_) => self.complain("the lease was not renewed", &Error::from("the API server is silent")),
                }
                sleep_until(deadline.min(Instant::now() + self.election.retry_period)).await;
                if Instant::now() >= deadline {
                    return;
                }
            }
        }
    }

    /// Tries once to take or keep the Lease; whether it is held (client-go: `tryAcquireOrRenew`).
    ///
    /// A deleted Lease is created again by its holder. Others, unlike client-go's, wait until it would have run out: they
    /// cannot know whether the holder has noticed.
    async fn attempt(&mut self) -> kube::Result<bool> {
        self.attempts += 1;
        let leads = self.leadership.is_leading();
        if leads && let Some(observed) = self.observed.clone() {
            match self.hold(&observed).await {
                // It was changed or deleted, or the last answer was lost: it is read again.
                Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) => {}
                held => return held,
            }
        }
        let found = self.lock.api.get_opt(&self.lock.name).await?;
        let found = found.map(|lease| self.observe(lease));
        let ours = |seen: &Observed| seen.holder() == self.election.identity;
        let taken = |seen: &Observed| !seen.holder().is_empty() && Instant::now() < seen.expires();
        if found
            .as_ref()
            .or(self.observed.as_ref())
            .is_some_and(|seen| !ours(seen) && (leads || taken(seen)))
        {
            return Ok(false);
        }
        let held = match found {
            Some(seen) => self.hold(&seen).await,
            None => self.create().await,
        };
        match held {
            // Another candidate was faster.
            Err(kube::Error::Api(status)) if status.code == 409 && !leads => Ok(false),
            held => held,
        }
    }

    async fn hold(&mut self, seen: &Observed) -> kube::Result<bool> {
        let sent = self.claim();
        let held = self.lock.hold(&seen.lease, &self.election.identity, self.election.lease_duration);
        let lease = held.await?;
        Ok(self.held(sent, lease))
    }

    async fn create(&mut self) -> kube::Result<bool> {
        let sent = self.claim();
        let lease = self.lock.create(&self.election.identity, self.election.lease_duration).await?;
        Ok(self.held(sent, lease))
    }

    fn claim(&mut self) -> Instant {
        self.claimed = true;
        Instant::now()
    }

    /// Others count from when they see the renewal, which is after it was sent: so from then on this process may write.
    fn held(&mut self, sent: Instant, lease: k8s_openapi::api::coordination::v1::Lease) -> bool {
        self.sent = sent;
        self.leadership.renewed(sent, sent + self.election.renew_deadline);
        self.observe(lease);
        true
    }

    fn observe(&mut self, lease: k8s_openapi::api::coordination::v1::Lease) -> Observed {
        let observed = Observed::update(self.observed.take(), lease);
        self.observed = Some(observed.clone());
        let leader = observed.holder();
        if self.leadership.seen(leader) && !leader.is_empty() {
            tracing::info!(lease = self.lock.name, leader, "new leader");
            self.metrics.leader_changed(&self.election.lease);
            self.election.new_leader.iter().for_each(|call| guarded(|| call(leader)));
        }
        observed
    }

    fn begin(&self) {
        tracing::info!(lease = self.lock.name, identity = self.election.identity, "leading");
        self.metrics.leads(&self.election.lease, true);
        self.leadership.begin();
        self.election.started.iter().for_each(|call| guarded(|| call()));
    }

    fn end(&self) {
        self.leadership.end();
        tracing::info!(lease = self.lock.name, identity = self.election.identity, "stopped leading");
        self.metrics.leads(&self.election.lease, false);
        self.election.stopped.iter().for_each(|call| guarded(|| call()));
    }

    /// Gives the Lease back. A renewal that was under way may come in between: then it is tried again.
    async fn release(&mut self) {
        if !self.claimed {
            return;
        }
        let deadline = Instant::now() + self.election.renew_deadline;
        let released = timeout_at(deadline, async {
            loop {
                let Some(lease) = self.lock.api.get_opt(&self.lock.name).await? else {
                    return Ok(());
                };
                if self.observe(lease.clone()).holder() != self.election.identity {
                    return Ok(());
                }
                match self.lock.release(&lease).await {
                    Err(kube::Error::Api(status)) if status.code == 409 => {}
                    released => return released.map(drop),
                }
            }
        });
        match released.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => self.complain("the lease was not released", &error.into()),
            Err(_) => self.complain("the lease was not released", &Error::from("the API server is silent")),
        }
    }

    fn complain(&self, what: &'static str, error: &Error) {
        tracing::warn!(lease = self.lock.name, %error, "{what}");
    }

    /// Between 0 and 1, another for each candidate and attempt.
    fn random(&self) -> f64 {
        let mut hasher = DefaultHasher::new();
        (&self.election.identity, self.attempts).hash(&mut hasher);
        (hasher.finish() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Authors' code, which must not end the election.
fn guarded(call: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(call)).is_err() {
        tracing::error!("a callback of the election panicked");
    }
}
