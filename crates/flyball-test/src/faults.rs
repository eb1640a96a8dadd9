//! Faults of an API server as production sees them, chosen by a seed: refusals, lost answers, silence, broken watches, restarts.

use crate::answer::{Answer, AnyResponse, status, streamed};
use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyDataStream, BodyExt};
use kube::{Client, client::Body};
use serde_json::json;
use std::{
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};
use tokio::{sync::watch, time::sleep};

/// Faults between a client and its API server, until [`Faults::heal`].
///
/// They follow from the seed and from the order of requests, so a failed test can be repeated.
///
/// ```no_run
/// # async fn test(operator: flyball::Operator) {
/// let cluster = flyball_test::Cluster::start().await;
/// let faults = flyball_test::Faults::seeded(7);
/// let running = operator.start(faults.client(cluster.client())).await;
/// // … change things for a while …
/// faults.heal();
/// // … and assert the state of the cluster.
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Faults {
    state: Arc<Mutex<State>>,
    /// Counts restarts: each ends all watches.
    restarts: Arc<watch::Sender<u32>>,
}

#[derive(Debug)]
struct State {
    random: fastrand::Rng,
    healed: bool,
    requests: u64,
    injected: u64,
}

/// How a request goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Refused(StatusCode),
    /// The request never arrives.
    Unreachable,
    /// The request arrives; its answer does not.
    AnswerLost,
    /// There is no answer for a minute, and then the connection breaks.
    Silent,
    /// The server is down for some seconds.
    Restart,
}

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Broken(&'static str);

impl Faults {
    /// Faults of every kind: about one request in eight fails, and no watch lasts longer than half a minute.
    pub fn seeded(seed: u64) -> Faults {
        let state = State {
            random: fastrand::Rng::with_seed(seed),
            healed: false,
            requests: 0,
            injected: 0,
        };
        Faults {
            state: Arc::new(Mutex::new(state)),
            restarts: Arc::new(watch::Sender::new(0)),
        }
    }

    /// A client of the same API server with these faults between.
    pub fn client(&self, client: Client) -> Client {
        let (faults, namespace) = (self.clone(), client.default_namespace().to_owned());
        let service = tower::service_fn(move |request| {
            let (faults, client) = (faults.clone(), client.clone());
            async move { faults.send(client, request).await }
        });
        Client::new(service, namespace)
    }

    /// Ends all faults; watches go on.
    pub fn heal(&self) {
        self.lock().healed = true;
    }

    /// The number of requests, and of those that failed by a fault.
    pub fn counts(&self) -> (u64, u64) {
        let state = self.lock();
        (state.requests, state.injected)
    }

    async fn send(&self, client: Client, request: Request<Body>) -> kube::Result<AnyResponse> {
        let watches = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        match self.next(watches) {
            None if watches => Ok(self.watched(client.send(request).await?)),
            None => Ok(client.send(request).await?.map(Body::boxed_unsync)),
            Some(Fault::Refused(code)) => Ok(Answer::refusal(code.as_u16(), &injected(code)).response),
            Some(Fault::Unreachable) => Err(broken("connection refused")),
            Some(Fault::AnswerLost) => {
                client.send(request).await?;
                Err(broken("connection reset before the answer"))
            }
            Some(Fault::Silent) => {
                sleep(Duration::from_secs(60)).await;
                Err(broken("connection timed out"))
            }
            Some(Fault::Restart) => {
                self.restarts.send_modify(|restarts| *restarts += 1);
                sleep(Duration::from_secs(5)).await;
                Err(broken("connection refused: the server restarts"))
            }
        }
    }

    /// The fault of the next request.
    fn next(&self, watches: bool) -> Option<Fault> {
        let mut state = self.lock();
        state.requests += 1;
        if state.healed || state.below(8) > 0 {
            return None;
        }
        state.injected += 1;
        Some(match state.below(12) {
            0..=1 => Fault::Refused(StatusCode::TOO_MANY_REQUESTS),
            2..=3 => Fault::Refused(StatusCode::INTERNAL_SERVER_ERROR),
            4 => Fault::Refused(StatusCode::SERVICE_UNAVAILABLE),
            5..=6 if watches => Fault::Refused(StatusCode::GONE),
            5..=6 => Fault::AnswerLost,
            7..=9 => Fault::Unreachable,
            10 => Fault::Silent,
            _ => Fault::Restart,
        })
    }

    /// A watch that ends early: silently, with the server, or because its version has expired.
    fn watched(&self, response: Response<Body>) -> AnyResponse {
        let (head, body) = response.into_parts();
        let (expires, lasts) = {
            let mut state = self.lock();
            if state.healed {
                return Response::from_parts(head, body.boxed_unsync());
            }
            (state.below(4) == 0, Duration::from_millis(100 + state.below(30_000)))
        };
        let mut restarts = self.restarts.subscribe();
        let ends = Box::pin(async move {
            tokio::select! {
                () = sleep(lasts) => {}
                _ = restarts.changed() => {}
            }
        });
        let cut = BodyDataStream::new(body).take_until(ends);
        let last = expires.then(|| {
            let expired = json!({ "type": "ERROR", "object": status(StatusCode::GONE, &injected(StatusCode::GONE)) });
            Ok(Bytes::from(format!("{expired}\n")))
        });
        Response::from_parts(head, streamed(cut.chain(stream::iter(last))))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics under this lock")
    }
}

impl State {
    fn below(&mut self, bound: u64) -> u64 {
        self.random.u64(..bound)
    }
}

fn broken(why: &'static str) -> kube::Error {
    kube::Error::Service(Box::new(Broken(why)))
}

fn injected(code: StatusCode) -> String {
    format!("injected: {code}")
}
