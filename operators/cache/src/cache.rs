//! Reconciles a Cache: its children, its entry in the directory, its status.

use crate::{
    api::{Cache, CacheStatus, CacheUser, Exposure},
    desired,
    directory::Directory,
};
use flyball::{Action, Applied, Context, Error, Event, Key, Reconciler, Result, metrics::Counter};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
use std::{collections::BTreeMap, sync::Arc};

/// The controller of caches, with what it needs beside the cluster.
pub struct Caches<D> {
    /// Where caches are registered.
    pub directory: D,
    /// The zone that pods run in.
    pub zone: String,
    /// Counts changes of Deployments.
    pub rollouts: Counter<1>,
}

impl<D: Directory> Reconciler<Cache> for Caches<D> {
    const FINALIZER: bool = true;

    async fn reconcile(&self, cache: Arc<Cache>, ctx: Context) -> Result {
        let options = options(&cache, &ctx).await?;
        self.roll_out(&cache, &options, &ctx).await?;
        ctx.apply_all(desired::children(&cache)).await?;
        self.directory.register(&Key::of(&*cache), &desired::address(&cache)).await?;
        let deployment = ctx.get::<Deployment>(desired::name(&cache)).await?.unwrap_or_default();
        ctx.set_status(status(&cache, &deployment, &ctx)).await?;
        ctx.ready(&*deployment)?;
        Ok(Action::await_change())
    }

    async fn cleanup(&self, cache: Arc<Cache>, ctx: Context) -> Result<()> {
        let key = Key::of(&*cache);
        let users = ctx.by_index::<CacheUser>("cache", &key.to_string()).await?;
        if !users.is_empty() {
            return Err(Error::waiting(format!("{} users are left", users.len())));
        }
        self.directory.remove(&key).await
    }
}

impl<D: Directory> Caches<D> {
    async fn roll_out(&self, cache: &Cache, options: &BTreeMap<String, String>, ctx: &Context) -> Result<()> {
        let deployment = desired::deployment(cache, options, &self.zone);
        if ctx.apply(deployment).await? == Applied::Configured {
            self.rollouts.inc([&self.zone]);
            ctx.event(Event::normal("RollingOut", format!("to version {}", cache.spec.version)));
        }
        Ok(())
    }
}

/// The options of the ConfigMap that a Cache names.
async fn options(cache: &Cache, ctx: &Context) -> Result<BTreeMap<String, String>> {
    let Some(name) = &cache.spec.config else {
        return Ok(BTreeMap::new());
    };
    match ctx.get::<ConfigMap>(name).await? {
        Some(map) => Ok(map.data.clone().unwrap_or_default()),
        None => Err(Error::waiting(format!("there is no ConfigMap {name}"))),
    }
}

fn status(cache: &Cache, deployment: &Deployment, ctx: &Context) -> CacheStatus {
    let ready = deployment.status.as_ref().and_then(|status| status.ready_replicas);
    let exposed = cache.spec.exposure != Exposure::None;
    let address = if exposed {
        desired::address(cache)
    } else {
        "no Service is asked for".into()
    };
    CacheStatus {
        observed_generation: cache.metadata.generation,
        ready_replicas: ready.unwrap_or_default(),
        conditions: ctx
            .conditions()
            .set("Exposed", exposed, format!("{:?}", cache.spec.exposure), address)
            .into(),
    }
}
