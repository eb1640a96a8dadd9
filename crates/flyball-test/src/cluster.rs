//! A cluster for a test: the verbs a test speaks in, each of which panics with what it was about.

use crate::{
    place::{Place, api, is_namespaced},
    wait::until,
};
use flyball::{Operator, Running};
use flyball_store::Store;
use http::Request;
use kube::{
    Client, Resource, ResourceExt,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
    client::{Body, ClientBuilder, retry::RetryPolicy},
};
use serde::{Serialize, de::DeserializeOwned};
use tower::{BoxError, retry::RetryLayer};
use tracing_subscriber::EnvFilter;

/// A whole Kubernetes cluster inside the test's process.
///
/// Names are `"ada"` in namespace `default`, or `"prod/ada"`. What a test asks for and does not get is a panic that says
/// what was asked and what was last seen.
#[derive(Debug)]
pub struct Cluster {
    cluster: flyball_cluster::Cluster,
    operators: Vec<Running>,
}

impl Cluster {
    /// A cluster in memory: API server, controllers, one simulated node.
    ///
    /// What they log is shown with a test that fails if `RUST_LOG` is set, as in `RUST_LOG=flyball=debug cargo test`.
    pub async fn start() -> Cluster {
        Cluster::on(Store::memory()).await
    }

    /// A cluster on what a store holds; where an earlier one was dropped, as by a crash, this one goes on.
    pub async fn on(store: Store) -> Cluster {
        log();
        let cluster = flyball_cluster::Cluster::start(store)
            .await
            .expect("a cluster starts on a store that can be read");
        Cluster { cluster, operators: Vec::new() }
    }

    /// The same, with an operator running in it.
    pub async fn with(operator: Operator) -> Cluster {
        let mut cluster = Cluster::start().await;
        cluster.run(operator).await;
        cluster
    }

    /// Runs one more operator, as [`flyball::run`] does: elected by a Lease, its writes fenced, its requests retried as kube's
    /// client retries them, its kinds installed when this returns. It opens no port.
    ///
    /// An operator of the same name as one that runs already is its standby. One that takes over from an operator that was
    /// dropped waits until the Lease has ended: 15 seconds, on the paused clock no time at all.
    pub async fn run(&mut self, operator: Operator) {
        let mut config = operator.configuration().cloned().unwrap_or_default();
        (config.metrics.enabled, config.health.enabled) = (false, false);
        let started = async {
            let running = operator.config(&config).start(with_retries(self.client())).await?;
            running.installed().await.map(|()| running)
        };
        let running = started.await.unwrap_or_else(|error| panic!("start the operator: {error}"));
        self.operators.push(running);
    }

    /// A client with every right, for whatever the other verbs do not say.
    pub fn client(&self) -> Client {
        self.cluster.client()
    }

    /// Creates an object.
    pub async fn create<K>(&self, object: K) -> K
    where
        K: Resource<DynamicType = (), Scope: 'static> + Serialize + DeserializeOwned,
    {
        let (place, dynamic) = locate(&object);
        let api = api::<K>(self.client(), place.namespace.as_deref());
        let created = api.create(&PostParams::default(), &dynamic).await;
        parse("create", &place, created)
    }

    /// Applies an object with server-side apply, as manager `test`; conflicts are taken over.
    pub async fn apply<K>(&self, object: K) -> K
    where
        K: Resource<DynamicType = (), Scope: 'static> + Serialize + DeserializeOwned,
    {
        let (place, dynamic) = locate(&object);
        let api = api::<K>(self.client(), place.namespace.as_deref());
        let applied = api.patch(&place.name, &PatchParams::apply("test").force(), &Patch::Apply(&dynamic)).await;
        parse("apply", &place, applied)
    }

    /// The object of that name.
    pub async fn get<K>(&self, name: &str) -> K
    where
        K: Resource<DynamicType = (), Scope: 'static> + DeserializeOwned,
    {
        let place = Place::of::<K>(name);
        let found = api::<K>(self.client(), place.namespace.as_deref()).get(&place.name).await;
        parse("get", &place, found)
    }

    /// Deletes an object; [`Cluster::until_gone`] waits until it is gone.
    pub async fn delete<K>(&self, name: &str)
    where
        K: Resource<DynamicType = (), Scope: 'static>,
    {
        let place = Place::of::<K>(name);
        let api = api::<K>(self.client(), place.namespace.as_deref());
        let deleted = api.delete(&place.name, &DeleteParams::default()).await;
        deleted.unwrap_or_else(|error| panic!("delete {}: {}", place.describe::<K>(), reason(&error)));
    }

    /// Waits until the object exists and satisfies the condition.
    pub async fn until<K>(&self, name: &str, condition: impl Fn(&K) -> bool) -> K
    where
        K: Resource<DynamicType = (), Scope: 'static> + DeserializeOwned + Clone,
    {
        let place = Place::of::<K>(name);
        until(self.client(), &place, |object: Option<&K>| {
            object.filter(|object| condition(object)).cloned()
        })
        .await
    }

    /// Waits until there is no object of that name.
    pub async fn until_gone<K>(&self, name: &str)
    where
        K: Resource<DynamicType = (), Scope: 'static> + DeserializeOwned,
    {
        let place = Place::of::<K>(name);
        until(self.client(), &place, |object: Option<&K>| object.is_none().then_some(())).await;
    }
}

/// The same client with kube's own retries, which a client of a `kube::Config` has.
fn with_retries(client: Client) -> Client {
    let namespace = client.default_namespace().to_owned();
    let send = move |request: Request<Body>| {
        let client = client.clone();
        async move { client.send(request).await.map_err(BoxError::from) }
    };
    let retries = RetryLayer::new(RetryPolicy::server_retry());
    ClientBuilder::new(tower::service_fn(send), namespace).with_layer(&retries).build()
}

/// Logs to where the test's own output goes. Only the first call of a process counts.
fn log() {
    if let Ok(filter) = EnvFilter::try_from_default_env() {
        let logger = tracing_subscriber::fmt().with_env_filter(filter).with_test_writer();
        logger.try_init().unwrap_or_default();
    }
}

fn locate<K>(object: &K) -> (Place, DynamicObject)
where
    K: Resource<DynamicType = (), Scope: 'static> + Serialize,
{
    let mut value = serde_json::to_value(object).expect("an object is JSON");
    value["apiVersion"] = K::api_version(&()).into();
    value["kind"] = K::kind(&()).into();
    let dynamic: DynamicObject = serde_json::from_value(value).expect("an object has metadata");
    let namespace = is_namespaced::<K>().then(|| object.namespace().unwrap_or_else(|| "default".into()));
    (Place { namespace, name: object.name_any() }, dynamic)
}

fn parse<K>(verb: &str, place: &Place, answer: kube::Result<DynamicObject>) -> K
where
    K: Resource<DynamicType = ()> + DeserializeOwned,
{
    let object = answer.unwrap_or_else(|error| panic!("{verb} {}: {}", place.describe::<K>(), reason(&error)));
    object
        .try_parse()
        .unwrap_or_else(|error| panic!("{verb} {}: the answer is no such kind: {error}", place.describe::<K>()))
}

/// What the server said, without what the client makes of it.
fn reason(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        error => error.to_string(),
    }
}
