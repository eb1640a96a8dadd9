//! What an author writes: a function from an object to the next action. Its types are erased here.

use crate::cache::kind::Kind;
use crate::cache::object::Object;
use crate::cache::{ReadError, decode};
use crate::{Context, Result};
use futures::future::BoxFuture;
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// Brings the world closer to what an object asks for.
///
/// Functions and closures of the shape `async fn(Arc<K>, Context) -> Result` are reconcilers; implement it for a struct to
/// give it fields.
pub trait Reconciler<K>: Send + Sync + 'static {
    /// Reconciles one object. At any moment at most one call runs for each object.
    fn reconcile(&self, object: Arc<K>, ctx: Context) -> impl Future<Output = Result> + Send;
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

/// A function on objects of one kind, whose type only it knows.
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

/// An object that does not decode will not do so the next time either: its author has to change it.
fn undecodable(error: ReadError) -> crate::Error {
    crate::Error::permanent(error)
}
