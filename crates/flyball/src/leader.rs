//! Leader election: of several replicas one works, the one that holds a Lease. client-go's algorithm, and a fence around the
//! writes of the one that leads.

mod connection;
mod elections;
mod elector;
mod fence;
mod leadership;
mod lease;

pub use connection::Connection;
pub use leadership::Leadership;

pub(crate) use elections::Elections;
pub(crate) use fence::FencedClient;

use crate::{Error, Result};
use elector::Elector;
use std::{fmt, sync::Arc, time::Duration};

/// client-go's times.
pub(crate) const LEASE_DURATION: Duration = Duration::from_secs(15);
pub(crate) const RENEW_DEADLINE: Duration = Duration::from_secs(10);
pub(crate) const RETRY_PERIOD: Duration = Duration::from_secs(2);

/// client-go's `JitterFactor`: candidates wait up to this much longer than the retry period.
const JITTER: f64 = 1.2;

/// An election to stand in: a Lease, and how long its holder may be silent.
///
/// The times are client-go's unless set. The leader renews every 2 s (`retry_period`), gives up once it has not succeeded for
/// 10 s (`renew_deadline`), and others take over after 15 s without a renewal (`lease_duration`), each by its own monotonic clock. What
/// lies between the last two is left for requests that are on their way when the leader gives up.
///
/// A leader that stops in order waits for its reconciles, then releases the Lease; the others watch it and take over at once.
/// One that loses the Lease aborts its reconciles, sends no further write, and becomes a candidate again.
///
/// Callbacks run in the task that renews the Lease: spawn a task for what takes long.
/// Elections by the same Lease are one, under the identity of the first, and all of their callbacks are called.
#[derive(Clone)]
pub struct Election {
    pub(crate) lease: String,
    pub(crate) namespace: Option<String>,
    pub(crate) identity: String,
    pub(crate) lease_duration: Duration,
    pub(crate) renew_deadline: Duration,
    pub(crate) retry_period: Duration,
    started: Vec<Call>,
    stopped: Vec<Call>,
    new_leader: Vec<LeaderCallback>,
}

type LeaderCallback = Arc<dyn Fn(&str) + Send + Sync>;
type Call = Arc<dyn Fn() + Send + Sync>;

impl Election {
    /// An election by the Lease of that name, in the namespace that the operator runs in.
    pub fn new(lease: impl Into<String>) -> Election {
        Election {
            lease: lease.into(),
            namespace: None,
            identity: identity(),
            lease_duration: LEASE_DURATION,
            renew_deadline: RENEW_DEADLINE,
            retry_period: RETRY_PERIOD,
            started: Vec::new(),
            stopped: Vec::new(),
            new_leader: Vec::new(),
        }
    }

    /// The election that a configuration asks for, if it does.
    #[cfg(feature = "program")]
    pub(crate) fn configured(operator: &str, config: &crate::config::LeaderElection) -> Option<Election> {
        let name = config.name.as_deref().unwrap_or(operator);
        config.enabled.then(|| Election {
            namespace: config.namespace.clone(),
            lease_duration: config.lease_duration,
            renew_deadline: config.renew_deadline,
            retry_period: config.retry_period,
            ..Election::new(name)
        })
    }

