//! The backend on etcd: reads and commits are etcd's own; one watch on it feeds all local watches.

mod client;
mod commit;
mod config;
mod keys;
mod read;
mod watch_cache;
mod watcher;
mod wire;

pub use config::{Etcd, Tls};

use crate::{
    Backend, Committed, Entry, Error, Health, Op, Options, Page, Range, Result, Snapshot, Watch, watch_hub::WatchHub,
};
use bytes::Bytes;
use client::Client;
use futures::future::{self, BoxFuture, FutureExt};
use keys::Keys;
use std::{
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::{self, watch},
    task::AbortHandle,
    time::timeout,
};
use watch_cache::WatchCache;
use watcher::Watcher;

/// How much of the recent past is kept locally, for watches that are resumed soon; older changes are read from etcd.
const CACHED: Options = Options {
    history_revisions: 100_000,
    history_bytes: 16 << 20,
    watch_bytes: 0,
    memory_bytes: 0,
};

/// How often etcd is polled for a revision that is waited for.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(5);
const MAX_POLL_INTERVAL: Duration = Duration::from_millis(200);

/// How long etcd may take to answer before it counts as unavailable, as in kube-apiserver's health check of etcd.
const HEALTH_WITHIN: Duration = Duration::from_secs(2);

/// A store in an etcd cluster.
#[derive(Clone)]
pub(crate) struct Remote(Arc<Shared>);

pub(crate) struct Shared {
    client: Arc<Client>,
    keys: Keys,
    options: Options,
    cache: Arc<WatchCache>,
    /// The latest revision that any answer named.
    revision: watch::Sender<u64>,
    /// Held by the one call that polls etcd for its revision, for all calls that wait for one.
    polling: sync::Mutex<()>,
    /// The latest revision up to which etcd is known to be compacted.
    compacted: AtomicU64,
    is_closed: AtomicBool,
    watching: Mutex<Watching>,
}

/// The watches on etcd: the shared one, and one for each local watch that began before the cache does.
#[derive(Default)]
struct Watching {
    shared: Option<Task>,
    single: Vec<Weak<WatchHub>>,
}

/// A task that is aborted with its owner.
pub(crate) struct Task(AbortHandle);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Shared {
    /// Notes a revision that etcd has reached.
    fn observe(&self, revision: u64) {
        self.revision.send_if_modified(|current| {
            let is_newer = revision > *current;
            *current = revision.max(*current);
            is_newer
        });
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.cache.hub.close();
    }
}

impl std::ops::Deref for Remote {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl Remote {
    pub async fn open(config: Etcd) -> Result<Remote> {
        let options = Options { watch_bytes: config.watch_bytes, ..CACHED };
        let client = Arc::new(Client::new(&config)?);
        let keys = Keys(config.prefix.clone());
        let revision = read::latest(&client, &keys).await?;
        let remote = Remote(Arc::new(Shared {
            client,
            keys,
            options,
            cache: Arc::new(WatchCache::new(options, revision)),
            revision: watch::Sender::new(revision),
            polling: sync::Mutex::default(),
            compacted: AtomicU64::new(0),
            is_closed: AtomicBool::new(false),
            watching: Mutex::default(),
        }));
        let shared = remote.start_watcher(remote.cache.clone(), Bytes::new(), config.history_revisions);
        remote.watching.lock().unwrap_or_else(PoisonError::into_inner).shared = Some(shared);
        Ok(remote)
    }

    /// Watches a prefix; has etcd compact its history, if asked to.
    fn start_watcher(&self, cache: Arc<WatchCache>, prefix: Bytes, keep: Option<u64>) -> Task {
        let watcher = Watcher {
            client: self.client.clone(),
            keys: self.keys.clone(),
            prefix,
            cache,
        };
        let shared = Arc::downgrade(&self.0);
        let mut compacted = self.revision();
        let progress = move |revision: u64| {
            let Some(shared) = shared.upgrade() else { return };
            shared.observe(revision);
            // Not with every revision: each compaction costs etcd a walk through its index.
            if let Some(keep) = keep.filter(|keep| revision > compacted + keep + keep / 4) {
                compacted = revision - keep;
                tokio::spawn(async move { Remote(shared).trim(revision - keep).await });
            }
        };
        Task(tokio::spawn(watcher.run(progress)).abort_handle())
    }

