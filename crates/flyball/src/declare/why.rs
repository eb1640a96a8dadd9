//! Why an object is reconciled: what happened, and to which object. It stands in every log line of the reconcile.

use crate::Key;
use std::{fmt, sync::Arc};

/// What brought an object into its controller's queue.
///
/// Of several reasons the first one is kept, unless a later one brings the object forward.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Why {
    /// It was there when its kind was first listed, when its controller started, or when that began to lead again.
    Listed,
    /// It was created.
    Created,
    /// It was changed.
    Changed,
    /// It is being deleted, or is gone.
    Deleted,
    /// Something happened to another object, which it owns or its controller watches.
    Related(Arc<Related>),
    /// The reconcile before asked for this one.
    Requeued,
    /// This many reconciles in a row have failed.
    Retried(u32),
    /// Its controller looks at every object from time to time.
    Resync,
    /// A [timer](crate::Controller::timer) is due.
    Timer,
    /// It was asked for: by the trigger of that name, or by that user of the admin server.
    Asked(Arc<String>),
}

/// Another object, and what happened to it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Related {
    /// The other object's kind.
    pub kind: Arc<str>,
    /// The other object.
    pub key: Key,
    /// What happened to it.
    pub why: Why,
}

impl Why {
    /// The same, as another object sees it.
    pub(crate) fn of(self, kind: &Arc<str>, key: &Key) -> Why {
        Why::Related(Arc::new(Related { kind: kind.clone(), key: key.clone(), why: self }))
    }

    pub(crate) fn asked(by: impl Into<String>) -> Why {
        Why::Asked(Arc::new(by.into()))
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::Listed => f.write_str("listed"),
            Why::Created => f.write_str("created"),
            Why::Changed => f.write_str("changed"),
            Why::Deleted => f.write_str("deleted"),
            Why::Related(related) => write!(f, "{} {} {}", related.kind, related.key, related.why),
            Why::Requeued => f.write_str("requeued"),
            Why::Retried(failures) => write!(f, "retry {failures}"),
            Why::Resync => f.write_str("resync"),
            Why::Timer => f.write_str("timer"),
            Why::Asked(by) => write!(f, "asked by {by}"),
        }
    }
}
