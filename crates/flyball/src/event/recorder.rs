//! Publishes events beside the reconciles, which never wait for it.

use crate::clock::Clock;
use crate::declare::timer::fnv1a;
use crate::event::correlate::{Correlator, Id, Step};
use crate::event::{Event, EventPolicy, Events, Regarding, body};
use crate::{Backoff, Context, Key, Result};
use kube::{
    Client,
    api::{Patch, PatchParams, PostParams, Request},
};
use serde_json::Value;
use std::time::Duration;
use tokio::{
    sync::mpsc,
    time::{Instant, sleep, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

/// Events that wait to be sent; more are remembered but not published, and that is logged.
const WAITING: usize = 10_000;
/// How often, and after how long, an event is sent again that the API server did not take.
const RETRIES: u32 = 5;
const RETRY: Backoff = Backoff {
    initial: Duration::from_secs(1),
    max: Duration::from_secs(16),
    multiplier: 2.0,
    max_retries: Some(RETRIES),
};

/// How long the API server may be silent about one.
const PUBLISH_TIMEOUT: Duration = Duration::from_secs(10);

/// Takes events from reconciles.
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    waiting: mpsc::Sender<Occurrence>,
    events: Events,
    failures: bool,
}

#[derive(Debug)]
struct Occurrence {
    regarding: Regarding,
    event: Event,
}

/// Sends what recorders take, until all recorders are gone.
pub(crate) struct Publisher {
    waiting: mpsc::Receiver<Occurrence>,
    correlator: Correlator,
    policy: EventPolicy,
    /// When counts that were not published yet are.
    flush: Option<Instant>,
    /// The time in the name of the last event: no two are the same.
    stamp: i128,
}

pub(crate) fn channel(policy: EventPolicy) -> (Recorder, Publisher) {
    let (waiting, receiver) = mpsc::channel(WAITING);
    let publisher = Publisher {
        waiting: receiver,
        correlator: Correlator::new(policy),
        policy,
        flush: None,
        stamp: 0,
    };
    (
        Recorder {
            waiting,
            events: Events::new(&policy),
            failures: policy.failures,
        },
        publisher,
    )
}

impl Recorder {
    /// Whether failed reconciles are events.
    pub(crate) fn reports_failures(&self) -> bool {
        self.failures
    }

    pub(crate) fn publish(&self, ctx: &Context, regarding: Regarding, event: Event) {
        let severity = event.severity;
        ctx.operator.metrics.event(severity.event_type(), severity.as_str());
        self.events.record(&regarding, &event, ctx.now(), Instant::now());
        if let Err(refused) = self.waiting.try_send(Occurrence { regarding, event }) {
            let reason = refused.into_inner().event.reason;
            tracing::warn!(reason, "event not published: too many are waiting");
        }
    }

    /// What is remembered.
    pub(crate) fn events(&self) -> &Events {
        &self.events
    }
}

/// Where and as whom events are published.
struct EventSink {
    client: Client,
    operator: String,
    clock: Clock,
    /// Nanoseconds that the names of this operator's events are shifted by: another operator's at the same time differ.
    shift: i128,
}

impl Publisher {
    pub(crate) async fn run(mut self, client: Client, operator: String, clock: Clock, ended: CancellationToken) {
        let shift = i128::from(fnv1a(&[&operator]) % 1_000_000);
        let sink = EventSink { client, operator, clock, shift };
        loop {
            let flush = async {
                match self.flush {
                    Some(at) => sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                // Senders that are still open are not waited for; what they have sent is published.
                () = ended.cancelled(), if !self.waiting.is_closed() => self.waiting.close(),
                occurrence = self.waiting.recv() => match occurrence {
                    Some(occurrence) => self.take(&sink, occurrence).await,
                    None => break,
                },
                () = flush => self.flush(&sink).await,
            }
        }
        self.flush(&sink).await;
    }

    async fn take(&mut self, sink: &EventSink, occurrence: Occurrence) {
        let (Occurrence { regarding, event }, now) = (occurrence, Instant::now());
        let reason = event.reason.clone();
        self.correlator.sweep(now);
        match self.correlator.observe(&regarding.uid, event, now) {
            Step::Create(id, note) => self.create(sink, &regarding, id, &note).await,
            Step::Repeat(id) => self.repeat(sink, &id, Some(&regarding)).await,
            Step::Later => self.flush = self.flush.or(Some(now + self.policy.window)),
            Step::Drop => tracing::debug!(reason, object = %regarding.key, "event over its object's limit"),
        }
    }

    async fn create(&mut self, sink: &EventSink, regarding: &Regarding, id: Id, note: &str) {
        self.stamp = (sink.clock.now().as_nanosecond() + sink.shift).max(self.stamp + 1);
        let api = self.policy.api;
        let body = body::new(api, &sink.operator, sink.clock, self.stamp, regarding, &id.1, note);
        let namespace = body::namespace(regarding);
        let created = sink.send(|| {
            let bytes = serde_json::to_vec(&body).expect("a body is JSON");
            Request::new(body::path(api, namespace)).create(&PostParams::default(), bytes)
        });
        match created.await {
            Ok(created) => {
                let name = created["metadata"]["name"].as_str().unwrap_or_default();
                if let Some(series) = self.correlator.series(&id) {
                    (series.name, series.told) = (Some(Key::namespaced(namespace, name)), 1);
                }
            }
            Err(error) => {
                self.correlator.forget(&id);
                tracing::warn!(reason = id.1.reason, %error, "event not published");
            }
        }
    }

    /// Publishes a new count. If the event is gone, its time being over, it is published anew for `regarding`.
    async fn repeat(&mut self, sink: &EventSink, id: &Id, regarding: Option<&Regarding>) {
        let api = self.policy.api;
        let Some(series) = self.correlator.series(id) else {
            return;
        };
        let (count, Some(name)) = (series.count, series.name.clone()) else {
            return;
        };
        let patch = body::repeat(api, sink.clock, count);
        let repeated = sink.send(|| {
            let collection = Request::new(body::path(api, name.namespace().unwrap_or("default")));
            collection.patch(name.name(), &PatchParams::default(), &Patch::Merge(&patch))
        });
        match (repeated.await, regarding) {
            (Ok(_), _) => {
                if let Some(series) = self.correlator.series(id) {
                    series.told = count;
                }
            }
            (Err(error), Some(regarding)) if is_gone(&error) => {
                let note = if id.1.note.is_empty() {
                    "similar events"
                } else {
                    &id.1.note
                };
                self.create(sink, regarding, id.clone(), note).await;
            }
            (Err(error), _) => {
                self.correlator.forget(id);
                tracing::warn!(reason = id.1.reason, %error, "repeated event not published");
            }
        }
    }

    /// Publishes the counts that were not published yet.
    async fn flush(&mut self, sink: &EventSink) {
        self.flush = None;
        for id in self.correlator.behind() {
            self.repeat(sink, &id, None).await;
        }
        self.correlator.sweep(Instant::now());
    }
}

impl EventSink {
    /// Sends a request until it is answered, or refused for good, or has failed too often.
    async fn send(
        &self,
        request: impl Fn() -> Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<Value> {
        let mut failures = 0;
        loop {
            let error = match timeout(PUBLISH_TIMEOUT, self.client.request(request()?)).await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(error)) if is_final(&error) => return Err(error.into()),
                Ok(Err(error)) => error.into(),
                Err(_) => crate::Error::from("the API server is silent"),
            };
            failures += 1;
            if failures > RETRIES {
                return Err(error);
            }
            sleep(RETRY.delay(failures, &self.operator)).await;
        }
    }
}

/// What the API server has refused, it will refuse again; unless it was too busy.
fn is_final(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if (400..500).contains(&status.code) && status.code != 429)
}

fn is_gone(error: &crate::Error) -> bool {
    matches!(error.find(), Some(kube::Error::Api(status)) if status.code == 404)
}
