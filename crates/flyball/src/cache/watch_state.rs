//! How a watch fares, for whoever asks whether an operator is ready.

use std::sync::Arc;
use tokio::time::Instant;

/// One kind's watch at this moment, and how much it has brought into the cache.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WatchState {
    /// The kind.
    pub kind: String,
    /// Its group and version, as in manifests.
    pub api_version: String,
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
    /// How many objects are cached.
    pub objects: usize,
    /// How many bytes they take, about.
    pub bytes: usize,
}
