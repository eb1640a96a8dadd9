//! The state of a watch, for reads that wait for its list and for readiness checks.

use std::sync::Arc;
use tokio::time::Instant;

/// One kind's watch at this moment, and how much it has brought into the cache.
///
/// Where only some namespaces are watched, each has its own watch; this speaks of all of them.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WatchState {
    /// The kind.
    pub kind: String,
    /// Its group and version, as in manifests.
    pub api_version: String,
    /// Which of its objects are watched: label and field selectors. All if it is empty.
    pub selector: String,
    /// In which namespaces; in all if it is empty.
    pub namespaces: Vec<String>,
    /// Whether only the metadata of each object is cached.
    pub metadata: bool,
    /// Whether the API server serves the kind, as far as is known. It may not where the kind is
    /// [optional](crate::Controller::optional).
    pub installed: bool,
    /// Whether it has been listed once: reads answer from then on, however the watch fares.
    pub synced: bool,
    /// Since when it cannot be listed or watched, if that is so.
    pub failing_since: Option<Instant>,
    /// Why.
    pub last_error: Option<Arc<str>>,
    /// How often it was listed.
    pub lists: u64,
    /// How often a watch was opened; all but the first are restarts.
    pub watches: u64,
    /// How many objects reads and mappers have been answered with so far: each of them was decoded, or its metadata was.
    pub reads: u64,
    /// How many objects are cached.
    pub objects: usize,
    /// How many bytes they take, about.
    pub bytes: usize,
    /// How many of them are missing in an [index](crate::Controller::index) because they do not decode; the log names each.
    pub unindexed: usize,
}

/// Whether a kind is listed and watched.
#[derive(Clone, Debug, Default)]
pub(crate) struct Health {
    /// Whether reads can be answered: it has been listed, or an optional kind is known not to be installed.
    pub(crate) listed: bool,
    /// Whether the API server does not serve the kind, which is optional.
    pub(crate) missing: bool,
    pub(crate) failure: Option<Arc<str>>,
    pub(crate) failing_since: Option<Instant>,
    pub(crate) lists: u64,
    pub(crate) watches: u64,
}

impl Health {
    pub(crate) fn is_well(&self) -> bool {
        self.listed && self.failure.is_none()
    }

    /// All as one: listed once all are, failing as soon as one is.
    pub(super) fn of_all(all: &[Health]) -> Health {
        let failing = all.iter().filter(|health| health.failure.is_some());
        let first = failing.min_by_key(|health| health.failing_since);
        Health {
            listed: all.iter().all(|health| health.listed),
            missing: all.iter().any(|health| health.missing),
            failure: first.and_then(|health| health.failure.clone()),
            failing_since: first.and_then(|health| health.failing_since),
            lists: all.iter().map(|health| health.lists).sum(),
            watches: all.iter().map(|health| health.watches).sum(),
        }
    }

    /// Why reads cannot be answered and are not to wait: something fails that was never listed.
    pub(super) fn unlisted(all: &[Health]) -> Option<Arc<str>> {
        all.iter().filter(|health| !health.listed).find_map(|health| health.failure.clone())
    }
}
