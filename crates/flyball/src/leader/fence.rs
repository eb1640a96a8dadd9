//! A fence around a client: writes pass while this process leads and its lease has time left, by the clock.

use crate::Metrics;
use crate::cache::client::{ObservedClient, as_client};
use crate::leader::Leadership;
use http::{Method, Request, Response};
use kube::{Client, client::Body};
use std::{future::poll_fn, pin::pin, sync::Arc, task::Poll, time::Duration};
use tokio::{
    sync::watch,
    time::{Instant, sleep_until, timeout},
};

/// How long the API server may take to answer a write. Its own deadline is 60 seconds.
const WRITE_TIMEOUT: Duration = Duration::from_secs(65);

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
#[error("this process stopped leading {0}: the write was abandoned")]
struct StoppedLeading(String);

/// A write may or may not have taken effect.
#[derive(Debug, thiserror::Error)]
#[error("the API server did not answer the write within {WRITE_TIMEOUT:?}")]
struct Unanswered;

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

    /// Runs `work` while the fence is open, and drops it once it is closed.
    ///
    /// The clock is read before each poll: after a suspension of the process, a task may run before any timer has fired.
    pub(super) async fn guard<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let (mut closed, mut work) = (pin!(self.closed_again()), pin!(work));
        poll_fn(|cx| {
            if !self.is_open() || closed.as_mut().poll(cx).is_ready() {
                return Poll::Ready(None);
            }
            work.as_mut().poll(cx).map(Some)
        })
        .await
    }

    /// Waits until it is closed.
    async fn closed_again(&self) {
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

/// A client that writes only while this process leads; reads always pass.
///
/// A write is refused when it is begun after the lease's time, and abandoned when it is in flight at that time; others lead
/// only when the time between renew deadline and lease duration has passed as well.
pub(crate) struct FencedClient {
    pub(crate) reading: ObservedClient,
    pub(crate) writing: ObservedClient,
    pub(crate) leadership: Leadership,
    pub(crate) metrics: Metrics,
}

impl FencedClient {
    pub(crate) async fn send(&self, request: Request<Body>) -> kube::Result<Response<Body>> {
        if matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS) {
            return self.reading.send(request).await;
        }
        // The answer to a write is one object: with its body read here, the timeout covers all of it.
        let write = async {
            let (head, body) = self.write(request).await?.into_parts();
            Ok(Response::from_parts(head, Body::from(body.collect_bytes().await?)))
        };
        let answer = timeout(WRITE_TIMEOUT, write).await;
        answer.unwrap_or_else(|_| Err(kube::Error::Service(Box::new(Unanswered))))
    }

    async fn write(&self, request: Request<Body>) -> kube::Result<Response<Body>> {
        let Some(election) = self.leadership.election() else {
            return self.reading.send(request).await;
        };
        if !self.leadership.fence().is_open() {
            self.metrics.fenced(election);
            return Err(kube::Error::Service(Box::new(NotLeading(election.to_owned()))));
        }
        let answer = self.leadership.fence().guard(self.writing.send(request)).await;
        answer.unwrap_or_else(|| {
            self.metrics.fenced(election);
            Err(kube::Error::Service(Box::new(StoppedLeading(election.to_owned()))))
        })
    }

    /// The same as kube's own type, which puts one more task between caller and server.
    pub(crate) fn to_client(self: &Arc<FencedClient>) -> Client {
        let send = |this: Arc<FencedClient>, request| async move { this.send(request).await };
        as_client(self.clone(), self.reading.namespace(), send)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn guarded_work_is_not_polled_once_the_fence_is_closed() {
        let fence = Fence::closed();
        fence.open_until(Instant::now() + Duration::from_secs(10));
        let mut polls = 0;
        let work = poll_fn(|cx| {
            polls += 1;
            fence.close();
            cx.waker().wake_by_ref();
            Poll::<()>::Pending
        });
        assert_eq!(fence.guard(work).await, None);
        assert_eq!(polls, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn guarded_work_ends_at_the_time_of_the_fence() {
        let (fence, started, second) = (Fence::closed(), Instant::now(), Duration::from_secs(1));
        fence.open_until(started + 10 * second);
        assert_eq!(fence.guard(async { 7 }).await, Some(7));
        let renew = async {
            tokio::time::sleep(5 * second).await;
            fence.open_until(started + 15 * second);
        };
        let (ended, ()) = tokio::join!(fence.guard(std::future::pending::<()>()), renew);
        assert_eq!((ended, started.elapsed()), (None, 15 * second));
    }
}
