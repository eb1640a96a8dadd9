//! What happens to an object after a reconcile that succeeded.

use std::time::Duration;

/// Says when an object is reconciled again, unless it changes before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Action {
    requeue_after: Option<Duration>,
}

impl Action {
    /// Waits until the object, or something that its controller owns or watches, changes.
    pub const fn await_change() -> Action {
        Action { requeue_after: None }
    }

    /// Reconciles again after `delay`, or at the next change if that comes first.
    pub const fn requeue_after(delay: Duration) -> Action {
        Action { requeue_after: Some(delay) }
    }

    pub(crate) const fn delay(self) -> Option<Duration> {
        self.requeue_after
    }
}
