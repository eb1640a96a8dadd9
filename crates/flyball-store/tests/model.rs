//! Random operations on each kind of store and on a simple model of it. `FLYBALL_SEED` repeats a run, `FLYBALL_OPERATIONS`
//! makes it longer.
#![allow(clippy::unwrap_used)]

mod model {
    pub mod chance;
    pub mod expected;
}

use flyball_store::{Committed, Error, Event, Options, Page, Range, Result, Store, Watch};
use futures::{FutureExt, future::join_all};
use model::{
    chance::Chance,
    expected::{Expected, key, prefix},
};
use std::{collections::VecDeque, path::PathBuf, sync::Arc};

const OPTIONS: Options = Options {
    history_revisions: 500,
    history_bytes: 64 << 20,
    watch_bytes: 64 << 20,
};

#[tokio::test]
async fn memory_does_as_its_model() {
    run(None).await;
}

#[tokio::test]
async fn disk_does_as_its_model_and_reopens_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    run(Some(directory.path().to_owned())).await;
}

async fn run(path: Option<PathBuf>) {
    let mut chance = Chance::from_environment();
    let operations = std::env::var("FLYBALL_OPERATIONS").map_or(100_000, |text| text.parse().unwrap());
    println!("FLYBALL_SEED={}", chance.seed);
    let mut run = Run {
        store: open(&path).await,
        path,
        expected: Expected::default(),
        watches: Vec::new(),
        done: 0,
    };
    while run.done < operations {
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
}

async fn open(path: &Option<PathBuf>) -> Store {
    match path {
        Some(path) => OPTIONS.open(path).await.unwrap(),
        None => OPTIONS.memory(),
    }
}

struct Run {
    store: Store,
    path: Option<PathBuf>,
    expected: Expected,
    watches: Vec<Watching>,
    done: usize,
}

/// A watch, and what it has yet to hand out.
struct Watching {
    watch: Watch,
    prefix: String,
    events: VecDeque<Event>,
}

impl Run {
    /// Commits some batches at once; they take effect in the order in which they are sent.
    async fn commit(&mut self, chance: &mut Chance) {
        let count = 1 + chance.below(80);
        let mut wanted = Vec::new();
        let mut sent = Vec::new();
        for _ in 0..count {
            let ops = self.expected.ops(chance);
            sent.push(self.store.commit(ops.clone()));
            wanted.push(self.expected.commit(ops));
        }
        for (committed, wanted) in join_all(sent).await.into_iter().zip(wanted) {
            assert_same_commit(committed, wanted);
        }
        self.done += count;
        assert_eq!(self.store.revision(), self.expected.revision);
        self.follow().await;
    }

    /// Learns how far the history reaches, and hands new events to the watches.
    async fn follow(&mut self) {
        let oldest = match self.store.watch("", 0).await {
            Err(Error::Compacted { oldest, .. }) => oldest,
            Err(error) => panic!("{error}"),
            Ok(_) => 0,
        };
        let kept = self.expected.revision - oldest;
        let is_cut = oldest > self.expected.compacted;
        assert!(
            oldest >= self.expected.compacted && (!is_cut || (500..600).contains(&kept)),
            "{kept} are kept"
        );
        self.expected.compact(oldest);
        for event in self.expected.events.drain(..) {
            for watching in &mut self.watches {
                if event.key.starts_with(watching.prefix.as_bytes()) {
                    watching.events.push_back(event.clone());
                }
            }
        }
    }

    async fn get(&mut self, chance: &mut Chance) {
        let key = key(chance);
        let wanted = self.expected.get(key.as_bytes(), self.expected.revision).cloned();
        assert_eq!(self.store.get(&key).await.unwrap(), wanted);
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
        assert_same_page(self.store.range(range).await, wanted);
        self.done += 1;
    }

    async fn watch(&mut self, chance: &mut Chance) {
        let prefix = prefix(chance);
        let after = self.expected.some_revision(chance);
        let watch = self.store.watch(prefix.clone(), after).await;
        match (self.expected.check(after), watch) {
            (Ok(()), Ok(watch)) => {
                let events = self.expected.events_after(after, &prefix);
                self.watches.push(Watching { watch, prefix, events });
            }
            (Err(wanted), Err(found)) => assert_eq!(found.to_string(), wanted.to_string()),
            (wanted, _) => panic!("watch {prefix} after {after} should be {wanted:?}"),
        }
        if self.watches.len() > 8 {
            self.watches.swap_remove(chance.below(8));
        }
        self.done += 1;
    }

    /// Takes some or all of what a watch has to hand out.
    async fn take(&mut self, chance: &mut Chance) {
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
        for wanted in watching.events.drain(..count) {
            let found: Arc<Event> = watching.watch.next().await.unwrap().unwrap();
            assert_eq!(*found, wanted);
        }
        if watching.events.is_empty() {
            assert!(watching.watch.next().now_or_never().is_none());
        }
    }

    async fn compact(&mut self, chance: &mut Chance) {
        let revision = self.expected.some_revision(chance);
        let compacted = self.store.compact(revision).await;
        match self.expected.check(revision) {
            Ok(()) => {
                compacted.unwrap();
                self.expected.compact(revision);
            }
            Err(wanted) => assert_eq!(compacted.unwrap_err().to_string(), wanted.to_string()),
        }
        self.done += 1;
    }

    /// Closes the store and opens it again; watches go on where they were, if the history still reaches there.
    async fn reopen(&mut self) {
        if self.path.is_none() {
            return;
        }
        self.store.close().await;
        self.store = open(&self.path).await;
        assert_eq!(self.store.revision(), self.expected.revision);
        for mut watching in std::mem::take(&mut self.watches) {
            let after = watching.watch.revision();
            let Ok(watch) = self.store.watch(watching.prefix.clone(), after).await else {
                continue;
            };
            watching.watch = watch;
            watching.events = self.expected.events_after(after, &watching.prefix);
            self.watches.push(watching);
        }
        self.done += 1;
    }
}

fn assert_same_commit(found: Result<Committed>, wanted: Result<Committed>) {
    match (found, wanted) {
        (Ok(found), Ok(wanted)) => {
            assert_eq!((found.revision, found.entries), (wanted.revision, wanted.entries));
        }
        (Err(Error::Conflict { key, current, .. }), Err(Error::Conflict { key: key_, current: current_, .. })) => {
            assert_eq!((key, current), (key_, current_));
        }
        (found, wanted) => panic!("found {found:?}, wanted {wanted:?}"),
    }
}

fn assert_same_page(found: Result<Page>, wanted: Result<Page>) {
    match (found, wanted) {
        (Ok(found), Ok(wanted)) => assert_eq!(found, wanted),
        (Err(found), Err(wanted)) => assert_eq!(found.to_string(), wanted.to_string()),
        (found, wanted) => panic!("found {found:?}, wanted {wanted:?}"),
    }
}
