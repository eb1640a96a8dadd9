//! The backend on etcd: reads and commits are etcd's own; one watch on it feeds all who watch here.

mod client;
mod commit;
mod config;
mod follow;
mod keys;
mod read;
mod recent;
mod wire;

pub use config::{Etcd, Tls};

use crate::{
    Backend, Committed, Entry, Error, Health, Op, Options, Page, Range, Result, Snapshot, Watch, watchers::Watchers,
};
use bytes::Bytes;
use client::Client;
use follow::Follow;
use futures::future::{self, BoxFuture, FutureExt};
use keys::Keys;
use recent::Recent;
use std::{
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{task::AbortHandle, time::timeout};

/// So much of the recent past is kept here, for watchers that come back soon; older changes are etcd's to tell.
const RECENT: Options = Options {
    history_revisions: 100_000,
    history_bytes: 16 << 20,
    watch_bytes: 0,
    memory_bytes: 0,
};

/// How long etcd may take to answer before it counts as unavailable, as in kube-apiserver's health check of etcd.
const HEALTH_WITHIN: Duration = Duration::from_secs(2);

/// A store in an etcd cluster.
#[derive(Clone)]
pub(crate) struct Remote(Arc<Shared>);

pub(crate) struct Shared {
    client: Arc<Client>,
    keys: Keys,
    options: Options,
    recent: Arc<Recent>,
    /// The latest revision that any answer named.
    revision: AtomicU64,
    /// The latest revision up to which etcd is known to have forgotten.
    compacted: AtomicU64,
    is_closed: AtomicBool,
    following: Mutex<Following>,
}

/// The watches on etcd: one for everybody, and one for each who asked for what was before it.
#[derive(Default)]
struct Following {
    everybody: Option<Task>,
    single: Vec<Weak<Watchers>>,
}

/// A task that ends with its owner.
pub(crate) struct Task(AbortHandle);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.recent.watchers.close();
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
        let options = Options { watch_bytes: config.watch_bytes, ..RECENT };
        let client = Arc::new(Client::new(&config)?);
        let keys = Keys(config.prefix.clone());
        let revision = read::latest(&client, &keys).await?;
        let remote = Remote(Arc::new(Shared {
            client,
            keys,
            options,
            recent: Arc::new(Recent::new(options, revision)),
            revision: AtomicU64::new(revision),
            compacted: AtomicU64::new(0),
            is_closed: AtomicBool::new(false),
            following: Mutex::default(),
        }));
        let everybody = remote.follow(remote.recent.clone(), Bytes::new(), config.history_revisions);
        remote.following.lock().unwrap_or_else(PoisonError::into_inner).everybody = Some(everybody);
        Ok(remote)
    }

    /// Follows what happens under a prefix; has etcd forget what is too long ago, if asked to.
    fn follow(&self, recent: Arc<Recent>, prefix: Bytes, keep: Option<u64>) -> Task {
        let follow = Follow {
            client: self.client.clone(),
            keys: self.keys.clone(),
            prefix,
            recent,
        };
        let shared = Arc::downgrade(&self.0);
        let mut forgotten = self.revision();
        let progress = move |revision: u64| {
            let Some(shared) = shared.upgrade() else { return };
            shared.revision.fetch_max(revision, Ordering::Relaxed);
            // Not with every revision: each time costs etcd a walk through its index.
            if let Some(keep) = keep.filter(|keep| revision > forgotten + keep + keep / 4) {
                forgotten = revision - keep;
                tokio::spawn(async move { Remote(shared).forget(revision - keep).await });
            }
        };
        Task(tokio::spawn(follow.run(progress)).abort_handle())
    }

    /// Watches what only etcd knows, over a connection of its own.
    async fn watch_past(&self, prefix: Bytes, after: u64) -> Result<Watch> {
        self.check(after).await?;
        let recent = Arc::new(Recent::new(self.options, after));
        let watch = recent.watch(prefix.clone(), after)?;
        let mut following = self.following.lock().unwrap_or_else(PoisonError::into_inner);
        self.check_open()?;
        following.single.retain(|watchers| watchers.strong_count() > 0);
        following.single.push(Arc::downgrade(&recent.watchers));
        Ok(watch.fed_by(self.follow(recent, prefix, None)))
    }

    /// Compacts; another server may have done so already.
    async fn forget(&self, revision: u64) -> Result<()> {
        match self.compact_at(revision).await {
            Err(Error::Compacted { .. }) => Ok(()),
            compacted => compacted,
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
            match self.recent.watch(prefix.clone(), after) {
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
        self.revision.load(Ordering::Relaxed)
    }

    fn reached(&self, revision: u64) -> BoxFuture<'_, ()> {
        async move {
            let mut pause = Duration::from_millis(5);
            while self.revision() < revision {
                // Reads ask etcd itself, so what counts is where etcd is, not what it has told.
                let asked = read::latest(&self.client, &self.keys).await;
                self.revision.fetch_max(asked.unwrap_or(0), Ordering::Relaxed);
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(Duration::from_millis(200));
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
        let following = std::mem::take(&mut *self.following.lock().unwrap_or_else(PoisonError::into_inner));
        self.recent.watchers.close();
        following.single.iter().filter_map(Weak::upgrade).for_each(|watchers| watchers.close());
        future::ready(()).boxed()
    }
}
