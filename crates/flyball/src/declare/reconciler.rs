//! What an author writes: a function from an object to the next action. Its types are erased here.

use crate::cache::kind::Kind;
use crate::cache::object::Object;
use crate::cache::{ReadError, decode};
use crate::{Action, Context, Error, Key, Result};
use futures::future::BoxFuture;
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// Brings the cluster closer to what an object asks for.
///
/// Functions and closures of the shape `async fn(Arc<K>, Context) -> Result` are reconcilers. A controller with state is one
/// struct: it implements `reconcile`, and those of the other methods that it needs.
pub trait Reconciler<K>: Send + Sync + 'static {
    /// Whether objects carry a finalizer, so that [`Reconciler::cleanup`] runs before they are removed. Set it to `true`
    /// together with a `cleanup`.
    const FINALIZER: bool = false;

    /// Reconciles one object. At any moment at most one call runs for each object.
    fn reconcile(&self, object: Arc<K>, ctx: Context) -> impl Future<Output = Result> + Send;

    /// Runs when an object is deleted, before it is removed; see [`Controller::cleanup`](crate::Controller::cleanup).
    fn cleanup(&self, _object: Arc<K>, _ctx: Context) -> impl Future<Output = Result<()>> + Send {
        std::future::ready(Ok(()))
    }

    /// Runs in place of `reconcile` for objects that are being deleted, without holding them back.
    fn terminating(&self, _object: Arc<K>, _ctx: Context) -> impl Future<Output = Result> + Send {
        std::future::ready(Ok(Action::await_change()))
    }

    /// Runs when an object does not exist any more; see [`Controller::gone`](crate::Controller::gone).
    fn gone(&self, _key: &Key) {}

    /// Runs after every failed attempt; see [`Controller::on_error`](crate::Controller::on_error).
    fn on_error(&self, _object: Arc<K>, _error: Arc<Error>, _ctx: Context) -> impl Future<Output = Result<()>> + Send {
        std::future::ready(Ok(()))
    }
}

impl<K, F, Fut> Reconciler<K> for F
where
    K: Send + Sync,
    F: Fn(Arc<K>, Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result> + Send,
{
    fn reconcile(&self, object: Arc<K>, ctx: Context) -> impl Future<Output = Result> + Send {
        self(object, ctx)
    }
}

/// A function that runs after a failed attempt, with the type of its objects erased.
pub(crate) type OnError = Arc<dyn Fn(Arc<Object>, Arc<Error>, Context) -> BoxFuture<'static, Result<()>> + Send + Sync>;

/// A function on objects of one kind, with their type erased.
pub(crate) type Work<T> = Arc<dyn Fn(Arc<Object>, Context) -> BoxFuture<'static, Result<T>> + Send + Sync>;

/// Erases the type of `work`'s objects: they are decoded when it runs.
pub(crate) fn erase<K, T, Fut>(kind: Kind, work: impl Fn(Arc<K>, Context) -> Fut + Send + Sync + 'static) -> Work<T>
where
    K: DeserializeOwned + Send + Sync + 'static,
    Fut: Future<Output = Result<T>> + Send + 'static,
    T: 'static,
{
    let work = Arc::new(work);
    Arc::new(move |object, ctx| {
        let (kind, work) = (kind.clone(), work.clone());
        Box::pin(async move {
            let object = decode(&kind, &object).map_err(undecodable)?;
            work(object, ctx).await
        })
    })
}

/// The same for what runs after a failed attempt.
pub(crate) fn erase_on_error<K, Fut>(
    kind: Kind,
    on_error: impl Fn(Arc<K>, Arc<Error>, Context) -> Fut + Send + Sync + 'static,
) -> OnError
where
    K: DeserializeOwned + Send + Sync + 'static,
    Fut: Future<Output = Result<()>> + Send + 'static,
{
    let on_error = Arc::new(on_error);
    Arc::new(move |object, error, ctx| {
        let (kind, on_error) = (kind.clone(), on_error.clone());
        Box::pin(async move {
            let object = decode(&kind, &object).map_err(undecodable)?;
            on_error(object, error, ctx).await
        })
    })
}

/// [`Reconciler::reconcile`], erased.
pub(crate) fn reconcile<K, R>(kind: &Kind, reconciler: &Arc<R>) -> Work<Action>
where
    K: DeserializeOwned + Send + Sync + 'static,
    R: Reconciler<K>,
{
    let reconciler = reconciler.clone();
    erase(kind.clone(), move |object: Arc<K>, ctx| {
        let reconciler = reconciler.clone();
        async move { reconciler.reconcile(object, ctx).await }
    })
}

/// [`Reconciler::cleanup`], erased.
pub(crate) fn cleanup<K, R>(kind: &Kind, reconciler: &Arc<R>) -> Work<()>
where
    K: DeserializeOwned + Send + Sync + 'static,
    R: Reconciler<K>,
{
    let reconciler = reconciler.clone();
    erase(kind.clone(), move |object: Arc<K>, ctx| {
        let reconciler = reconciler.clone();
        async move { reconciler.cleanup(object, ctx).await }
    })
}

/// [`Reconciler::terminating`], erased.
pub(crate) fn terminating<K, R>(kind: &Kind, reconciler: &Arc<R>) -> Work<Action>
where
    K: DeserializeOwned + Send + Sync + 'static,
    R: Reconciler<K>,
{
    let reconciler = reconciler.clone();
    erase(kind.clone(), move |object: Arc<K>, ctx| {
        let reconciler = reconciler.clone();
        async move { reconciler.terminating(object, ctx).await }
    })
}

/// [`Reconciler::on_error`], erased.
pub(crate) fn on_error<K, R>(kind: &Kind, reconciler: &Arc<R>) -> OnError
where
    K: DeserializeOwned + Send + Sync + 'static,
    R: Reconciler<K>,
{
    let reconciler = reconciler.clone();
    erase_on_error(kind.clone(), move |object: Arc<K>, error, ctx| {
        let reconciler = reconciler.clone();
        async move { reconciler.on_error(object, error, ctx).await }
    })
}

/// An object that does not decode will not do so the next time either: its author has to change it.
fn undecodable(error: ReadError) -> Error {
    Error::permanent(error)
}
