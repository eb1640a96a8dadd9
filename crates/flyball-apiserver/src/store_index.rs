//! Indexes of stored objects: loaded on first use, kept up to date by a watch, so that a request reads no list.

use crate::status::{Result, Status};
use flyball_store::{Range, Store, Watch};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;
use tokio::sync::{OnceCell, watch};
use tokio::task::AbortHandle;

/// How long to wait after a failure of the store.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// How long the response to a write of an indexed object waits until it takes effect.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// What is derived from the objects of an API group.
pub(crate) trait Index: Default + Send + Sync + 'static {
    /// What the keys of the objects begin with.
    const PREFIX: &'static str;

    /// Takes over a change of an object; no value is a deletion.
    fn apply(&mut self, key: &[u8], value: Option<&[u8]>);

    /// Derives what depends on several objects, after one or more changes.
    fn finish(&mut self) {}
}

/// An index of a store.
pub(crate) struct StoreIndex<I>(OnceCell<Loaded<I>>);

impl<I> Default for StoreIndex<I> {
    fn default() -> StoreIndex<I> {
        StoreIndex(OnceCell::new())
    }
}

struct Loaded<I> {
    index: Arc<RwLock<I>>,
    seen: watch::Receiver<u64>,
    task: AbortHandle,
}

impl<I> Drop for Loaded<I> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl<I: Index> StoreIndex<I> {
    /// The index as it is now.
    pub async fn read(&self, store: &Store) -> Result<RwLockReadGuard<'_, I>> {
        Ok(read(self.0.get_or_try_init(|| start(store)).await?))
    }

    /// The index as it is now, unless it was never asked for.
    pub fn read_loaded(&self) -> Option<RwLockReadGuard<'_, I>> {
        self.0.get().map(read)
    }

    /// Waits until the change of an object takes effect.
    pub async fn reached(&self, revision: u64) {
        if let Some(loaded) = self.0.get() {
            let mut seen = loaded.seen.clone();
            // The write is stored: a late watch only delays when it takes effect.
            let _late = tokio::time::timeout(MAX_WAIT, seen.wait_for(|seen| *seen >= revision)).await;
        }
    }
}

fn read<I>(loaded: &Loaded<I>) -> RwLockReadGuard<'_, I> {
    loaded.index.read().unwrap_or_else(PoisonError::into_inner)
}

async fn start<I: Index>(store: &Store) -> Result<Loaded<I>> {
    let (index, revision, changes) = load(store).await.map_err(Status::store_failed)?;
    let index = Arc::new(RwLock::new(index));
    let (sender, seen) = watch::channel(revision);
    let task = tokio::spawn(follow(store.clone(), index.clone(), sender, changes)).abort_handle();
    Ok(Loaded { index, seen, task })
}

async fn load<I: Index>(store: &Store) -> flyball_store::Result<(I, u64, Watch)> {
    let page = store.range(Range::prefix(I::PREFIX)).await?;
    let mut index = I::default();
    for entry in &page.entries {
        index.apply(&entry.key, Some(&entry.value));
    }
    index.finish();
    let changes = store.watch(I::PREFIX, page.revision).await?;
    Ok((index, page.revision, changes))
}

async fn follow<I: Index>(store: Store, index: Arc<RwLock<I>>, seen: watch::Sender<u64>, mut changes: Watch) {
    loop {
        match changes.next().await {
            Some(Ok(event)) => {
                let mut index = index.write().unwrap_or_else(PoisonError::into_inner);
                index.apply(&event.key, event.value.as_deref());
                index.finish();
                drop(index);
                seen.send_replace(event.revision);
            }
            ended => {
                if let Some(Err(error)) = ended {
                    tracing::warn!(%error, prefix = I::PREFIX, "watch the objects of an index");
                }
                let (new, revision, watch) = reload(&store).await;
                *index.write().unwrap_or_else(PoisonError::into_inner) = new;
                seen.send_replace(revision);
                changes = watch;
            }
        }
    }
}

/// Reads all objects again, as soon as the store allows it.
async fn reload<I: Index>(store: &Store) -> (I, u64, Watch) {
    loop {
        tokio::time::sleep(RETRY_AFTER).await;
        match load(store).await {
            Ok(loaded) => return loaded,
            Err(error) => tracing::warn!(%error, prefix = I::PREFIX, "list the objects of an index"),
        }
    }
}
