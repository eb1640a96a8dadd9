//! An event as an author publishes it, and what becomes of it: correlated, published, remembered.

mod body;
mod correlate;
mod history;
mod recorder;

pub use history::{EventFilter, EventRecord, Events};

pub(crate) use recorder::{Recorder, channel};

use crate::{Context, Key};
use k8s_openapi::api::core::v1::ObjectReference;

use std::time::Duration;

/// Something that happened to an object, as `kubectl describe` shows it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Event {
    pub(crate) severity: Severity,
    pub(crate) reason: String,
    pub(crate) action: Option<String>,
    pub(crate) note: String,
    pub(crate) by: Option<String>,
    pub(crate) field: Option<String>,
}

/// How bad it is. Kubernetes knows two types: what is worse than information is a `Warning` there.
///
/// `Error` and `Critical` are also a label of the published event: `kubectl get events -l flyball.dev/severity=critical`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// It went as it should.
    Info,
    /// It may need attention.
    Warning,
    /// It failed.
    Error,
    /// It failed, and an administrator must act.
    Critical,
}

/// The API that events are published through. Those of either can be read through both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EventApi {
    /// `events.k8s.io/v1`: repeats are a series.
    #[default]
    Events,
    /// The core group's `v1`: repeats are a count.
    Core,
}

/// How events are published and remembered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EventPolicy {
    /// The API that they are published through.
    pub api: EventApi,
    /// The same event within this time of the last one is counted, not published anew.
    pub window: Duration,
    /// After this many events within the window that differ in their note only, the others are counted as one.
    pub similar: usize,
    /// How many writes one object's events may cost at once.
    pub burst: u32,
    /// After how long one more write is allowed. What is over the limit is counted until then.
    pub refill: Duration,
    /// How many events are remembered.
    pub history: usize,
    /// Whether a failed reconcile is an event on its object, `ReconcileFailed` or `RetriesExhausted`.
    pub failures: bool,
}

impl Default for EventPolicy {
    /// A minute's window, ten thousand remembered; the rest as client-go's correlator: 10 similar, 25 at once, 1 per 5 minutes.
    fn default() -> EventPolicy {
        EventPolicy {
            api: EventApi::Events,
            window: Duration::from_secs(60),
            similar: 10,
            burst: 25,
            refill: Duration::from_secs(300),
            history: 10_000,
            failures: true,
        }
    }
}

impl Event {
    /// An event: a reason in CamelCase, and a sentence.
    pub fn new(severity: Severity, reason: impl Into<String>, note: impl Into<String>) -> Event {
        let (reason, note) = (reason.into(), note.into());
        Event { severity, reason, action: None, note, by: None, field: None }
    }

    /// Tells of something that went as it should: a reason in CamelCase, and a sentence.
    pub fn normal(reason: impl Into<String>, note: impl Into<String>) -> Event {
        Event::new(Severity::Info, reason, note)
    }

    /// Something that may need attention: a reason in CamelCase, and a sentence.
    pub fn warning(reason: impl Into<String>, note: impl Into<String>) -> Event {
        Event::new(Severity::Warning, reason, note)
    }

    /// Says what was being done, in CamelCase; `Reconcile` unless set.
    pub fn action(mut self, action: impl Into<String>) -> Event {
        self.action = Some(action.into());
        self
    }

    /// Says which controller reports it; the operator unless set.
    pub fn by(mut self, controller: impl Into<String>) -> Event {
        self.by = Some(controller.into());
        self
    }

    /// Says which part of the object it is about, as in `spec.containers{web}`.
    pub fn field(mut self, path: impl Into<String>) -> Event {
        self.field = Some(path.into());
        self
    }
}

impl Severity {
    /// The `type` of the Kubernetes event.
    pub fn event_type(self) -> &'static str {
        match self {
            Severity::Info => "Normal",
            _ => "Warning",
        }
    }

    /// Its name in lower case, as in the label and the metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Info => "info",
            Severity::Warning => "warning",
            Severity::Error => "error",
            Severity::Critical => "critical",
        }
    }
}

/// A reference that does not say which object an event is about.
#[derive(Debug, thiserror::Error)]
#[error("publish event: the reference has no {0}")]
pub(crate) struct IncompleteReference(&'static str);

impl Regarding {
    /// The object that is being reconciled.
    pub(crate) fn object_of(ctx: &Context) -> Regarding {
        Regarding {
            api_version: ctx.kind().resource.api_version.clone(),
            kind: ctx.kind().name().into(),
            key: ctx.object.key.clone(),
            uid: ctx.object.uid.clone(),
        }
    }
}

impl TryFrom<&ObjectReference> for Regarding {
    type Error = IncompleteReference;

    fn try_from(reference: &ObjectReference) -> Result<Regarding, IncompleteReference> {
        let text = |field: &Option<String>, name| {
            let text = field.as_deref().filter(|text| !text.is_empty());
            text.ok_or(IncompleteReference(name)).map(str::to_owned)
        };
        Ok(Regarding {
            api_version: text(&reference.api_version, "apiVersion")?,
            kind: text(&reference.kind, "kind")?,
            key: Key::new(reference.namespace.as_deref(), &text(&reference.name, "name")?),
            uid: reference.uid.as_deref().unwrap_or_default().into(),
        })
    }
}

/// What an event is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Regarding {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) key: crate::Key,
    pub(crate) uid: Box<str>,
}