    /// Watches from before the cache begins, over a watch on etcd of its own.
    async fn watch_past(&self, prefix: Bytes, after: u64) -> Result<Watch> {
        self.check(after).await?;
        let cache = Arc::new(WatchCache::new(self.options, after));
        let watch = cache.watch(prefix.clone(), after)?;
        let mut watching = self.watching.lock().unwrap_or_else(PoisonError::into_inner);
        self.check_open()?;
        watching.single.retain(|hub| hub.strong_count() > 0);
        watching.single.push(Arc::downgrade(&cache.hub));
        Ok(watch.fed_by(self.start_watcher(cache, prefix, None)))
    }

    /// Compacts; another server may have done so already.
    async fn trim(&self, revision: u64) -> Result<()> {
        match self.compact_at(revision).await {
            Err(Error::Compacted { .. }) => Ok(()),
            compacted => compacted,
        }
    }

    /// Polls etcd for its revision until it is reached. Reads go to etcd itself, so its revision counts, not that of the
    /// cache. One call polls at a time; the others wait for the revisions that it observes.
    async fn poll_until(&self, revision: u64) {
        let _polling = self.polling.lock().await;
        let mut pause = MIN_POLL_INTERVAL;
        while self.revision() < revision {
            let latest = read::latest(&self.client, &self.keys).await;
            self.observe(latest.unwrap_or(0));
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(MAX_POLL_INTERVAL);
        }
    }

    fn check_open(&self) -> Result<()> {
        if self.is_closed.load(Ordering::Acquire) {
            Err(Error::Closed)
        } else {
            Ok(())
        }
    }
}

impl Backend for Remote {
    fn is_shared(&self) -> bool {
        true
    }

    fn get<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Entry>>> {
        self.read_one(key).boxed()
    }

    fn range(&self, range: Range) -> BoxFuture<'_, Result<Page>> {
        self.read_many(range).boxed()
    }

    fn snapshot(&self) -> BoxFuture<'_, Result<Snapshot>> {
        self.read_all().boxed()
    }

    fn commit(&self, ops: Vec<Op>) -> BoxFuture<'_, Result<Committed>> {
        self.transact(ops).boxed()
    }

    fn watch(&self, prefix: Bytes, after: u64) -> BoxFuture<'_, Result<Watch>> {
        async move {
            if after > self.revision() || after < self.compacted.load(Ordering::Relaxed) {
                self.check(after).await?;
            }
            match self.cache.watch(prefix.clone(), after) {
                Err(Error::Compacted { .. }) => self.watch_past(prefix, after).await,
                watch => watch,
            }
        }
        .boxed()
    }

    fn compact(&self, revision: u64) -> BoxFuture<'_, Result<()>> {
        self.compact_at(revision).boxed()
    }

    fn revision(&self) -> u64 {
        *self.revision.borrow()
    }

    fn reached(&self, revision: u64) -> BoxFuture<'_, ()> {
        async move {
            let mut revisions = self.revision.subscribe();
            tokio::select! {
                _ = revisions.wait_for(|current| *current >= revision) => {}
                () = self.poll_until(revision) => {}
            }
        }
        .boxed()
    }

    fn health(&self) -> BoxFuture<'_, Health> {
        async move {
            if let Err(error) = self.check_open() {
                return Health::unavailable(&error);
            }
            match timeout(HEALTH_WITHIN, read::latest(&self.client, &self.keys)).await {
                Ok(Ok(_)) => Health::Healthy,
                Ok(Err(error)) => Health::unavailable(&error),
                Err(_) => Health::Unavailable {
                    reason: format!("{} does not answer within {HEALTH_WITHIN:?}", self.client.name),
                },
            }
        }
        .boxed()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.is_closed.store(true, Ordering::Release);
        let watching = std::mem::take(&mut *self.watching.lock().unwrap_or_else(PoisonError::into_inner));
        self.cache.hub.close();
        watching.single.iter().filter_map(Weak::upgrade).for_each(|hub| hub.close());
        future::ready(()).boxed()
    }
}
