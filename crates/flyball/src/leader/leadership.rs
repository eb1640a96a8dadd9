//! Whether this process leads, and the tasks that wait for a change of it.

use crate::leader::Election;
use crate::leader::fence::Fence;
use std::{fmt, sync::Arc, time::Duration};
use tokio::{sync::watch, time::Instant};

/// Whether this process leads an election, and who does.
#[derive(Clone)]
pub struct Leadership {
    inside: Arc<Inside>,
}

struct Inside {
    /// The Lease's name; none where there is no election and every replica leads.
    election: Option<String>,
    identity: String,
    lease_duration: Duration,
    fence: Fence,
    state: watch::Sender<LeaderState>,
}

#[derive(Clone, Debug, Default)]
struct LeaderState {
    leads: bool,
    /// How often this process has begun to lead.
    term: u64,
    leader: Option<String>,
    /// When the last renewal that succeeded was sent.
    renewed: Option<Instant>,
}

impl Leadership {
    /// Leads always: there is no election.
    pub(crate) fn unelected() -> Leadership {
        let state = LeaderState { leads: true, ..LeaderState::default() };
        Leadership::new(None, String::new(), Duration::ZERO, Fence::open(), state)
    }

    /// Follows, until told otherwise.
    pub(super) fn of(election: &Election) -> Leadership {
        let (name, identity) = (Some(election.lease.clone()), election.identity.clone());
        Leadership::new(name, identity, election.lease_duration, Fence::closed(), LeaderState::default())
    }

    fn new(
        election: Option<String>,
        identity: String,
        lease_duration: Duration,
        fence: Fence,
        state: LeaderState,
    ) -> Leadership {
        let state = watch::Sender::new(state);
        let inside = Inside { election, identity, lease_duration, fence, state };
        Leadership { inside: Arc::new(inside) }
    }

    /// The Lease's name, if there is an election.
    pub fn election(&self) -> Option<&str> {
        self.inside.election.as_deref()
    }

    /// Who this process is in the election.
    pub fn identity(&self) -> &str {
        &self.inside.identity
    }

    /// Whether this process leads now, and may write.
    pub fn is_leading(&self) -> bool {
        self.inside.fence.is_open() && self.inside.state.borrow().leads
    }

    /// The identity that was last seen to lead.
    pub fn leader(&self) -> Option<String> {
        self.inside.state.borrow().leader.clone()
    }

    /// Fails when this process believes to lead although its lease ran out more than `tolerance` ago.
    ///
    /// It should have given up before; whatever keeps it from doing so, a deadlock for example, a restart ends
    /// (client-go: `LeaderElector.Check`).
    pub fn check(&self, tolerance: Duration) -> Result<(), String> {
        let state = self.inside.state.borrow();
        let limit = self.inside.lease_duration + tolerance;
        match (&self.inside.election, state.renewed) {
            (Some(election), Some(renewed)) if state.leads && renewed.elapsed() > limit => {
                Err(format!("the lease {election} was last renewed {} s ago", renewed.elapsed().as_secs()))
            }
            _ => Ok(()),
        }
    }

    /// Waits until this process leads; says in which term.
    pub(crate) async fn begun(&self) -> u64 {
        let mut state = self.inside.state.subscribe();
        let state = state.wait_for(|state| state.leads).await;
        state.expect("the sender is ours").term
    }

    /// Waits until this process stops leading, or leads in another term.
    pub(crate) async fn lost(&self, term: u64) {
        let mut state = self.inside.state.subscribe();
        let lost = state.wait_for(|state| !state.leads || state.term != term).await;
        lost.expect("the sender is ours");
    }

    /// Waits until another process is seen to lead.
    pub(crate) async fn led_by_another(&self) {
        let mut state = self.inside.state.subscribe();
        let other = |leader: &String| *leader != self.inside.identity;
        let led = state.wait_for(|state| state.leader.as_ref().is_some_and(other)).await;
        led.expect("the sender is ours");
    }

    pub(super) fn fence(&self) -> &Fence {
        &self.inside.fence
    }

    /// A renewal that was sent at `sent` succeeded: this process may write until `until`.
    pub(super) fn renewed(&self, sent: Instant, until: Instant) {
        self.inside.fence.open_until(until);
        self.inside.state.send_modify(|state| state.renewed = Some(sent));
    }

    pub(super) fn begin(&self) {
        self.inside.state.send_modify(|state| {
            state.leads = true;
            state.term += 1;
        });
    }

    /// Closes the fence before it notifies.
    pub(super) fn end(&self) {
        self.inside.fence.close();
        self.inside.state.send_modify(|state| state.leads = false);
    }

    /// Says who leads; whether that is news.
    pub(super) fn seen(&self, leader: &str) -> bool {
        let leader = Some(leader).filter(|leader| !leader.is_empty()).map(str::to_owned);
        let news = self.inside.state.borrow().leader != leader;
        self.inside.state.send_modify(|state| state.leader = leader);
        news
    }
}

impl fmt::Debug for Leadership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let leads = if self.is_leading() { "leads" } else { "follows" };
        write!(f, "Leadership: {leads} in {:?}", self.inside.election)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::advance;

    #[tokio::test(start_paused = true)]
    async fn a_lease_that_ran_out_long_ago_fails_the_check_of_its_leader_only() {
        let (leadership, second) = (Leadership::of(&Election::new("a")), Duration::from_secs(1));
        leadership.renewed(Instant::now(), Instant::now() + 10 * second);
        leadership.begin();
        advance(30 * second).await;
        assert!(!leadership.is_leading(), "the fence closes by itself");
        assert_eq!(leadership.check(20 * second), Ok(()));
        advance(6 * second).await;
        assert!(leadership.check(20 * second).unwrap_err().contains("last renewed 36 s ago"));
        leadership.end();
        assert_eq!(leadership.check(20 * second), Ok(()));
        assert_eq!(Leadership::unelected().check(second), Ok(()));
    }
}
