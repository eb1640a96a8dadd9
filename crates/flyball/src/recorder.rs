//! Publishes events (`events.k8s.io/v1`) beside the reconciles, which never wait for it. Repeats become a series of one event.

use crate::{Context, Event, Key, cache::Mirror, clock::Clock, kind::Kind, object::Object};
use kube::{
    Client,
    api::{Patch, PatchParams, PostParams, Request},
};
use serde_json::{Value, json};
use std::{collections::HashMap, sync::Arc, time::Duration};
use tokio::{sync::mpsc, time::Instant};

/// Events that wait to be sent; more are dropped, and counted in the log.
const WAITING: usize = 1_000;
/// Repeats within this time of each other are one series (client-go's recorder: six minutes).
const SERIES: Duration = Duration::from_secs(360);
/// Kubernetes refuses longer notes.
const NOTE: usize = 1_024;

/// Takes events from reconciles.
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    waiting: mpsc::Sender<Occurrence>,
}

#[derive(Debug)]
struct Occurrence {
    mirror: Arc<Mirror>,
    object: Arc<Object>,
    event: Event,
}

/// Sends what recorders take, until all recorders are gone.
pub(crate) struct Publisher {
    waiting: mpsc::Receiver<Occurrence>,
    series: HashMap<(Box<str>, Event), Series>,
    /// The time in the name of the last event: no two are the same.
    stamp: i128,
}

/// An event that was published before.
struct Series {
    name: Key,
    count: u32,
    last: Instant,
}

pub(crate) fn channel() -> (Recorder, Publisher) {
    let (sender, receiver) = mpsc::channel(WAITING);
    (
        Recorder { waiting: sender },
        Publisher { waiting: receiver, series: HashMap::new(), stamp: 0 },
    )
}

impl Recorder {
    pub(crate) fn publish(&self, ctx: &Context, event: Event) {
        let severity = event.severity.as_str();
        ctx.operator.metrics.event(severity, severity);
        let occurrence = Occurrence {
            mirror: ctx.mirror.clone(),
            object: ctx.object.clone(),
            event,
        };
        if let Err(refused) = self.waiting.try_send(occurrence) {
            let reason = refused.into_inner().event.reason;
            tracing::warn!(reason, "event dropped: too many are waiting");
        }
    }
}

impl Publisher {
    pub(crate) async fn run(mut self, client: Client, operator: String, clock: Clock) {
        while let Some(occurrence) = self.waiting.recv().await {
            let reason = occurrence.event.reason.clone();
            if let Err(error) = self.send(&client, &operator, clock, occurrence).await {
                tracing::warn!(reason, %error, "event not published");
            }
        }
    }

    async fn send(
        &mut self,
        client: &Client,
        operator: &str,
        clock: Clock,
        occurrence: Occurrence,
    ) -> crate::Result<()> {
        let now = Instant::now();
        self.series.retain(|_, series| now.duration_since(series.last) < SERIES);
        let Occurrence { mirror, object, event } = occurrence;
        let id = (object.uid.clone(), event);
        if let Some(series) = self.series.get_mut(&id) {
            (series.count, series.last) = (series.count + 1, now);
            return repeat(client, series, clock).await;
        }
        self.stamp = clock.now().as_nanosecond().max(self.stamp + 1);
        let body = body(operator, clock, self.stamp, mirror.kind(), &object, &id.1);
        let namespace = object.key.namespace().unwrap_or("default");
        let collection = Request::new(path(namespace));
        let created: Value = client
            .request(collection.create(&PostParams::default(), serde_json::to_vec(&body)?)?)
            .await?;
        let name = created["metadata"]["name"].as_str().unwrap_or_default();
        self.series
            .insert(id, Series { name: Key::namespaced(namespace, name), count: 1, last: now });
        Ok(())
    }
}

async fn repeat(client: &Client, series: &Series, clock: Clock) -> crate::Result<()> {
    let patch = json!({ "series": { "count": series.count, "lastObservedTime": micros(clock) } });
    let collection = Request::new(path(series.name.namespace().unwrap_or("default")));
    let request = collection.patch(series.name.name(), &PatchParams::default(), &Patch::Merge(patch))?;
    client.request::<Value>(request).await?;
    Ok(())
}

fn path(namespace: &str) -> String {
    format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events")
}

fn body(operator: &str, clock: Clock, stamp: i128, kind: &Kind, object: &Object, event: &Event) -> Value {
    let namespace = object.key.namespace().unwrap_or("default");
    let mut regarding = json!({
        "apiVersion": kind.resource.api_version,
        "kind": kind.name(),
        "name": object.key.name(),
        "uid": &*object.uid,
    });
    if let Some(namespace) = object.key.namespace() {
        regarding["namespace"] = namespace.into();
    }
    if let Some(path) = &event.field {
        regarding["fieldPath"] = path.as_str().into();
    }
    json!({
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": { "name": name(object.key.name(), stamp), "namespace": namespace },
        "action": event.action.as_deref().unwrap_or("Reconcile"),
        "eventTime": micros(clock),
        "note": shortened(&event.note),
        "reason": event.reason,
        "regarding": regarding,
        "reportingController": event.by.as_deref().unwrap_or(operator),
        "reportingInstance": operator,
        "type": event.severity.as_str(),
    })
}

/// A name as client-go gives it: the object's, and the time. An object may be called `system:node`, an event may not.
fn name(object: &str, stamp: i128) -> String {
    let allowed = |c: char| {
        if c.is_ascii_lowercase() || c.is_ascii_digit() || c == '.' {
            c
        } else {
            '-'
        }
    };
    let object: String = object.chars().take(200).map(allowed).collect();
    format!("{}.{stamp:x}", object.trim_matches(['-', '.']))
}

fn shortened(note: &str) -> &str {
    let mut end = note.len().min(NOTE);
    while !note.is_char_boundary(end) {
        end -= 1;
    }
    &note[..end]
}

fn micros(clock: Clock) -> String {
    format!("{:.6}", clock.now())
}
