//! Whether a connection is used: requests in flight, and how long ago the last one ended.

use bytes::Buf;
use http_body::{Body, Frame, SizeHint};
use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};
use tokio::time::{Instant, sleep_until};

/// The requests of one connection; clones share them.
#[derive(Clone, Debug)]
pub struct Activity(Arc<State>);

#[derive(Debug)]
struct State {
    opened: Instant,
    in_flight: AtomicUsize,
    /// When the last request ended, in milliseconds after `opened`; `u64::MAX` before the first one ended.
    last_end: AtomicU64,
}

/// A request that is in flight until this is dropped.
#[derive(Debug)]
pub struct InFlight(Arc<State>);

impl Activity {
    /// A connection that was opened now and has no request yet.
    pub fn start() -> Activity {
        Activity(Arc::new(State {
            opened: Instant::now(),
            in_flight: AtomicUsize::new(0),
            last_end: AtomicU64::new(u64::MAX),
        }))
    }

    /// Counts a request as in flight.
    pub fn begin(&self) -> InFlight {
        self.0.in_flight.fetch_add(1, Ordering::Relaxed);
        InFlight(self.0.clone())
    }

    /// Whether no request is in flight.
    pub fn is_idle(&self) -> bool {
        self.0.in_flight.load(Ordering::Relaxed) == 0
    }

    /// Completes as soon as the connection has been idle for too long.
    pub async fn idle(&self, limits: IdleLimits) {
        let mut deadline = self.0.opened + limits.first_request;
        loop {
            sleep_until(deadline).await;
            let now = Instant::now();
            deadline = match self.0.last_end.load(Ordering::Relaxed) {
                _ if !self.is_idle() => now + limits.keep_alive,
                u64::MAX => return,
                millis => self.0.opened + Duration::from_millis(millis) + limits.keep_alive,
            };
            if deadline <= now {
                return;
            }
        }
    }
}

/// How long a connection may be idle.
#[derive(Clone, Copy, Debug)]
pub struct IdleLimits {
    /// From its start to its first request.
    pub first_request: Duration,
    /// From the end of a request to the next one.
    pub keep_alive: Duration,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let millis = u64::try_from(self.0.opened.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.0.last_end.store(millis, Ordering::Relaxed);
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The body of a response whose request is in flight until the body has been sent or dropped.
#[derive(Debug)]
pub struct Tracked<B> {
    body: B,
    _request: InFlight,
}

impl<B> Tracked<B> {
    /// Ties a request to the body of its response.
    pub fn new(body: B, request: InFlight) -> Tracked<B> {
        Tracked { body, _request: request }
    }
}

impl<D: Buf, B: Body<Data = D> + Unpin> Body for Tracked<B> {
    type Data = D;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, ctx: &mut Context<'_>) -> Poll<Option<Result<Frame<D>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(ctx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: IdleLimits = IdleLimits {
        first_request: Duration::from_secs(30),
        keep_alive: Duration::from_secs(90),
    };

    #[tokio::test(start_paused = true)]
    async fn a_connection_without_a_request_is_idle_from_its_start() {
        let (activity, started) = (Activity::start(), Instant::now());

        activity.idle(LIMITS).await;

        assert_eq!(started.elapsed(), LIMITS.first_request);
    }

    #[tokio::test(start_paused = true)]
    async fn idle_time_is_counted_from_the_end_of_the_last_request() {
        let (activity, started) = (Activity::start(), Instant::now());
        let request = activity.begin();
        let requests = async {
            tokio::time::sleep(Duration::from_secs(100)).await;
            drop(request);
            tokio::time::sleep(Duration::from_secs(20)).await;
            drop(activity.begin());
        };

        tokio::join!(requests, activity.idle(LIMITS));

        assert_eq!(started.elapsed(), Duration::from_secs(210));
    }
}
