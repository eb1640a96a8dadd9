//! A store to which things happen: for tests of whoever uses one. What happens is chosen by a seed, so that it can be
//! repeated.

use crate::{
    Backend, Committed, Entry, Error, Health, Op, Page, Range, Result, Snapshot, Store, Watch, disk::journal,
    testing::Chance,
};
use bytes::Bytes;
use futures::future::{self, BoxFuture, FutureExt};
use std::{
    io,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::time::{Instant, sleep, sleep_until};

/// How often what happens: once in so many operations, and never where it is 0.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// What repeats the choices.
    pub seed: u64,
    /// An operation is refused, and nothing of it is done.
    pub refused: usize,
    /// An operation is done up to a second later.
    pub delayed: usize,
    /// A commit is lost on its way, and whoever sent it does not know.
    pub lost: usize,
    /// A commit is done, and whoever sent it does not get to know.
    pub unacknowledged: usize,
    /// For three seconds nobody answers.
    pub unavailable: usize,
    /// For one second commits wait for a new leader; some of them are lost, or done, without an answer.
    pub leader_change: usize,
    /// So many bytes of keys and values fit; then the disk is full.
    pub room: Option<usize>,
}

const OUTAGE: Duration = Duration::from_secs(3);
const ELECTION: Duration = Duration::from_secs(1);

impl Faults {
    /// Puts a store behind these faults.
    pub fn on(self, store: Store) -> Store {
        let state = State {
            chance: Chance::new(self.seed),
            written: 0,
            silent_until: None,
            leader_at: None,
        };
        Store::new(Faulty { store, faults: self, state: Mutex::new(state) })
    }
}

/// Cuts off the last thing that was written to a data directory, at a byte that chance chooses, as a machine does that dies
/// in the middle of a write; the store must not be open. Says whether there was anything.
pub fn tear(directory: &Path, chance: &mut Chance) -> io::Result<bool> {
    journal::tear(&directory.join("store"), |length| chance.below(length))
}

struct Faulty {
    store: Store,
    faults: Faults,
    state: Mutex<State>,
}

struct State {
    chance: Chance,
    written: usize,
    silent_until: Option<Instant>,
    leader_at: Option<Instant>,
}

/// What happens to one operation.
enum Fate {
    Done,
    Delayed(Duration),
    Refused,
    Silence,
    Full,
    Lost,
    Unacknowledged,
    AfterElection(Instant),
}

impl State {
    /// What happens to any operation.
    fn fate(&mut self, faults: &Faults) -> Fate {
        let now = Instant::now();
        if self.silent_until.is_some_and(|until| now < until) {
            return Fate::Silence;
        }
        if self.happens(faults.unavailable) {
            self.silent_until = Some(now + OUTAGE);
            return Fate::Silence;
        }
        if self.happens(faults.refused) {
            return Fate::Refused;
        }
        if self.happens(faults.delayed) {
            return Fate::Delayed(Duration::from_millis(self.chance.below(1_000) as u64));
        }
        Fate::Done
    }

    /// What happens to a commit.
    fn commit_fate(&mut self, faults: &Faults, ops: &[Op]) -> Fate {
        let size = ops.iter().map(size).sum::<usize>();
        if faults.room.is_some_and(|room| self.written + size > room) {
            return Fate::Full;
        }
        self.written += size;
        let now = Instant::now();
        if self.happens(faults.leader_change) {
            self.leader_at = Some(now + ELECTION);
        }
        match self.leader_at.filter(|at| now < *at) {
            Some(at) => match self.chance.below(3) {
                0 => Fate::Lost,
                1 => Fate::Unacknowledged,
                _ => Fate::AfterElection(at),
            },
            None if self.happens(faults.lost) => Fate::Lost,
            None if self.happens(faults.unacknowledged) => Fate::Unacknowledged,
            None => self.fate(faults),
        }
    }

    fn happens(&mut self, times: usize) -> bool {
        times > 0 && self.chance.sometimes(times)
    }
}

fn size(op: &Op) -> usize {
    match op {
        Op::Put { key, value, .. } => key.len() + value.bytes.len(),
        Op::Delete { key, .. } | Op::Check { key, .. } => key.len(),
    }
}

impl Faulty {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets happen what happens before an operation, if it is done at all.
    async fn before(&self, fate: Fate) -> Result<()> {
        match fate {
            Fate::Done | Fate::Unacknowledged => {}
            Fate::Delayed(time) => sleep(time).await,
            Fate::AfterElection(at) => sleep_until(at).await,
            Fate::Refused => {
                let reason = "it was asked to".to_owned();
                return Err(Error::Refused { place: PLACE.to_owned(), reason });
            }
            Fate::Full => return Err(Error::Full { path: PLACE.into() }),
            Fate::Silence | Fate::Lost => return Err(silence()),
        }
        Ok(())
    }

    async fn any(&self) -> Result<()> {
        let fate = self.state().fate(&self.faults);
        self.before(fate).await
    }
}

const PLACE: &str = "the faulty store";

fn silence() -> Error {
    let source = io::Error::from(io::ErrorKind::TimedOut);
    Error::Unavailable { place: PLACE.to_owned(), source: Arc::new(source) }
}

impl Backend for Faulty {
    fn get<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Entry>>> {
        async move {
            self.any().await?;
            self.store.get(key).await
        }
        .boxed()
    }

    fn range(&self, range: Range) -> BoxFuture<'_, Result<Page>> {
        async move {
            self.any().await?;
            self.store.range(range).await
        }
        .boxed()
    }

    fn snapshot(&self) -> BoxFuture<'_, Result<Snapshot>> {
        async move {
            self.any().await?;
            self.store.snapshot().await
        }
        .boxed()
    }

    fn commit(&self, ops: Vec<Op>) -> BoxFuture<'_, Result<Committed>> {
        async move {
            let fate = self.state().commit_fate(&self.faults, &ops);
            let is_untold = matches!(fate, Fate::Unacknowledged);
            self.before(fate).await?;
            let committed = self.store.commit(ops).await;
            if is_untold { Err(silence()) } else { committed }
        }
        .boxed()
    }

    fn watch(&self, prefix: Bytes, after: u64) -> BoxFuture<'_, Result<Watch>> {
        async move {
            self.any().await?;
            self.store.watch(prefix, after).await
        }
        .boxed()
    }

    fn compact(&self, revision: u64) -> BoxFuture<'_, Result<()>> {
        async move {
            self.any().await?;
            self.store.compact(revision).await
        }
        .boxed()
    }

    fn revision(&self) -> u64 {
        self.store.revision()
    }

    fn reached(&self, revision: u64) -> BoxFuture<'_, ()> {
        self.store.reached(revision).boxed()
    }

    fn health(&self) -> BoxFuture<'_, Health> {
        let (now, state) = (Instant::now(), self.state());
        let is_silent = state.silent_until.is_some_and(|until| now < until);
        let is_full = self.faults.room.is_some_and(|room| state.written >= room);
        drop(state);
        match (is_silent, is_full) {
            (true, _) => future::ready(Health::unavailable(&silence())).boxed(),
            (_, true) => future::ready(Health::read_only(&Error::Full { path: PLACE.into() })).boxed(),
            _ => self.store.health().boxed(),
        }
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.store.close().boxed()
    }
}
