//! What happened lately, as far as one watch on etcd has told of it, for all who watch here.

use crate::{
    Error, Options, Result, Watch,
    history::{Change, History},
    view::View,
    watchers::Watchers,
};
use bytes::Bytes;
use std::sync::{Arc, PoisonError, RwLock};

/// The recent changes, and who watches them.
pub(crate) struct Recent {
    options: Options,
    state: RwLock<State>,
    pub watchers: Arc<Watchers>,
}

struct State {
    history: History,
    revision: u64,
}

impl Recent {
    /// Begins after a revision.
    pub fn new(options: Options, revision: u64) -> Recent {
        let mut history = History::default();
        history.cut(revision);
        Recent {
            watchers: Arc::new(Watchers::new(options.watch_bytes, revision)),
            state: RwLock::new(State { history, revision }),
            options,
        }
    }

    /// Returns the revision up to which everything is known.
    pub fn revision(&self) -> u64 {
        self.state.read().unwrap_or_else(PoisonError::into_inner).revision
    }

    /// Watches after a revision; refuses one from before what is known here.
    pub fn watch(&self, prefix: Bytes, after: u64) -> Result<Watch> {
        self.watchers.add(prefix, after, || {
            let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
            let oldest = state.history.compacted();
            if after < oldest {
                return Err(Error::Compacted { requested: after, oldest });
            }
            // What is already committed but not told yet comes through the queue.
            Ok((state.history.since(after), state.revision.max(after), View::default()))
        })
    }

    /// Takes up changes that complete what is known up to a revision, and tells of them.
    pub fn take(&self, changes: &[Change], revision: u64) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let cost = changes.iter().map(Change::cost).sum();
        let cut = state.history.excess(&self.options, cost, revision);
        let gone = state.history.cut(cut);
        changes.iter().for_each(|change| state.history.push(change.clone()));
        state.revision = revision;
        drop(state);
        drop(gone);
        self.watchers.publish(changes, revision, View::default);
    }

    /// Begins anew after a revision, because what led there is not to be had: ends all watches.
    pub fn skip(&self, revision: u64) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let requested = state.revision;
        state.history.cut(revision);
        state.revision = revision;
        drop(state);
        self.watchers.end(|| Error::Compacted { requested, oldest: revision });
        self.watchers.publish(&[], revision, View::default);
    }
}
