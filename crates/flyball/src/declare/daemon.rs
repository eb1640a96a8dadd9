//! Background work that a controller keeps running for each of its objects.

use crate::declare::reconciler::{Work, erase};
use crate::{Context, Controller, Result};
use kube::Resource;
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// A daemon and its work, with the type of its objects erased.
#[derive(Clone)]
pub(crate) struct DaemonSpec {
    pub(crate) name: String,
    pub(crate) work: Work<()>,
}

impl<K> Controller<K>
where
    K: Resource<Scope: 'static> + DeserializeOwned + Send + Sync + 'static,
{
    /// Keeps `work` running for each object while this process leads, beside the reconciles: one task per object, never two.
    ///
    /// It is cancelled when the object is deleted or no longer selected, when this process stops leading, and when the operator
    /// stops. Work that awaits [`Context::stopping`] is given the controller's shutdown grace to end by itself, except when the
    /// process stops leading; other work is dropped where it waits. Work that returns `Ok` is done until the process leads
    /// again or the object is created anew. Work that fails or panics is an event on the object, and starts again after the
    /// controller's backoff; after a permanent error, or when no retries are left, it starts again once the object changes.
    ///
    /// `work` is given the object as it is when it starts; [`Context::get`] reads it anew. Metrics and logs name the daemon
    /// after its controller: `greeting/follow`.
    ///
    /// ```
    /// # use flyball::{Action, Context, Controller, Result};
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use std::{sync::Arc, time::Duration};
    /// async fn follow(map: Arc<ConfigMap>, ctx: Context) -> Result<()> {
    ///     loop {
    ///         tokio::select! {
    ///             () = tokio::time::sleep(Duration::from_secs(5)) => { /* poll what the object describes */ }
    ///             () = ctx.stopping() => return Ok(()), // close the connection
    ///         }
    ///     }
    /// }
    /// # async fn reconcile(_: Arc<ConfigMap>, _: Context) -> Result { Ok(Action::await_change()) }
    ///
    /// let controller = Controller::new(reconcile).daemon("follow", follow);
    /// ```
    pub fn daemon<Fut>(
        mut self,
        name: impl Into<String>,
        work: impl Fn(Arc<K>, Context) -> Fut + Send + Sync + 'static,
    ) -> Controller<K>
    where
        Fut: Future<Output = Result<()>> + Send + 'static,
    {
        let work = erase(self.spec.kind.clone(), work);
        self.spec.daemons.push(DaemonSpec { name: name.into(), work });
        self
    }
}
