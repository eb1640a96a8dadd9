//! Brings what is served in line with one definition at a time. The cost of a change does not depend on how many
//! other definitions there are.

use crate::clock;
use crate::crd::controller::{RETRY_AFTER, Work};
use crate::crd::finalize::{self, Outcome};
use crate::crd::{Definition, FINALIZER, conditions, definition_kind, kinds, names};
use crate::endpoints::{FieldManager, Subresource};
use crate::registry::{Kind, object};
use crate::server::ApiServer;
use crate::status::{Result, Status};
use flyball_store::{Entry, Error, Expect, Op, Range, Watch};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::mem;
use std::sync::atomic::Ordering;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;

/// How many definitions are read from the store together.
const PAGE: usize = 100;
/// How often a definition is read again because another writer changed it meanwhile.
const MAX_CONFLICTS: usize = 16;

/// The definitions as they were last seen.
pub(crate) struct Reconciler {
    definitions: BTreeMap<String, Definition>,
    finalizing: HashMap<String, Finalizing>,
    queue: UnboundedSender<Work>,
}

/// The removal of a definition's objects.
enum Finalizing {
    /// An attempt is under way; `again` asks for another one after it.
    Running {
        again: bool,
        waiting: Vec<oneshot::Sender<()>>,
    },
    /// Objects with finalizers are left; the task reports when one of them is gone.
    Waiting { _task: finalize::Follow },
}

impl Reconciler {
    pub(crate) fn new(queue: UnboundedSender<Work>) -> Reconciler {
        Reconciler {
            definitions: BTreeMap::new(),
            finalizing: HashMap::new(),
            queue,
        }
    }

    /// Whether a change of a definition is known already.
    pub(crate) fn has_seen(&self, name: &str, revision: u64) -> bool {
        self.definitions.get(name).is_some_and(|known| known.entry.revision >= revision)
    }

    /// Reconciles every definition, and returns a watch of what changes from then on.
    pub(crate) async fn resync(&mut self, server: &ApiServer) -> Result<Watch> {
        let prefix = definition_kind(server).prefix(None);
        let store = server.store();
        let changes = store.watch(prefix.clone(), store.revision()).await.map_err(Status::store_failed)?;
        let mut unseen: Vec<String> = self.definitions.keys().cloned().collect();
        let mut start = None;
        loop {
            let range = Range { start, limit: Some(PAGE), ..Range::prefix(prefix.clone()) };
            let page = store.range(range).await.map_err(Status::store_failed)?;
            start = page.entries.last().map(|last| [&last.key, &b"\0"[..]].concat().into());
            for entry in page.entries {
                let name = object::peek(&entry.value).metadata.name.into_owned();
                unseen.retain(|unseen| *unseen != name);
                self.reconcile(server, &name, Some(entry)).await?;
            }
            if !page.more {
                break;
            }
        }
        for name in unseen {
            self.reconcile(server, &name, None).await?;
        }
        Ok(changes)
    }

    /// Does one piece of work; a failure is logged, and the work is done again later.
    pub(crate) async fn handle(&mut self, server: &ApiServer, work: Work) {
        let (name, waiting) = match work {
            Work::Changed(name) => (name, Vec::new()),
            Work::Sync(name, waiting) => (name, vec![waiting]),
            Work::Finalized(name, outcome) => return self.finalized(server, name, outcome).await,
        };
        self.refresh(server, &name, waiting).await;
    }

    /// Reads and reconciles a definition, and wakes the requests that wait for it.
    async fn refresh(&mut self, server: &ApiServer, name: &str, mut waiting: Vec<oneshot::Sender<()>>) {
        let key = definition_kind(server).key(None, name);
        let done = match server.store().get(&key).await {
            Ok(entry) => self.reconcile(server, name, entry).await,
            Err(error) => Err(Status::store_failed(error)),
        };
        if let Err(error) = done {
            tracing::warn!(%error, definition = name, "reconcile a CustomResourceDefinition");
            self.retry_later(name);
        }
        if let Some(Finalizing::Running { waiting: others, .. }) = self.finalizing.get_mut(name) {
            return others.append(&mut waiting);
        }
        waiting.into_iter().for_each(answer);
    }

    fn retry_later(&self, name: &str) {
        let (queue, name) = (self.queue.clone(), name.to_owned());
        tokio::spawn(async move {
            tokio::time::sleep(RETRY_AFTER).await;
            drop(queue.send(Work::Changed(name)));
        });
    }

    /// Gives a definition its status, and serves what it defines.
    async fn reconcile(&mut self, server: &ApiServer, name: &str, mut entry: Option<Entry>) -> Result<()> {
        for _ in 0..MAX_CONFLICTS {
            let Some(found) = entry else {
                self.forget(server, name);
                return Ok(());
            };
            let key = found.key.clone();
            let definition = Definition::decode(found).map_err(Status::internal)?;
            let Some(accepted) =
                names::accept(&definition.object, self.others(name, &definition), server.clock().now())
            else {
                self.serve(server, name, definition);
                return self.finalize(server, name).await;
            };
            entry = match write_status(server, &definition.entry, &accepted["status"]).await? {
                Some(written) => Some(written),
                None => server.store().get(&key).await.map_err(Status::store_failed)?,
            };
        }
        Err(Status::internal("other writers keep changing the definition"))
    }

