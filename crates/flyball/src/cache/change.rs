//! What happened to an object, and the subscribers that are notified.

use crate::cache::Mirror;
use crate::cache::object::Object;
use crate::engine::queue::Priority;
use crate::engine::work::WorkQueue;
use crate::{Key, Why};
use std::sync::{Arc, Weak};

/// Receives every change, including those found by a relist.
#[derive(Clone)]
pub(crate) struct Subscriber {
    /// Subscribers whose queue was dropped are removed.
    pub(crate) queue: Weak<WorkQueue>,
    pub(crate) tell: Tell,
}

type Tell = Arc<dyn Fn(&Mirror, &Change, &WorkQueue) + Send + Sync>;

impl Subscriber {
    pub(crate) fn is_there(&self) -> bool {
        self.queue.strong_count() > 0
    }

    pub(super) fn tell(&self, mirror: &Mirror, change: &Change) {
        if let Some(queue) = self.queue.upgrade() {
            (self.tell)(mirror, change, &queue);
        }
    }
}

/// An object before and after: created without `old`, deleted without `new`.
pub(crate) struct Change {
    pub(crate) old: Option<Arc<Object>>,
    pub(crate) new: Option<Arc<Object>>,
    /// Whether a list told of it, not a watch or one of our own writes.
    pub(crate) listed: bool,
}

impl Change {
    pub(crate) fn key(&self) -> Option<&Key> {
        self.new.as_ref().or(self.old.as_ref()).map(|object| &object.key)
    }

    /// Whether the object is gone, or begins to be deleted, or another one has taken its name.
    pub(crate) fn is_deletion(&self) -> bool {
        match (&self.old, &self.new) {
            (_, None) => true,
            (None, Some(new)) => new.terminating,
            (Some(old), Some(new)) => old.uid != new.uid || (new.terminating && !old.terminating),
        }
    }

    pub(crate) fn why(&self) -> Why {
        match &self.old {
            _ if self.is_deletion() => Why::Deleted,
            Some(_) => Why::Changed,
            None if self.listed => Why::Listed,
            None => Why::Created,
        }
    }

    /// An unchanged object that a list finds has background priority; a changed one does not.
    pub(crate) fn priority(&self) -> Priority {
        match self.old {
            None if self.listed => Priority::Background,
            _ => Priority::Live,
        }
    }
}
