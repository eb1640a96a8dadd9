//! An event as the API server takes it, in either API, and how a repeat changes it.

use crate::clock::{self, Clock};
use crate::event::{Event, EventApi, Regarding, Severity};
use serde_json::{Value, json};

/// The API server refuses longer notes, and longer words (`pkg/apis/core/validation/events.go`).
const NOTE: usize = 1_024;
const WORD: usize = 128;
/// Under this label `Error` and `Critical` can be selected, which Kubernetes' own types do not tell apart.
const SEVERITY: &str = "flyball.dev/severity";

/// Where events are, of objects in a namespace or in none.
pub(super) fn namespace(regarding: &Regarding) -> &str {
    regarding.key.namespace().unwrap_or("default")
}

pub(super) fn path(api: EventApi, namespace: &str) -> String {
    match api {
        EventApi::Events => format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events"),
        EventApi::Core => format!("/api/v1/namespaces/{namespace}/events"),
    }
}

/// A new event. `stamp` makes its name its own.
pub(super) fn new(
    api: EventApi,
    operator: &str,
    clock: Clock,
    stamp: i128,
    regarding: &Regarding,
    event: &Event,
    note: &str,
) -> Value {
    let mut metadata = json!({ "name": name(regarding.key.name(), stamp), "namespace": namespace(regarding) });
    if event.severity > Severity::Warning {
        metadata["labels"] = json!({ SEVERITY: event.severity.as_str() });
    }
    let object = object(regarding, event);
    let (note, controller) = (shortened(note, NOTE), event.by.as_deref().unwrap_or(operator));
    let common = json!({
        "kind": "Event",
        "metadata": metadata,
        "action": shortened(event.action.as_deref().unwrap_or("Reconcile"), WORD),
        "reason": shortened(&event.reason, WORD),
        "reportingInstance": operator,
        "type": event.severity.event_type(),
    });
    let special = match api {
        EventApi::Events => json!({
            "apiVersion": "events.k8s.io/v1",
            "eventTime": micros(clock),
            "note": note,
            "regarding": object,
            "reportingController": controller,
        }),
        EventApi::Core => json!({
            "apiVersion": "v1",
            "count": 1,
            "firstTimestamp": clock::time(clock),
            "involvedObject": object,
            "lastTimestamp": clock::time(clock),
            "message": note,
            "reportingComponent": controller,
            "source": { "component": controller },
        }),
    };
    let (Value::Object(mut body), Value::Object(special)) = (common, special) else {
        unreachable!("both were written as objects")
    };
    body.extend(special);
    Value::Object(body)
}

/// The merge patch that tells a new count. `events.k8s.io` lets nothing else of an event change.
pub(super) fn repeat(api: EventApi, clock: Clock, count: u32) -> Value {
    match api {
        EventApi::Events => json!({ "series": { "count": count, "lastObservedTime": micros(clock) } }),
        EventApi::Core => json!({ "count": count, "lastTimestamp": clock::time(clock) }),
    }
}

fn object(regarding: &Regarding, event: &Event) -> Value {
    let mut object = json!({
        "apiVersion": regarding.api_version,
        "kind": regarding.kind,
        "name": regarding.key.name(),
        "uid": &*regarding.uid,
    });
    if let Some(namespace) = regarding.key.namespace() {
        object["namespace"] = namespace.into();
    }
    if let Some(path) = &event.field {
        object["fieldPath"] = path.as_str().into();
    }
    object
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

fn shortened(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn micros(clock: Clock) -> String {
    format!("{:.6}", clock.now())
}
