//! An operator with two kinds: a `Cache` becomes a Deployment with what belongs to it, a `CacheUser` a Secret with the address.

pub mod admission;
pub mod api;
pub mod cache;
pub mod desired;
pub mod directory;
pub mod user;

use api::{Cache, CacheUser, v1beta1};
use cache::Caches;
use directory::Directory;
use flyball::{Controller, Conversion, Defaulting, Key, Metrics, Operator, Program, Result, Validation};
use k8s_openapi::api::{
    apps::v1::Deployment,
    batch::v1::CronJob,
    core::v1::{ConfigMap, Secret, Service},
    policy::v1::PodDisruptionBudget,
};
use kube::{CustomResourceExt, Resource, ResourceExt};
use std::{sync::Arc, time::Duration};

/// The operator's own flags.
#[derive(clap::Args, Clone, Debug)]
pub struct Flags {
    /// The zone that caches run in.
    #[arg(long, default_value = "a", env = "CACHE_ZONE")]
    pub zone: String,
}

/// The program of the operator.
pub fn program() -> Program<Flags> {
    Program::new("cache").flags()
}

/// The operator, with the directory that it registers caches in.
pub fn operator(directory: impl Directory, flags: &Flags) -> Operator {
    let metrics = Metrics::default();
    let rollouts = metrics.counter("cache_rollouts_total", "Deployments that were changed", ["zone"]);
    let rollouts = rollouts.expect("no other metric has this name");
    let caches = Caches { directory, zone: flags.zone.clone(), rollouts };
    Operator::new("cache")
        .converts(Conversion::of::<v1beta1::Cache>().then::<Cache>(v1beta1::up, v1beta1::down))
        .crd(CacheUser::crd())
        .validates(Validation::new(admission::validate))
        .defaults(Defaulting::new(admission::default))
        .metrics(&metrics)
        .controller(cache_controller(caches))
        .controller(user_controller())
}

fn cache_controller(caches: Caches<impl Directory>) -> Controller<Cache> {
    Controller::new(caches)
        .owns::<Deployment>()
        .reads::<Deployment>()
        .owns::<Service>()
        .owns::<PodDisruptionBudget>()
        .owns::<CronJob>()
        .dynamic(&desired::monitor_resource(), |monitor| monitor.owns().optional().namespaced())
        .index("config", |cache: &Cache| cache.config_key().iter().map(Key::to_string).collect())
        .watches(caches_of_config)
        .index("cache", |user: &CacheUser| vec![user.cache_key().to_string()])
        .watches(|user: Arc<CacheUser>, _| [user.cache_key()])
        .ready_condition()
        .resync(Duration::from_secs(10 * 60))
        .concurrency(4)
}

fn user_controller() -> Controller<CacheUser> {
    Controller::new(user::reconcile)
        .owns::<Secret>()
        .watches(users_of_cache)
        .ready_condition()
}

/// The caches that use a ConfigMap.
fn caches_of_config(map: Arc<ConfigMap>, cached: flyball::Cache) -> Result<Vec<Key>> {
    let caches = cached.by_index::<Cache>("config", &Key::of(&*map).to_string())?;
    Ok(caches.iter().map(|cache| Key::of(&**cache)).collect())
}

/// The users of a Cache.
fn users_of_cache(cache: Arc<Cache>, cached: flyball::Cache) -> Result<Vec<Key>> {
    let users = cached.by_index::<CacheUser>("cache", &Key::of(&*cache).to_string())?;
    Ok(users.iter().map(|user| Key::of(&**user)).collect())
}

impl Cache {
    /// The ConfigMap that it names.
    fn config_key(&self) -> Option<Key> {
        self.spec.config.as_ref().map(|name| beside(self, name))
    }
}

impl CacheUser {
    /// The Cache that it names.
    fn cache_key(&self) -> Key {
        beside(self, &self.spec.cache)
    }
}

/// Names an object in the same namespace.
fn beside(object: &impl Resource, name: &str) -> Key {
    Key::namespaced(object.namespace().unwrap_or_default(), name)
}
