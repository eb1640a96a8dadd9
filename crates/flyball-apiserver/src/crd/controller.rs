//! The controller's task: what changes in the store and what requests wait for goes to the reconciler, one by one.

use crate::crd::definition_kind;
use crate::crd::finalize::Outcome;
use crate::crd::reconcile::Reconciler;
use crate::server::{ApiServer, Inner};
use crate::status::Result;
use flyball_store::{Event, Watch};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

/// How long to wait after a failure of the store.
pub(crate) const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The running controller; dropping it stops it.
pub(crate) struct Controller {
    queue: UnboundedSender<Work>,
    task: AbortHandle,
}

/// What the controller has to do.
pub(crate) enum Work {
    /// A definition, or something that it depends on, has changed.
    Changed(String),
    /// A request wrote a definition and waits until that is reconciled.
    Sync(String, oneshot::Sender<()>),
    /// An attempt to remove the objects of a definition has ended.
    Finalized(String, Outcome),
}

impl Controller {
    /// Reconciles a definition; the receiver is answered, or closed, when that is done or has failed.
    pub(crate) fn reconciled(&self, name: String) -> oneshot::Receiver<()> {
        let (done, receiver) = oneshot::channel();
        // A closed queue drops the sender, which closes the receiver.
        drop(self.queue.send(Work::Sync(name, done)));
        receiver
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Serves what the definitions in the store define, and keeps doing so until the returned controller is dropped.
pub(crate) async fn start(server: &ApiServer) -> Result<Controller> {
    let (queue, work) = unbounded_channel();
    let mut reconciler = Reconciler::new(queue.clone());
    let changes = reconciler.resync(server).await?;
    let task = tokio::spawn(run(server.downgrade(), reconciler, changes, work)).abort_handle();
    Ok(Controller { queue, task })
}

/// Handles changes and work until the server is gone; keeps no server alive while it waits.
async fn run(server: Weak<Inner>, mut reconciler: Reconciler, mut changes: Watch, mut work: UnboundedReceiver<Work>) {
    loop {
        let next = tokio::select! {
            change = changes.next() => Next::Change(change),
            work = work.recv() => Next::Work(work),
        };
        let Some(here) = ApiServer::upgrade(&server) else {
            return;
        };
        match next {
            Next::Work(Some(work)) => reconciler.handle(&here, work).await,
            Next::Work(None) => return,
            Next::Change(Some(Ok(event))) => {
                let name = name_of(&here, &event);
                if !reconciler.has_seen(&name, event.revision) {
                    reconciler.handle(&here, Work::Changed(name)).await;
                }
            }
            Next::Change(ended) => {
                drop(here);
                match ended {
                    Some(Err(error)) => tracing::warn!(%error, "watch CustomResourceDefinitions"),
                    _ => tracing::warn!("the watch of CustomResourceDefinitions has ended"),
                }
                let Some(watch) = resync(&server, &mut reconciler).await else {
                    return;
                };
                changes = watch;
            }
        }
    }
}

enum Next {
    Change(Option<flyball_store::Result<Arc<Event>>>),
    Work(Option<Work>),
}

fn name_of(server: &ApiServer, event: &Event) -> String {
    let prefix = definition_kind(server).prefix(None);
    let name = event.key.strip_prefix(&*prefix).unwrap_or(&event.key);
    String::from_utf8_lossy(name).into_owned()
}

/// Lists and watches the definitions again, as soon as the store allows it; none if the server is gone.
async fn resync(server: &Weak<Inner>, reconciler: &mut Reconciler) -> Option<Watch> {
    loop {
        tokio::time::sleep(RETRY_AFTER).await;
        match reconciler.resync(&ApiServer::upgrade(server)?).await {
            Ok(watch) => return Some(watch),
            Err(error) => tracing::warn!(%error, "list CustomResourceDefinitions"),
        }
    }
}
