//! `Context::ready`: waiting for a dependency is no failure. The reconcile ends, and the object says what it waits for.

use crate::context::Context;
use crate::{Error, Key, Readiness, Result};
use serde::Serialize;
use serde_json::Value;

/// A dependency is not ready yet.
#[derive(Debug, thiserror::Error)]
#[error("waiting for {kind} {key}: {lack}")]
pub(crate) struct NotReady {
    pub(crate) kind: String,
    pub(crate) key: Key,
    pub(crate) lack: String,
}

impl NotReady {
    /// What an object lacks by the rules of its kind; none if it is ready.
    pub(crate) fn of(object: &Value, readiness: Readiness) -> Option<NotReady> {
        let lack = match readiness {
            Readiness::Ready => return None,
            Readiness::InProgress(lack) => lack,
            Readiness::Failed(why) => format!("it has failed: {why}"),
            Readiness::Terminating => "it is being deleted".into(),
        };
        let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
        Some(NotReady {
            kind: text("/kind").into(),
            key: Key::new(Some(text("/metadata/namespace")), text("/metadata/name")),
            lack,
        })
    }
}

impl Context {
    /// Goes on if an object is [ready](Readiness::of), and ends the reconcile otherwise.
    ///
    /// That is no failure: no backoff grows, no warning is published. With
    /// [`Controller::ready_condition`](crate::Controller::ready_condition) the condition `Ready` of the object being reconciled is
    /// `False` with the reason `Waiting` and what the other one lacks. The object is reconciled again when something changes that
    /// its controller owns or watches, and after 30 seconds at the latest. See also [`Error::waiting`].
    ///
    /// As in kstatus, an object of a custom kind without a condition `Ready` is ready: a kind may have none. If its kind has one,
    /// an object that was not reconciled yet lacks it; ask for the condition before.
    ///
    /// ```
    /// # use flyball::{Action, Context, Result};
    /// # use k8s_openapi::api::{apps::v1::Deployment, batch::v1::Job};
    /// # async fn reconcile(ctx: &Context, migration: Job) -> Result {
    /// if let Some(database) = ctx.get::<Deployment>("database").await? {
    ///     ctx.ready(&*database)?;
    ///     ctx.apply(migration).await?;
    /// }
    /// # Ok(Action::await_change())
    /// # }
    /// ```
    pub fn ready(&self, object: &impl Serialize) -> Result<()> {
        let object = serde_json::to_value(object)?;
        match NotReady::of(&object, self.readiness(&object)) {
            Some(lack) => Err(Error::waiting(lack)),
            None => Ok(()),
        }
    }
}
