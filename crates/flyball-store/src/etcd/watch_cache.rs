//! The recent changes that one watch on etcd has delivered, for all local watches.

use crate::{
    Error, Options, Result, Watch,
    history::{Change, History},
    read_snapshot::ReadSnapshot,
    watch_hub::WatchHub,
};
use bytes::Bytes;
use std::sync::{Arc, PoisonError, RwLock};

/// The recent changes, and the local watches.
pub(crate) struct WatchCache {
    options: Options,
    state: RwLock<State>,
    pub hub: Arc<WatchHub>,
}

struct State {
    history: History,
    revision: u64,
}

impl WatchCache {
    /// Begins after a revision.
    pub fn new(options: Options, revision: u64) -> WatchCache {
        let mut history = History::default();
        history.compact(revision);
        WatchCache {
            hub: Arc::new(WatchHub::new(options.watch_bytes, revision)),
            state: RwLock::new(State { history, revision }),
            options,
        }
    }

    /// Returns the revision up to which every change was delivered.
    pub fn revision(&self) -> u64 {
        self.state.read().unwrap_or_else(PoisonError::into_inner).revision
    }

    /// Watches after a revision; refuses one from before the cache begins.
    pub fn watch(&self, prefix: Bytes, after: u64) -> Result<Watch> {
        self.hub.add(prefix, after, || {
            let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
            let oldest = state.history.compacted();
            if after < oldest {
                return Err(Error::Compacted { requested: after, oldest });
            }
            // Changes that are committed but not delivered yet come through the queue.
            Ok((state.history.since(after), state.revision.max(after), ReadSnapshot::default()))
        })
    }

    /// Adds the changes up to a revision, and publishes them.
    pub fn add(&self, changes: &[Change], revision: u64) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let cost = changes.iter().map(Change::cost).sum();
        let excess = state.history.excess(&self.options, cost, revision);
        let removed = state.history.compact(excess);
        changes.iter().for_each(|change| state.history.push(change.clone()));
        state.revision = revision;
        drop(state);
        drop(removed);
        self.hub.publish(changes, revision, ReadSnapshot::default);
    }

    /// Begins again after a revision, because the changes up to it were compacted: ends all watches.
    pub fn skip(&self, revision: u64) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let requested = state.revision;
        state.history.compact(revision);
        state.revision = revision;
        drop(state);
        self.hub.end(|| Error::Compacted { requested, oldest: revision });
        self.hub.publish(&[], revision, ReadSnapshot::default);
    }
}
