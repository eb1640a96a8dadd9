//! A client that fails: refused, broken, late, done but not answered, watches that end or have expired.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use http::{Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, BodyStream, StreamBody};
use kube::Client;
use kube::client::Body;
use serde_json::json;

type Error = Box<dyn std::error::Error + Send + Sync>;
type Answer = Response<UnsyncBoxBody<Bytes, Error>>;

/// What a hanging request hangs for before its connection breaks.
const HANG: Duration = Duration::from_secs(12);

/// Faults, made between an operator and its server.
#[derive(Clone)]
pub struct Faults {
    state: Arc<State>,
}

struct State {
    random: AtomicU64,
    on: AtomicBool,
    calls: AtomicU64,
    made: AtomicU64,
}

enum Fault {
    None,
    Answered(StatusCode),
    /// The request is done; its answer is lost.
    Lost,
    Hangs,
    /// A watch that ends after this time.
    Ends(Duration),
}

impl Faults {
    /// None yet.
    pub fn new(seed: u64) -> Faults {
        let state = State {
            random: AtomicU64::new(seed),
            on: AtomicBool::new(false),
            calls: AtomicU64::new(0),
            made: AtomicU64::new(0),
        };
        Faults { state: Arc::new(state) }
    }

    /// From now on requests fail.
    pub fn begin(&self) {
        self.state.on.store(true, Ordering::Relaxed);
    }

    /// From now on they do not.
    pub fn end(&self) {
        self.state.on.store(false, Ordering::Relaxed);
    }

    /// How many requests were made.
    pub fn calls(&self) -> u64 {
        self.state.calls.load(Ordering::Relaxed)
    }

    /// How many of them failed.
    pub fn made(&self) -> u64 {
        self.state.made.load(Ordering::Relaxed)
    }

    /// The same client, failing.
    pub fn between(&self, client: Client) -> Client {
        let (faults, namespace) = (self.clone(), client.default_namespace().to_owned());
        let service = tower::service_fn(move |request: Request<Body>| {
            let (faults, client) = (faults.clone(), client.clone());
            async move { faults.send(&client, request).await }
        });
        Client::new(service, namespace)
    }

    async fn send(&self, client: &Client, request: Request<Body>) -> Result<Answer, Error> {
        self.state.calls.fetch_add(1, Ordering::Relaxed);
        let watches = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        let fault = self.draw(watches);
        if !matches!(fault, Fault::None) {
            self.state.made.fetch_add(1, Ordering::Relaxed);
        }
        match fault {
            Fault::None => Ok(client.send(request).await?.map(whole)),
            Fault::Answered(status) => Ok(refusal(status)),
            Fault::Lost => {
                client.send(request).await?;
                Err("the connection broke before the answer came".into())
            }
            Fault::Hangs => {
                tokio::time::sleep(HANG).await;
                Err("the connection broke after a long silence".into())
            }
            Fault::Ends(after) => {
                let end = Box::pin(tokio::time::sleep(after));
                let cut = |body: Body| StreamBody::new(BodyStream::new(body).take_until(end));
                Ok(client.send(request).await?.map(|body| cut(body).map_err(Into::into).boxed_unsync()))
            }
        }
    }

    fn draw(&self, watches: bool) -> Fault {
        let drawn = next(&self.state.random) % 1000;
        if !self.state.on.load(Ordering::Relaxed) {
            return Fault::None;
        }
        match (drawn, watches) {
            (0..40, _) => Fault::Answered(StatusCode::TOO_MANY_REQUESTS),
            (40..80, _) => Fault::Answered(StatusCode::INTERNAL_SERVER_ERROR),
            (80..85, _) => Fault::Hangs,
            (85..150, true) => Fault::Answered(StatusCode::GONE),
            (150.., true) => Fault::Ends(Duration::from_millis(500 + drawn * 20)),
            (85..120, false) => Fault::Lost,
            _ => Fault::None,
        }
    }
}

fn whole(body: Body) -> UnsyncBoxBody<Bytes, Error> {
    body.map_err(Into::into).boxed_unsync()
}

fn refusal(status: StatusCode) -> Answer {
    let body = json!({
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": status.as_u16(),
        "reason": status.canonical_reason().unwrap_or_default().replace(' ', ""),
        "message": "made by the soak",
    });
    let response = Response::builder().status(status).header("content-type", "application/json");
    let body = whole(Body::from(body.to_string().into_bytes()));
    response.body(body).expect("constant headers")
}

/// The next of a random sequence that several tasks share.
pub fn next(state: &AtomicU64) -> u64 {
    fastrand::Rng::with_seed(state.fetch_add(1, Ordering::Relaxed)).u64(..)
}
