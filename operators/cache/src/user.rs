//! Reconciles a CacheUser: once its Cache is ready, a Secret has the address.

use crate::{
    api::{Cache, CacheUser},
    desired,
};
use flyball::{Action, Context, Error, Result};
use std::sync::Arc;

/// Waits for the Cache, then applies the Secret.
pub async fn reconcile(user: Arc<CacheUser>, ctx: Context) -> Result {
    let name = &user.spec.cache;
    let Some(cache) = ctx.get::<Cache>(name).await? else {
        return Err(Error::waiting(format!("there is no Cache {name}")));
    };
    // A kind without the condition counts as ready, and a new Cache has no condition yet.
    if !cache
        .status
        .iter()
        .flat_map(|status| &status.conditions)
        .any(|condition| condition.type_ == "Ready")
    {
        return Err(Error::waiting(format!("Cache {name} was not reconciled yet")));
    }
    ctx.ready(&*cache)?;
    ctx.apply(desired::credentials(&cache)).await?;
    Ok(Action::await_change())
}