    /// Sets the namespace of the Lease.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Election {
        self.namespace = Some(namespace.into());
        self
    }

    /// Sets the identity of this candidate; the host's name and a random part unless set. No two candidates may have the same.
    pub fn identity(mut self, identity: impl Into<String>) -> Election {
        self.identity = identity.into();
        self
    }

    /// Sets how long others wait after the leader's last renewal. A Lease keeps whole seconds: a part counts as one.
    pub fn lease_duration(mut self, duration: Duration) -> Election {
        self.lease_duration = duration;
        self
    }

    /// Sets how long the leader tries to renew before it gives up.
    pub fn renew_deadline(mut self, deadline: Duration) -> Election {
        self.renew_deadline = deadline;
        self
    }

    /// Sets how long to wait between attempts.
    pub fn retry_period(mut self, period: Duration) -> Election {
        self.retry_period = period;
        self
    }

    /// Calls `started` whenever this process begins to lead.
    pub fn on_started(mut self, started: impl Fn() + Send + Sync + 'static) -> Election {
        self.started.push(Arc::new(started));
        self
    }

    /// Calls `stopped` whenever this process stops leading. Nothing is written by then.
    pub fn on_stopped(mut self, stopped: impl Fn() + Send + Sync + 'static) -> Election {
        self.stopped.push(Arc::new(stopped));
        self
    }

    /// Calls `new_leader` with the leader's identity, when it is first seen and when it changes.
    pub fn on_new_leader(mut self, new_leader: impl Fn(&str) + Send + Sync + 'static) -> Election {
        self.new_leader.push(Arc::new(new_leader));
        self
    }

    /// Takes the callbacks of another election by the same Lease.
    pub(crate) fn join(&mut self, other: &Election) -> Result<()> {
        let times = |election: &Election| (election.lease_duration, election.renew_deadline, election.retry_period);
        if times(self) != times(other) {
            return Err(self.refused("two elections by it differ in their times"));
        }
        add(&mut self.started, &other.started);
        add(&mut self.stopped, &other.stopped);
        add(&mut self.new_leader, &other.new_leader);
        Ok(())
    }

    fn refused(&self, why: &str) -> Error {
        Error::permanent(format!("election by Lease {:?}: {why}", self.lease))
    }

    /// Refuses times with which two could lead at once, or none for long.
    pub(crate) fn check(&self) -> Result<()> {
        let refused = |why: &str| Err(self.refused(why));
        if self.identity.is_empty() {
            return refused("the identity is empty");
        }
        if self.lease_duration < Duration::from_secs(1) {
            return refused("the lease duration must be a second at least: a Lease keeps whole seconds");
        }
        if self.lease_duration <= self.renew_deadline {
            return refused("the lease duration must be longer than the renew deadline");
        }
        if self.retry_period.is_zero() {
            return refused("the retry period must be greater than zero");
        }
        if self.renew_deadline <= self.retry_period.mul_f64(JITTER) {
            return refused("the renew deadline must be longer than 1.2 times the retry period");
        }
        Ok(())
    }
}

impl fmt::Debug for Election {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Election of {} by Lease {}", self.identity, self.lease)
    }
}

/// Adds the callbacks that are not there yet.
fn add<F: ?Sized>(known: &mut Vec<Arc<F>>, others: &[Arc<F>]) {
    for other in others {
        if !known.iter().any(|known| Arc::ptr_eq(known, other)) {
            known.push(other.clone());
        }
    }
}

/// The host's name and a random part: a container that restarts on the same host is another candidate.
fn identity() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let host = host.or_else(|| std::env::var("HOSTNAME").ok());
    let host = host.as_deref().map(str::trim).filter(|host| !host.is_empty()).unwrap_or("localhost");
    format!("{host}_{}", uuid::Uuid::new_v4())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_could_make_two_leaders_are_refused() {
        let (second, election) = (Duration::from_secs(1), Election::new("a"));
        let refusal = |election: Election| election.check().map_or_else(|error| error.to_string(), |()| "none".into());
        assert_eq!(refusal(election.clone()), "none");
        for (election, why) in [
            (election.clone().renew_deadline(15 * second), "longer than the renew deadline"),
            (election.clone().retry_period(9 * second), "longer than 1.2 times the retry period"),
            (election.clone().lease_duration(second / 2), "a second at least"),
            (election.clone().retry_period(Duration::ZERO), "greater than zero"),
            (election.clone().identity(""), "the identity is empty"),
        ] {
            assert!(refusal(election).contains(why), "{why}");
        }
    }

    #[test]
    fn no_two_candidates_are_the_same() {
        assert_ne!(Election::new("a").identity, Election::new("a").identity);
    }
}
