//! A fence around a client: writes pass while this process leads, and until the lease's time is up, whatever else it believes.

use super::Leadership;
use crate::Metrics;
use http::{Method, Request};
use kube::{Client, client::Body};
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

/// Open for ever, until a time, or not at all. The clock decides, not a task that may sleep too long.
#[derive(Debug)]
pub(super) struct Fence {
    until: watch::Sender<Until>,
}

#[derive(Clone, Copy, Debug)]
enum Until {
    Forever,
    Time(Instant),
    Closed,
}

/// A write was not sent.
#[derive(Debug, thiserror::Error)]
#[error("this process does not lead {0}: the write was not sent")]
struct NotLeading(String);

/// A write was under way when its time was up.
#[derive(Debug, thiserror::Error)]
#[error("this process leads {0} no more: the write was abandoned")]
struct LeadsNoMore(String);

impl Fence {
    pub(super) fn open() -> Fence {
        Fence { until: watch::Sender::new(Until::Forever) }
    }

    pub(super) fn closed() -> Fence {
        Fence { until: watch::Sender::new(Until::Closed) }
    }

    pub(super) fn open_until(&self, until: Instant) {
        self.until.send_replace(Until::Time(until));
    }

    pub(super) fn close(&self) {
        self.until.send_replace(Until::Closed);
    }

    pub(super) fn is_open(&self) -> bool {
        match *self.until.borrow() {
            Until::Forever => true,
            Until::Time(until) => Instant::now() < until,
            Until::Closed => false,
        }
    }

    /// Waits until it is closed.
    pub(super) async fn passed(&self) {
        let mut changes = self.until.subscribe();
        loop {
            let until = *changes.borrow_and_update();
            let time_is_up = async {
                match until {
                    Until::Forever => std::future::pending().await,
                    Until::Time(until) => sleep_until(until).await,
                    Until::Closed => {}
                }
            };
            tokio::select! {
                () = time_is_up => return,
                changed = changes.changed() => changed.expect("the sender is ours"),
            }
        }
    }
}

/// A client that writes only while this process leads, by `writing`; what it reads, it reads by `client`.
///
/// A write is refused when it is begun after the lease's time, and abandoned when it is under way at that time; others lead
/// only when the time between renew deadline and lease duration has passed as well. Reads always pass.
pub(crate) fn fenced(client: Client, writing: Client, leadership: &Leadership, metrics: &Metrics) -> Client {
    let Some(election) = leadership.election().map(str::to_owned) else {
        return client;
    };
    let namespace = client.default_namespace().to_owned();
    let (leadership, metrics) = (leadership.clone(), metrics.clone());
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, writing, election) = (client.clone(), writing.clone(), election.clone());
        let (leadership, metrics) = (leadership.clone(), metrics.clone());
        async move {
            if matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS) {
                return client.send(request).await;
            }
            if !leadership.fence().is_open() {
                metrics.fenced(&election);
                return Err(kube::Error::Service(Box::new(NotLeading(election))));
            }
            tokio::select! {
                biased;
                () = leadership.fence().passed() => {
                    metrics.fenced(&election);
                    Err(kube::Error::Service(Box::new(LeadsNoMore(election))))
                }
                answer = writing.send(request) => answer,
            }
        }
    });
    Client::new(service, namespace)
}
