//! Follows what happens in etcd under some keys, over as many connections as it takes, missing nothing.

use super::{
    client::Client,
    keys::Keys,
    recent::Recent,
    wire::{DELETE, WatchAsk, WatchCreate, WatchEvent, WatchProgress, WatchRequest, WatchResponse},
};
use crate::{history::Change, record::Record};
use bytes::Bytes;
use futures::channel::mpsc;
use std::{collections::HashMap, sync::Arc, time::Duration};
use tokio::time::{MissedTickBehavior, interval};
use tonic::Status;

/// How often etcd is asked how far it has told everything, so that quiet watchers know too.
const PROGRESS_EVERY: Duration = Duration::from_secs(5);

/// What to follow, and whom to tell.
pub(crate) struct Follow {
    pub client: Arc<Client>,
    pub keys: Keys,
    pub prefix: Bytes,
    pub recent: Arc<Recent>,
}

/// Why a connection was left.
enum Left {
    Failed(Status),
    Compacted(u64),
}

impl Follow {
    /// Follows until it is aborted; `progress` hears of every revision that is reached.
    pub async fn run(self, mut progress: impl FnMut(u64)) {
        loop {
            match self.listen(&mut progress).await {
                Left::Failed(status) => self.client.recover(&status).await,
                Left::Compacted(revision) => self.recent.skip(revision.max(self.recent.revision())),
            }
        }
    }

    /// Listens to one connection as long as it lasts.
    async fn listen(&self, progress: &mut impl FnMut(u64)) -> Left {
        let (requests, stream) = mpsc::unbounded();
        let ask = |ask| drop(requests.unbounded_send(WatchRequest { ask: Some(ask) }));
        ask(WatchAsk::Create(WatchCreate {
            key: self.keys.outer(&self.prefix),
            range_end: self.keys.end(&self.prefix),
            start_revision: self.recent.revision() as i64 + 1,
            prev_kv: true,
        }));
        let mut answers = match self.client.watch(stream).await {
            Ok(answers) => answers,
            Err(status) => return Left::Failed(status),
        };
        let mut ticks = interval(PROGRESS_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                answer = answers.message() => match answer {
                    Ok(Some(answer)) => match self.take(answer) {
                        Ok(revision) => progress(revision),
                        Err(left) => return left,
                    },
                    Ok(None) => return Left::Failed(Status::unavailable("the watch ended")),
                    Err(status) => return Left::Failed(status),
                },
                _ = ticks.tick() => ask(WatchAsk::Progress(WatchProgress {})),
            }
        }
    }

    /// Takes up an answer; returns the revision up to which everything is known then.
    fn take(&self, answer: WatchResponse) -> Result<u64, Left> {
        if answer.compact_revision > 0 {
            return Err(Left::Compacted(answer.compact_revision as u64));
        }
        if answer.canceled {
            return Err(Left::Failed(Status::unavailable(answer.cancel_reason)));
        }
        let known = self.recent.revision();
        let last = answer.events.last().and_then(|event| event.kv.as_ref());
        let revision = match (last, &answer.header) {
            (Some(pair), _) => pair.mod_revision as u64,
            // Progress: everything up to here has been told. The answer to the creation says no such thing.
            (None, Some(header)) if !answer.created => header.revision as u64,
            _ => known,
        };
        if revision > known {
            let changes = self.changes(answer.events).ok_or(Left::Compacted(revision))?;
            self.recent.take(&changes, revision);
        }
        Ok(revision.max(known))
    }

    /// What the events are to a store; `None` where what was there before is compacted, or was written by something else.
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
