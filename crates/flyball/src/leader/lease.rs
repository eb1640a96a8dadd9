//! The Lease that an election is about: reading, writing and watching it.

use crate::Backoff;
use crate::clock::Clock;
use futures::StreamExt;
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube::{
    Api, Client,
    api::{PostParams, WatchEvent, WatchParams},
};
use std::time::Duration;
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{Instant, sleep},
};

/// Where a Lease is, and as whom it is written.
#[derive(Clone)]
pub(super) struct Lock {
    pub(super) api: Api<Lease>,
    pub(super) name: String,
    pub(super) manager: String,
    pub(super) clock: Clock,
}

/// A Lease as it was seen, and when.
#[derive(Clone, Debug)]
pub(super) struct Observed {
    pub(super) lease: Lease,
    /// When its record was first seen to be so, by this process's clock: others' clocks do not matter.
    pub(super) at: Instant,
}

/// What the watch of a Lease tells.
pub(super) enum News {
    Seen(Box<Lease>),
    Gone,
}

impl Lock {
    pub(super) fn new(client: Client, namespace: Option<&str>, name: &str, manager: &str, clock: Clock) -> Lock {
        let namespace = namespace.unwrap_or(client.default_namespace()).to_owned();
        Lock {
            api: Api::namespaced(client, &namespace),
            name: name.to_owned(),
            manager: manager.to_owned(),
            clock,
        }
    }

    pub(super) async fn create(&self, identity: &str, duration: Duration) -> kube::Result<Lease> {
        let mut lease = Lease::default();
        lease.metadata.name = Some(self.name.clone());
        lease.spec = Some(self.held(LeaseSpec::default(), identity, duration));
        self.api.create(&self.params(), &lease).await
    }

    /// Takes or renews a Lease, provided that it was not changed since it was seen.
    pub(super) async fn hold(&self, seen: &Lease, identity: &str, duration: Duration) -> kube::Result<Lease> {
        let mut lease = seen.clone();
        lease.spec = Some(self.held(lease.spec.unwrap_or_default(), identity, duration));
        self.api.replace(&self.name, &self.params(), &lease).await
    }

    /// Releases a Lease as client-go does: without a holder, for one second.
    pub(super) async fn release(&self, seen: &Lease) -> kube::Result<Lease> {
        let (mut lease, now) = (seen.clone(), self.now());
        let spec = lease.spec.get_or_insert_default();
        spec.holder_identity = Some(String::new());
        spec.lease_duration_seconds = Some(1);
        spec.renew_time = Some(now.clone());
        spec.acquire_time = Some(now);
        self.api.replace(&self.name, &self.params(), &lease).await
    }

    /// Watches the Lease until the answer is dropped. The watch is an aid: candidates also poll.
    pub(super) fn news(&self) -> (mpsc::Receiver<News>, JoinSet<()>) {
        let (sender, receiver) = mpsc::channel(16);
        let lock = self.clone();
        let follow = async move {
            let mut refusals = 0;
            while !sender.is_closed() {
                let watched = lock.watch(&sender).await;
                // A server that does not want it is asked ever less; one that was away is wanted back at once.
                refusals = match &watched {
                    Err(kube::Error::Api(status)) if (400..500).contains(&status.code) => refusals + 1,
                    _ => 0,
                };
                if let Err(error) = watched {
                    tracing::debug!(lease = lock.name, %error, "the lease is not watched");
                }
                sleep(Backoff::WATCH.delay(refusals, &lock.name)).await;
            }
        };
        (receiver, JoinSet::from_iter([follow]))
    }

    async fn watch(&self, sender: &mpsc::Sender<News>) -> kube::Result<()> {
        let params = WatchParams::default().fields(&format!("metadata.name={}", self.name)).timeout(290);
        let mut events = self.api.watch(&params, "0").await?.boxed();
        while let Some(event) = events.next().await {
            let news = match event? {
                WatchEvent::Added(lease) | WatchEvent::Modified(lease) => News::Seen(Box::new(lease)),
                WatchEvent::Deleted(_) => News::Gone,
                WatchEvent::Bookmark(_) => continue,
                WatchEvent::Error(status) => return Err(kube::Error::Api(status)),
            };
            if sender.send(news).await.is_err() {
                break;
            }
        }
        Ok(())
    }

    fn held(&self, seen: LeaseSpec, identity: &str, duration: Duration) -> LeaseSpec {
        let (now, keeps) = (self.now(), seen.holder_identity.as_deref() == Some(identity));
        let transitions = seen.lease_transitions.unwrap_or_default();
        let first = seen.holder_identity.is_none() && seen.lease_transitions.is_none();
        LeaseSpec {
            holder_identity: Some(identity.to_owned()),
            lease_duration_seconds: Some(whole_seconds(duration)),
            acquire_time: if keeps { seen.acquire_time } else { Some(now.clone()) },
            renew_time: Some(now),
            lease_transitions: Some(if keeps || first { transitions } else { transitions + 1 }),
            ..seen
        }
    }

    fn params(&self) -> PostParams {
        PostParams {
            field_manager: Some(self.manager.clone()),
            ..PostParams::default()
        }
    }

    fn now(&self) -> MicroTime {
        MicroTime(self.clock.now())
    }
}

impl Observed {
    /// Takes what is seen of the Lease: its record is new, or only seen again.
    pub(super) fn update(before: Option<Observed>, lease: Lease) -> Observed {
        match before {
            Some(before) if before.lease.spec == lease.spec => Observed { lease, at: before.at },
            _ => Observed { lease, at: Instant::now() },
        }
    }

    /// Whether a Lease is an earlier version of the one that was seen.
    pub(super) fn is_after(&self, lease: &Lease) -> bool {
        version(&self.lease) > version(lease)
    }

    pub(super) fn holder(&self) -> &str {
        let spec = self.lease.spec.as_ref();
        spec.and_then(|spec| spec.holder_identity.as_deref()).unwrap_or_default()
    }

    /// When the Lease runs out, unless it is renewed: the holder says how long it holds, not the candidate.
    pub(super) fn expires(&self) -> Instant {
        let seconds = self.lease.spec.as_ref().and_then(|spec| spec.lease_duration_seconds).unwrap_or_default();
        self.at + Duration::from_secs(seconds.max(0).unsigned_abs().into())
    }
}

/// A part of a second counts as one: others must not take over before the leader has given up.
fn whole_seconds(duration: Duration) -> i32 {
    i32::try_from(duration.as_millis().div_ceil(1_000)).unwrap_or(i32::MAX)
}

fn version(lease: &Lease) -> u64 {
    let version = lease.metadata.resource_version.as_deref();
    version.and_then(|version| version.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(version: &str, holder: &str) -> Lease {
        let mut lease = Lease::default();
        lease.metadata.resource_version = Some(version.into());
        lease.spec = Some(LeaseSpec { holder_identity: Some(holder.into()), ..LeaseSpec::default() });
        lease
    }

    /// As after a restore of the API server's store.
    #[test]
    fn what_is_read_of_a_lease_is_believed_also_when_its_version_went_back() {
        let before = Observed::update(None, lease("10", "ada"));
        assert!(before.is_after(&lease("5", "bob")) && !before.is_after(&lease("10", "ada")));
        let after = Observed::update(Some(before), lease("5", "bob"));
        assert_eq!(after.holder(), "bob");
    }

    #[test]
    fn a_part_of_a_second_counts_as_one() {
        let seconds = |millis| whole_seconds(Duration::from_millis(millis));
        assert_eq!((seconds(15_000), seconds(1_500), seconds(1_001)), (15, 2, 2));
    }
}
