//! A store with injected faults, for tests of its users. A seed chooses the faults, so that a run can be repeated.

use crate::{
    Backend, Committed, Entry, Error, Health, Op, Page, Range, Result, Snapshot, Store, Watch, testing::Chance,
};
use bytes::Bytes;
use futures::future::{self, BoxFuture, FutureExt};
use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::time::{Instant, sleep, sleep_until};

/// How often each fault happens: once in that many operations, never where it is 0.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// The seed of the choices.
    pub seed: u64,
    /// An operation is refused, and not done.
    pub refused: usize,
    /// An operation is done up to a second later.
    pub delayed: usize,
    /// A commit is not done, and its outcome is unknown to the caller.
    pub lost: usize,
    /// A commit is done, and its outcome is unknown to the caller.
    pub unacknowledged: usize,
    /// The store does not answer for three seconds.
    pub unavailable: usize,
    /// For one second commits wait for a new leader; some of them are lost, or done, without an answer.
    pub leader_change: usize,
    /// The most bytes of keys and values that fit; then the disk is full.
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

/// The fault that happens to one operation.
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
    /// Chooses what happens to any operation.
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

    /// Chooses what happens to a commit.
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

    /// Applies a fault before an operation, or instead of it.
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

    /// Runs an operation, unless a fault keeps it from being done.
    async fn read<T>(&self, operation: impl Future<Output = Result<T>>) -> Result<T> {
        let fate = self.state().fate(&self.faults);
        self.before(fate).await?;
        operation.await
    }
}

const PLACE: &str = "the faulty store";

fn silence() -> Error {
    let source = io::Error::from(io::ErrorKind::TimedOut);
    Error::Unavailable { place: PLACE.to_owned(), source: Arc::new(source) }
}

impl Backend for Faulty {
    fn get<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Entry>>> {
        self.read(self.store.get(key)).boxed()
    }

    fn range(&self, range: Range) -> BoxFuture<'_, Result<Page>> {
        self.read(self.store.range(range)).boxed()
    }

    fn snapshot(&self) -> BoxFuture<'_, Result<Snapshot>> {
        self.read(self.store.snapshot()).boxed()
    }

    fn commit(&self, ops: Vec<Op>) -> BoxFuture<'_, Result<Committed>> {
        async move {
            let fate = self.state().commit_fate(&self.faults, &ops);
            let is_unacknowledged = matches!(fate, Fate::Unacknowledged);
            self.before(fate).await?;
            let committed = self.store.commit(ops).await;
            if is_unacknowledged { Err(silence()) } else { committed }
        }
        .boxed()
    }

    fn watch(&self, prefix: Bytes, after: u64) -> BoxFuture<'_, Result<Watch>> {
        self.read(self.store.watch(prefix, after)).boxed()
    }

    fn compact(&self, revision: u64) -> BoxFuture<'_, Result<()>> {
        self.read(self.store.compact(revision)).boxed()
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
