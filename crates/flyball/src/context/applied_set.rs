//! What one reconcile has applied so far, and `Context::prune` of what it has not.

use crate::cache::kind::Kind;
use crate::cache::object::Object;
use crate::context::{Context, attempt};
use crate::{Error, Key, Result};
use kube::{
    Resource,
    api::{DeleteParams, GetParams, Preconditions, Request},
};
use serde::Deserialize;
use std::{
    collections::HashSet,
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
};

/// The children that one reconcile has applied, or tried to.
#[derive(Debug, Default)]
pub(crate) struct AppliedSet {
    /// By group and resource: a kind may be applied in one version and pruned in another.
    applied: Mutex<HashSet<Child>>,
    failed: AtomicBool,
}

type Child = ((String, String), Key);

impl AppliedSet {
    /// A child is about to be applied.
    pub(super) fn applies(&self, kind: &Kind, key: &Key) {
        self.lock().insert((kind.group_resource(), key.clone()));
    }

    /// An apply has failed.
    pub(super) fn failed(&self) {
        self.failed.store(true, Ordering::Relaxed);
    }

    fn has(&self, kind: &Kind, key: &Key) -> bool {
        self.lock().contains(&(kind.group_resource(), key.clone()))
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<Child>> {
        self.applied.lock().expect("nothing panics under this lock")
    }
}

#[derive(Debug, thiserror::Error)]
#[error("prune {0}: an apply has failed in this reconcile, so nothing is pruned")]
struct Incomplete(String);

/// Who manages a child, and which version of it was looked at.
#[derive(Deserialize)]
struct Managed {
    metadata: Meta,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meta {
    resource_version: String,
    #[serde(default)]
    managed_fields: Vec<Manager>,
}

#[derive(Deserialize)]
struct Manager {
    #[serde(default)]
    manager: String,
    #[serde(default)]
    operation: String,
}

impl Context {
    /// Deletes the children of kind `C` that this reconcile has not applied, and says which.
    ///
    /// All controllers of an operator are one manager: of those that reconcile the same kind, let one prune a kind of child.
    /// Only children that the object being reconciled controls, and that this operator has applied at some time, are deleted;
    /// whatever else is there stays. Call it after all applies: if one of them has failed, nothing is deleted and this fails
    /// too. The kind must be declared with [`Controller::owns`](crate::Controller::owns).
    pub async fn prune<C>(&self) -> Result<Vec<Key>>
    where
        C: Resource<DynamicType = (), Scope: 'static>,
    {
        self.objects::<C>().prune().await
    }

    pub(super) async fn prune_kind(&self, kind: Kind) -> Result<Vec<Key>> {
        self.declared.check_owned("prune", &kind).map_err(Error::permanent)?;
        if self.applied.failed.load(Ordering::Relaxed) {
            return Err(Error::retry(Incomplete(kind.name().into())));
        }
        let children = self.listed(&kind, None).await?.dependents_of(&self.object.uid);
        let mut pruned = Vec::new();
        for child in children {
            let controlled = child.is_controlled_by(&self.object.uid);
            if controlled
                && !child.terminating
                && !self.applied.has(&kind, &child.key)
                && self.prune_child(&kind, &child).await?
            {
                tracing::info!(kind = kind.name(), child = %child.key, "pruned");
                pruned.push(child.key.clone());
            }
        }
        Ok(pruned)
    }

    /// Deletes a child as it was looked at, if this operator has applied it.
    async fn prune_child(&self, kind: &Kind, child: &Object) -> Result<bool> {
        let (key, collection) = (&child.key, Request::new(kind.path(child.key.namespace())));
        let read = self.request(collection.get_metadata(key.name(), &GetParams::default())?).await;
        let text = match read {
            Err(error) if is_gone(&error) => return Ok(false),
            read => read.map_err(attempt("prune", kind, key))?.1,
        };
        let Managed { metadata } = serde_json::from_str(&text)?;
        let ours = |manager: &Manager| manager.manager == self.operator.name && manager.operation == "Apply";
        if !metadata.managed_fields.iter().any(ours) {
            return Ok(false);
        }
        let preconditions = Preconditions {
            uid: Some(child.uid.to_string()),
            resource_version: Some(metadata.resource_version),
        };
        let params = DeleteParams {
            preconditions: Some(preconditions),
            ..DeleteParams::background()
        };
        match self.request(collection.delete(key.name(), &params)?).await {
            Err(error) if is_gone(&error) => Ok(false),
            deleted => deleted.map(|_| true).map_err(attempt("prune", kind, key)).map_err(Error::from),
        }
    }
}

fn is_gone(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}