    /// The other definitions of a definition's group.
    fn others<'a>(&'a self, name: &'a str, definition: &'a Definition) -> impl Iterator<Item = &'a Value> {
        let is_other =
            move |(other, known): &(&String, &Definition)| *other != name && known.group() == definition.group();
        self.definitions.iter().filter(is_other).map(|(_, known)| &known.object)
    }

    /// Serves the kinds of a definition. Kinds of which nothing changed stay the same, so that their watches go on.
    fn serve(&mut self, server: &ApiServer, name: &str, mut definition: Definition) {
        let old = self.definitions.remove(name);
        let group = definition.group().to_owned();
        let terminating = conditions::is_true(&definition.object, "Terminating");
        let same = old.as_ref().filter(|old| !old.kinds.is_empty() && old.defines_the_same(&definition));
        let is_changed = match same {
            Some(old) => {
                definition.kinds = old.kinds.clone();
                // All versions of a definition share the revision and the flag.
                let version = definition.kinds.first().and_then(|kind| kind.custom.as_ref());
                if let Some(stored) = version.and_then(|version| version.definition.as_ref()) {
                    stored.revision.store(definition.entry.revision, Ordering::Relaxed);
                }
                version.is_some_and(|version| version.set_terminating(terminating))
            }
            None => {
                definition.kinds = kinds::served(&definition, server.webhooks());
                !definition.kinds.is_empty() || old.as_ref().is_some_and(|old| !old.kinds.is_empty())
            }
        };
        if is_changed {
            server.registry().replace(&group, name, definition.kinds.clone());
        }
        let names = |of: &Definition| of.object["status"]["acceptedNames"].clone();
        let is_renamed = old.is_some_and(|old| names(&old) != names(&definition));
        self.definitions.insert(name.to_owned(), definition);
        if is_renamed {
            self.requeue_refused(&group);
        }
    }

    fn forget(&mut self, server: &ApiServer, name: &str) {
        self.finalizing.remove(name);
        if let Some(old) = self.definitions.remove(name) {
            server.registry().replace(old.group(), name, Vec::new());
            self.requeue_refused(old.group());
        }
    }

    /// Names that were in use may be free now: definitions of the group that lack a name are reconciled again.
    fn requeue_refused(&self, group: &str) {
        let lacks = |known: &Definition| {
            known.group() == group && known.object["spec"]["names"] != known.object["status"]["acceptedNames"]
        };
        for (name, _) in self.definitions.iter().filter(|(_, known)| lacks(known)) {
            drop(self.queue.send(Work::Changed(name.clone())));
        }
    }

    /// Starts to remove the objects of a definition that is being deleted.
    async fn finalize(&mut self, server: &ApiServer, name: &str) -> Result<()> {
        let Some(definition) = self.definitions.get(name) else {
            return Ok(());
        };
        if !definition.is_deleting() || !object::finalizers(&definition.object).contains(&FINALIZER) {
            return Ok(());
        }
        if let Some(Finalizing::Running { again, .. }) = self.finalizing.get_mut(name) {
            *again = true;
            return Ok(());
        }
        finalize::spawn(server, name, definition, self.queue.clone());
        let running = Finalizing::Running { again: false, waiting: Vec::new() };
        self.finalizing.insert(name.to_owned(), running);
        Ok(())
    }

    async fn finalized(&mut self, server: &ApiServer, name: String, outcome: Outcome) {
        let Some(Finalizing::Running { again, waiting }) = self.finalizing.remove(&name) else {
            return;
        };
        match outcome {
            Outcome::Left { prefix, revision } if !again => {
                let task = finalize::follow(server, name.clone(), prefix, revision, self.queue.clone());
                self.finalizing.insert(name, Finalizing::Waiting { _task: task });
                waiting.into_iter().for_each(answer);
            }
            Outcome::Failed => {
                self.retry_later(&name);
            }
            Outcome::Left { .. } | Outcome::Removed => self.refresh(server, &name, waiting).await,
        }
    }
}

fn answer(waiting: oneshot::Sender<()>) {
    // A request that has ended does not wait any more.
    waiting.send(()).ok();
}

/// Writes a definition's status; none if another writer was faster.
pub(crate) async fn write_status(server: &ApiServer, entry: &Entry, status: &Value) -> Result<Option<Entry>> {
    write(server, entry, |object| object["status"] = status.clone()).await
}

/// Changes a definition as its status is changed, or removes it with its last finalizer; none if another writer was
/// faster.
pub(crate) async fn write(server: &ApiServer, entry: &Entry, change: impl FnOnce(&mut Value)) -> Result<Option<Entry>> {
    let kind: &Kind = &definition_kind(server);
    let old = object::decode(&entry.value);
    let mut new = old.clone();
    change(&mut new);
    let manager = FieldManager {
        kind,
        others: Vec::new(),
        subresource: Subresource::Status,
        manager: "kube-apiserver",
        now: clock::seconds(server.clock().now()),
    };
    manager.update(Some(&old), &mut new);
    let expect = Expect::Revision(entry.revision);
    let op = match object::is_deleting(&new) && object::finalizers(&new).is_empty() {
        true => Op::delete(entry.key.clone(), expect),
        false => Op::put(entry.key.clone(), kind.encode_built_in(new), expect),
    };
    match server.store().commit(vec![op]).await {
        Ok(mut committed) => Ok(committed.entries.first_mut().and_then(mem::take)),
        Err(Error::Conflict { .. }) => Ok(None),
        Err(error) => Err(Status::store_failed(error)),
    }
}
