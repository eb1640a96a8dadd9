//! Watches a prefix of etcd's keys, over as many connections as it takes, without missing a change.

use super::{
    client::Client,
    keys::Keys,
    watch_cache::WatchCache,
    wire::{DELETE, WatchAsk, WatchCreate, WatchEvent, WatchRequest, WatchResponse},
};
use crate::{history::Change, record::Record};
use bytes::Bytes;
use futures::channel::mpsc;
use std::{collections::HashMap, sync::Arc, time::Duration};
use tokio::time::{MissedTickBehavior, interval};
use tonic::Status;

/// How often progress is requested from etcd, so that watches of quiet keys advance too.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);

/// What to watch, and where to keep the changes.
pub(crate) struct Watcher {
    pub client: Arc<Client>,
    pub keys: Keys,
    pub prefix: Bytes,
    pub cache: Arc<WatchCache>,
}

/// Why a connection ended.
enum Disconnect {
    Failed(Status),
    Compacted(u64),
}

impl Watcher {
    /// Watches until it is aborted; calls `progress` with every revision that is reached.
    pub async fn run(self, mut progress: impl FnMut(u64)) {
        loop {
            match self.listen(&mut progress).await {
                Disconnect::Failed(status) => self.client.recover(&status).await,
                Disconnect::Compacted(revision) => self.cache.skip(revision.max(self.cache.revision())),
            }
        }
    }

    /// Reads from one connection as long as it lasts.
    async fn listen(&self, progress: &mut impl FnMut(u64)) -> Disconnect {
        let (requests, stream) = mpsc::unbounded();
        let ask = |ask| drop(requests.unbounded_send(WatchRequest { ask: Some(ask) }));
        ask(WatchAsk::Create(WatchCreate {
            key: self.keys.outer(&self.prefix),
            range_end: self.keys.end(&self.prefix),
            start_revision: self.cache.revision() as i64 + 1,
            progress_notify: true,
            prev_kv: true,
        }));
        let member = self.client.current();
        let is_progress_exact = self.client.has_exact_progress(member).await;
        let mut answers = match self.client.watch(member, stream).await {
            Ok(answers) => answers,
            Err(status) => return Disconnect::Failed(status),
        };
        let mut ticks = interval(PROGRESS_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                answer = answers.message() => match answer {
                    Ok(Some(answer)) => match self.take(answer) {
                        Ok(revision) => progress(revision),
                        Err(disconnect) => return disconnect,
                    },
                    Ok(None) => return Disconnect::Failed(Status::unavailable("the watch ended")),
                    Err(status) => return Disconnect::Failed(status),
                },
                _ = ticks.tick(), if is_progress_exact => ask(WatchAsk::Progress(())),
            }
        }
    }

    /// Takes an answer; returns the revision up to which every change is delivered then.
    fn take(&self, answer: WatchResponse) -> Result<u64, Disconnect> {
        if answer.compact_revision > 0 {
            return Err(Disconnect::Compacted(answer.compact_revision as u64));
        }
        if answer.canceled {
            return Err(Disconnect::Failed(Status::unavailable(answer.cancel_reason)));
        }
        let known = self.cache.revision();
        let last = answer.events.last().and_then(|event| event.kv.as_ref());
        let revision = match (last, &answer.header) {
            (Some(pair), _) => pair.mod_revision as u64,
            // Progress: every change up to here was delivered. The answer to the creation does not mean that.
            (None, Some(header)) if !answer.created => header.revision as u64,
            _ => known,
        };
        if revision > known {
            let changes = self.changes(answer.events).ok_or(Disconnect::Compacted(revision))?;
            self.cache.add(&changes, revision);
        }
        Ok(revision.max(known))
    }

    /// The changes of some events; `None` where a previous value is compacted, or was not written by a store.
    fn changes(&self, events: Vec<WatchEvent>) -> Option<Vec<Change>> {
        let mut positions = HashMap::new();
        let change = |event: WatchEvent| {
            let pair = event.kv?;
            let revision = pair.mod_revision as u64;
            let position = positions.entry(revision).and_modify(|position| *position += 1).or_insert(0);
            let is_removal = event.kind == DELETE;
            let is_new = !is_removal && pair.create_revision == pair.mod_revision;
            let previous = match event.prev_kv {
                Some(pair) => Some(Record::of(&self.keys.entry(&pair)?, 0)),
                None if is_new => None,
                None => return None,
            };
            let record = if is_removal {
                Record::removal(pair.key.get(self.keys.0.len()..)?, revision, *position)
            } else {
                Record::of(&self.keys.entry(&pair)?, *position)
            };
            Some(Change { record, previous })
        };
        events.into_iter().map(change).collect()
    }
}
