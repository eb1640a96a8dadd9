//! The objects of a definition that is being deleted are deleted first, page by page, in a task of their own.
// apiextensions-apiserver/pkg/controller/finalizer/crd_finalizer.go

use crate::crd::controller::{RETRY_AFTER, Work};
use crate::crd::reconcile;
use crate::crd::{Definition, FINALIZER, conditions, kinds};
use crate::registry::Kind;
use crate::registry::object::metadata_mut;
use crate::server::ApiServer;
use crate::status::{Result, Status};
use crate::{clock, endpoints};
use bytes::Bytes;
use flyball_store::{Entry, Range};
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::AbortHandle;

/// How many objects are read together.
const PAGE: usize = 500;
/// How many objects are deleted at the same time: each has a commit, and so a resource version, of its own.
const MAX_CONCURRENT: usize = 16;

/// What came of an attempt to remove all objects of a definition.
pub(crate) enum Outcome {
    /// None is left, and the definition was let go.
    Removed,
    /// Objects with finalizers were left at a revision.
    Left { prefix: Bytes, revision: u64 },
    /// The store failed.
    Failed,
}

/// Removes the objects of a definition, then its finalizer, and reports to the controller's queue.
pub(crate) fn spawn(server: &ApiServer, name: &str, definition: &Definition, queue: UnboundedSender<Work>) {
    let (server, name, entry) = (server.clone(), name.to_owned(), definition.entry.clone());
    let kind = kinds::stored(definition);
    tokio::spawn(async move {
        let outcome = remove(&server, &entry, kind).await.unwrap_or_else(|error| {
            tracing::warn!(%error, definition = name, "delete the objects of a CustomResourceDefinition");
            Outcome::Failed
        });
        drop(queue.send(Work::Finalized(name, outcome)));
    });
}

async fn remove(server: &ApiServer, definition: &Entry, kind: Option<Arc<Kind>>) -> Result<Outcome> {
    if let Some(kind) = kind {
        let prefix = kind.prefix(None);
        remove_objects(server, &kind, &prefix).await?;
        let range = Range { limit: Some(1), ..Range::prefix(prefix.clone()) };
        let left = server.store().range(range).await.map_err(Status::store_failed)?;
        if !left.entries.is_empty() {
            return Ok(Outcome::Left { prefix, revision: left.revision });
        }
    }
    let now = clock::seconds(server.clock().now());
    // If another writer was faster, the controller sees the definition again.
    reconcile::write(server, definition, |object| {
        let (reason, message) = ("InstanceDeletionCompleted", "removed all instances");
        conditions::set(object, "Terminating", "False", reason, message, &now);
        let finalizers = metadata_mut(object).get_mut("finalizers").and_then(Value::as_array_mut);
        if let Some(finalizers) = finalizers {
            finalizers.retain(|finalizer| finalizer != FINALIZER);
        }
    })
    .await?;
    Ok(Outcome::Removed)
}

/// Deletes the objects that are there; those with finalizers are marked.
async fn remove_objects(server: &ApiServer, kind: &Arc<Kind>, prefix: &Bytes) -> Result<()> {
    let mut start = None;
    loop {
        let range = Range { start, limit: Some(PAGE), ..Range::prefix(prefix.clone()) };
        let page = server.store().range(range).await.map_err(Status::store_failed)?;
        start = page.entries.last().map(|last| [&last.key, &b"\0"[..]].concat().into());
        let delete = |entry| endpoints::purge(server, kind, entry);
        let deletes = stream::iter(page.entries).map(delete).buffer_unordered(MAX_CONCURRENT);
        deletes.try_collect::<()>().await?;
        if !page.more {
            return Ok(());
        }
    }
}

/// A task that reports when an object of a definition is gone; dropping it stops it.
pub(crate) struct Follow(AbortHandle);

impl Drop for Follow {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Reports a change of the definition when one of its objects is gone.
pub(crate) fn follow(
    server: &ApiServer,
    name: String,
    prefix: Bytes,
    revision: u64,
    queue: UnboundedSender<Work>,
) -> Follow {
    let store = server.store().clone();
    let task = tokio::spawn(async move {
        match store.watch(prefix, revision).await {
            Ok(mut watch) => {
                while watch.next().await.is_some_and(|change| change.is_ok_and(|it| it.value.is_some())) {}
            }
            Err(_) => tokio::time::sleep(RETRY_AFTER).await,
        }
        drop(queue.send(Work::Changed(name)));
    });
    Follow(task.abort_handle())
}
