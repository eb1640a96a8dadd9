//! The watches of a model's run.

use super::{
    chance::Chance,
    expected::prefix,
    model::{Run, again, text},
};
use crate::{Error, Event, Result, Store, Watch};
use futures::{FutureExt, future::BoxFuture};
use std::collections::VecDeque;

/// A watch, and the events that it has yet to deliver.
pub(super) struct Watching {
    watch: Watch,
    prefix: String,
    events: VecDeque<Event>,
}

impl Watching {
    /// Expects an event, if it is under the watch's prefix.
    pub fn expect(&mut self, event: &Event) {
        if event.key.starts_with(self.prefix.as_bytes()) {
            self.events.push_back(event.clone());
        }
    }

    /// Takes some of the expected events; returns `false` where the watch is ended because it was too far behind.
    async fn take(&mut self, count: usize, compacted: u64) -> bool {
        for wanted in self.events.drain(..count) {
            let seen = self.watch.revision();
            match self.watch.next().await.expect("a watch ends with an error only") {
                Ok(found) => assert_eq!(*found, wanted, "watch {}", self.prefix),
                Err(error) => return assert_behind(&self.prefix, seen, compacted, &error),
            }
        }
        if !self.events.is_empty() {
            return true;
        }
        let seen = self.watch.revision();
        match self.watch.next().now_or_never() {
            None => true,
            Some(Some(Err(error))) => assert_behind(&self.prefix, seen, compacted, &error),
            Some(event) => panic!("watch {}: {event:?} did not happen", self.prefix),
        }
    }
}

/// A watch may be ended only where it has not advanced up to the compacted revision. One whose keys are quiet advances only
/// with progress notifications; where its connection breaks before one, it may have missed changes.
fn assert_behind(prefix: &str, seen: u64, compacted: u64, error: &Error) -> bool {
    let Error::Compacted { requested, .. } = error else {
        panic!("watch {prefix}: {error}");
    };
    let advanced = seen.max(*requested);
    assert!(
        advanced < compacted,
        "watch {prefix}: {error}, but it advanced to {advanced}, and {compacted} is compacted"
    );
    false
}

impl<O: Fn() -> BoxFuture<'static, Result<Store>>> Run<O> {
    pub(super) async fn watch(&mut self, chance: &mut Chance) {
        let prefix = prefix(chance);
        let after = self.expected.some_revision(chance);
        let watch = again(async || self.store.watch(prefix.clone(), after).await).await;
        match (self.expected.check(after), watch) {
            (Ok(()), Ok(watch)) => {
                let events = self.expected.events_after(after, &prefix);
                self.watches.push(Watching { watch, prefix, events });
            }
            (Err(wanted), Err(found)) => assert_eq!(text(found), text(wanted)),
            (wanted, found) => {
                let found = found.map(|_| ());
                panic!("watch {prefix} after {after}: found {found:?}, wanted {wanted:?}")
            }
        }
        if self.watches.len() > 8 {
            self.watches.swap_remove(chance.below(8));
        }
        self.done += 1;
    }

    /// Takes some or all of a watch's expected events.
    pub(super) async fn take(&mut self, chance: &mut Chance) {
        self.done += 1;
        if self.watches.is_empty() {
            return;
        }
        let at = chance.below(self.watches.len());
        let watching = &mut self.watches[at];
        let count = if chance.sometimes(2) {
            watching.events.len()
        } else {
            chance.below(watching.events.len() + 1)
        };
        if !watching.take(count, self.expected.compacted).await {
            self.watches.swap_remove(at);
        }
    }

    /// Resumes each watch on a reopened store, where the history still reaches back far enough.
    pub(super) async fn resume(&mut self) {
        for mut watching in std::mem::take(&mut self.watches) {
            let after = watching.watch.revision();
            match again(async || self.store.watch(watching.prefix.clone(), after).await).await {
                Ok(watch) => watching.watch = watch,
                Err(Error::Compacted { .. }) => continue,
                Err(error) => panic!("watch {} after {after}: {error}", watching.prefix),
            }
            watching.events = self.expected.events_after(after, &watching.prefix);
            self.watches.push(watching);
        }
    }
}
