//! Runs random operations on a store and on its model, and compares the answers.

use super::{
    chance::Chance,
    commits::Order,
    expected::{Expected, key, prefix},
    watches::Watching,
};
use crate::{Error, Page, Range, Result, Store, Watch};
use futures::future::BoxFuture;

/// A comparison of a store with its model; a difference panics.
pub struct Model<O> {
    open: O,
    order: Order,
    /// Whether what was written is there when the store is opened again.
    is_durable: bool,
    history: Option<u64>,
}

impl<O: Fn() -> BoxFuture<'static, Result<Store>>> Model<O> {
    /// Compares the store that `open` opens: a durable one, which applies commits in the order in which they are sent.
    pub fn new(open: O) -> Model<O> {
        Model { open, order: Order::AsSent, is_durable: true, history: None }
    }

    /// Never reopens the store, because it is not durable.
    pub fn volatile(self) -> Model<O> {
        Model { is_durable: false, ..self }
    }

    /// Expects the store to compact its history to this many revisions by itself.
    pub fn history(self, revisions: u64) -> Model<O> {
        Model { history: Some(revisions), ..self }
    }

    /// Allows commits that are sent together to be applied in any order, and to have an unknown outcome.
    pub fn concurrent(self) -> Model<O> {
        Model { order: Order::AsCommitted, ..self }
    }

    /// Runs random operations; `FLYBALL_OPERATIONS` overrides their number.
    pub async fn run(self, chance: Chance, operations: usize) {
        self.run_on(chance, operations, || false).await;
    }

    /// Runs random operations, and continues as long as more are wanted.
    pub async fn run_on(self, mut chance: Chance, operations: usize, is_more_wanted: impl Fn() -> bool) {
        let operations = match std::env::var("FLYBALL_OPERATIONS") {
            Ok(text) => text.parse().expect("FLYBALL_OPERATIONS is a number"),
            Err(_) => operations,
        };
        println!("FLYBALL_SEED={}", chance.seed);
        let mut run = Run::start(self).await;
        while run.done < operations || is_more_wanted() {
            match chance.below(1_000) {
                0..300 => run.commit(&mut chance).await,
                300..450 => run.get(&mut chance).await,
                450..600 => run.range(&mut chance).await,
                600..640 => run.watch(&mut chance).await,
                640..990 => run.take(&mut chance).await,
                990..999 => run.compact(&mut chance).await,
                _ => run.reopen().await,
            }
        }
        run.store.close().await;
    }
}

/// A store, its model, and the watches on it.
pub(super) struct Run<O> {
    pub model: Model<O>,
    pub store: Store,
    pub expected: Expected,
    pub watches: Vec<Watching>,
    /// A watch on all keys, for stores that choose the order of commits themselves.
    pub log: Watch,
    pub done: usize,
}

impl<O: Fn() -> BoxFuture<'static, Result<Store>>> Run<O> {
    async fn start(model: Model<O>) -> Run<O> {
        let store = (model.open)().await.expect("the store can be opened");
        let revision = store.revision();
        Run {
            model,
            log: again(async || store.watch("", revision).await).await.expect("a watch from now on"),
            store,
            expected: Expected::at(revision),
            watches: Vec::new(),
            done: 0,
        }
    }

    async fn commit(&mut self, chance: &mut Chance) {
        self.done += match self.model.order {
            Order::AsSent => self.commit_in_order(chance).await,
            Order::AsCommitted => self.commit_in_any_order(chance).await,
        };
        assert_eq!(self.store.revision(), self.expected.revision);
        self.follow().await;
    }

    /// Compares the bound of the history, and passes new events to the watches.
    async fn follow(&mut self) {
        if let Some(bound) = self.model.history {
            let oldest = match self.store.watch("", 0).await {
                Err(Error::Compacted { oldest, .. }) => oldest,
                watch => watch.map(|_| 0).expect("nothing but compaction refuses a watch"),
            };
            let kept = self.expected.revision - oldest;
            let is_cut = oldest > self.expected.compacted;
            let is_right = oldest >= self.expected.compacted && (!is_cut || (bound..bound + 100).contains(&kept));
            assert!(is_right, "{kept} are kept");
            self.expected.compact(oldest);
        }
        for event in self.expected.events.drain(..) {
            for watching in &mut self.watches {
                watching.expect(&event);
            }
        }
    }

    async fn get(&mut self, chance: &mut Chance) {
        let key = key(chance);
        let wanted = self.expected.get(key.as_bytes(), self.expected.revision).cloned();
        let found = again(async || self.store.get(&key).await).await;
        assert_eq!(found.expect("a read never fails"), wanted);
        self.done += 1;
    }

    async fn range(&mut self, chance: &mut Chance) {
        let range = Range {
            prefix: prefix(chance).into(),
            start: chance.sometimes(3).then(|| key(chance).into()),
            limit: chance.sometimes(2).then(|| chance.below(6)),
            revision: chance.sometimes(2).then(|| self.expected.some_revision(chance)),
        };
        let wanted = self.expected.range(&range);
        let found = again(async || self.store.range(range.clone()).await).await;
        assert_same_page(&range, found, wanted);
        self.done += 1;
    }

    async fn compact(&mut self, chance: &mut Chance) {
        let revision = self.expected.some_revision(chance);
        let compacted = again(async || self.store.compact(revision).await).await;
        match self.expected.check(revision) {
            Ok(()) => {
                compacted.unwrap_or_else(|error| panic!("compact {revision}: {error}"));
                self.expected.compact(revision);
            }
            Err(wanted) => assert_eq!(compacted.err().map(text), Some(text(wanted))),
        }
        self.done += 1;
    }

    /// Closes the store and opens it again; watches go on where they were, if the history still reaches there.
    async fn reopen(&mut self) {
        if !self.model.is_durable {
            return;
        }
        self.store.close().await;
        self.store = (self.model.open)().await.expect("the store can be opened again");
        let revision = self.expected.revision;
        assert_eq!(self.store.revision(), revision);
        self.log = again(async || self.store.watch("", revision).await).await.expect("a watch from now on");
        self.resume().await;
        self.done += 1;
    }
}

/// Repeats a request as long as the store does not answer.
pub(super) async fn again<T>(ask: impl AsyncFn() -> Result<T>) -> Result<T> {
    for _ in 0..100 {
        match ask().await {
            Err(Error::Unavailable { .. }) => tokio::time::sleep(std::time::Duration::from_millis(100)).await,
            answer => return answer,
        }
    }
    ask().await
}

pub(super) fn text(error: Error) -> String {
    error.to_string()
}

fn assert_same_page(range: &Range, found: Result<Page>, wanted: Result<Page>) {
    match (found, wanted) {
        (Ok(found), Ok(wanted)) => assert_eq!(found, wanted, "{range:?}"),
        (Err(found), Err(wanted)) => assert_eq!(text(found), text(wanted), "{range:?}"),
        (found, wanted) => panic!("{range:?}: found {found:?}, wanted {wanted:?}"),
    }
}
