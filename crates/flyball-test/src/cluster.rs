//! A cluster for a test: the operators that run in it, their requests, and the verbs of a test in short form.

use crate::webhooks::{self, Webhooks};
use crate::{Answer, Objects, journal::Journal, log, report, rights};
use flyball::{Manifests, Operator, Running};
use flyball_apiserver::{ApiServer, ServerOptions, User};
use flyball_cluster::Builder;
use flyball_store::Store;
use http::Request;
use k8s_openapi::api::{events::v1::Event, rbac::v1::PolicyRule};
use kube::{
    Client, Resource,
    api::{ApiResource, DynamicObject, Patch},
    client::{Body, ClientBuilder, retry::RetryPolicy},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::fmt::{self, Debug, Formatter};
use tower::{BoxError, retry::RetryLayer};

/// A whole Kubernetes cluster inside the test's process.
///
/// A name is `"ada"` in namespace `default`, or `"prod/ada"`. A verb that fails panics with the line that called it, the object,
/// and what the API server answered. A wait that fails also shows the object as it was last seen, and what the operators report
/// about it: errors, retries, and what is queued.
pub struct Cluster {
    server: Server,
    journal: Journal,
    operators: Vec<Started>,
}

enum Server {
    WithControllers(Box<flyball_cluster::Cluster>),
    Alone(ApiServer),
}

/// An operator of the cluster, with what is needed to start it again.
#[derive(Debug)]
struct Started {
    operator: Operator,
    /// None while it is stopped.
    running: Option<(Running, Option<Webhooks>)>,
}

impl Cluster {
    /// A cluster in memory: API server, controllers, one simulated node.
    ///
    /// With `RUST_LOG` set, as in `RUST_LOG=flyball=debug cargo test`, a failed test shows what they logged. A line begins with the
    /// time since the cluster started, in the time of the test's clock.
    pub async fn start() -> Cluster {
        Cluster::on(Store::memory()).await
    }

    /// A cluster on a store, with the objects that it holds: after an earlier one was dropped, for example, as by a crash.
    pub async fn on(store: Store) -> Cluster {
        log::start();
        let cluster = flyball_cluster::Cluster::start(store)
            .await
            .expect("a cluster starts on a store that can be read");
        Cluster::of(Server::WithControllers(Box::new(cluster)))
    }

    /// A cluster in memory with nodes and behaviours of pods of the test's own.
    ///
    /// ```no_run
    /// # async fn test() {
    /// let cluster = flyball_test::Cluster::build(flyball_test::Builder::default().nodes(3)).await;
    /// cluster.simulation().stop_node("flyball-2");
    /// # }
    /// ```
    pub async fn build(builder: Builder) -> Cluster {
        log::start();
        let cluster = builder.start(Store::memory()).await.expect("a cluster starts on an empty store");
        Cluster::of(Server::WithControllers(Box::new(cluster)))
    }

    /// The simulated control plane and nodes, to stop or drain a node for example.
    ///
    /// # Panics
    /// If the cluster was started [without controllers](Cluster::without_controllers).
    pub fn simulation(&self) -> &flyball_cluster::Cluster {
        match &self.server {
            Server::WithControllers(cluster) => cluster,
            Server::Alone(_) => panic!("this cluster has no controllers and no nodes"),
        }
    }

    /// An API server in memory without controllers or nodes: nothing collects garbage, runs pods, or writes but the test and its
    /// operators.
    pub async fn without_controllers() -> Cluster {
        log::start();
        // Nothing makes service accounts there, so pods need none.
        let options = ServerOptions {
            disabled_admission_plugins: vec!["ServiceAccount".into()],
            ..ServerOptions::default()
        };
        let server = options.start(Store::memory()).await;
        Cluster::of(Server::Alone(server.expect("an API server starts on an empty store")))
    }

    fn of(server: Server) -> Cluster {
        Cluster { server, journal: Journal::default(), operators: Vec::new() }
    }

    /// As [`Cluster::start`], with an operator running in it.
    pub async fn with(operator: Operator) -> Cluster {
        let mut cluster = Cluster::start().await;
        cluster.run(operator).await;
        cluster
    }

    /// Runs one more operator, as [`flyball::run`] does: elected by a Lease, its writes fenced, its requests retried as kube's
    /// client retries them, its kinds installed when this returns. It opens no port.
    ///
    /// It runs as its own service account, in namespace `default`, with exactly the rights that `rbac` prints for it. A request
    /// that they do not cover is refused, and fails the next wait of the test with the line of Rust that grants it.
    ///
    /// Its webhooks are called in the process, through the admission and the conversion of the API server, without a port and
    /// without certificates. While it is stopped they do not answer.
    ///
    /// An operator of the same name as one that runs already is its standby. One that takes over from an operator that was
    /// dropped waits until the Lease has ended: 15 seconds, on the paused clock no time at all.
    pub async fn run(&mut self, operator: Operator) -> &Running {
        let running = self.begin(&operator).await;
        self.operators.push(Started { operator, running: Some(running) });
        let last = self.operators.last().and_then(|started| started.running.as_ref());
        &last.expect("the operator was pushed above").0
    }

    async fn begin(&self, operator: &Operator) -> (Running, Option<Webhooks>) {
        let mut config = operator.configuration().cloned().unwrap_or_default();
        (config.metrics.enabled, config.health.enabled) = (false, false);
        webhooks::configure(operator, &mut config);
        let operator = &operator.clone().config(&config);
        rights::grant(&self.client(), operator).await;
        let client = with_retries(self.journal.client(self.client_of(rights::user_of(operator))));
        let webhooks = Webhooks::register(self.server(), operator, &client);
        rights::apply(&self.client(), &Manifests::of(operator).webhooks()).await;
        let started = async {
            let running = operator.start(client).await?;
            running.installed().await.map(|()| running)
        };
        (started.await.unwrap_or_else(|error| panic!("start the operator: {error}")), webhooks)
    }

    /// The running operator of that name: its metrics, queues, caches and events.
    pub fn operator(&self, name: &str) -> &Running {
        let mut started = self.operators.iter().filter(|started| started.operator.name() == name);
        let running = started.find_map(|started| started.running.as_ref().map(|(running, _)| running));
        running.unwrap_or_else(|| panic!("no operator called {name:?} is running"))
    }

    /// Stops an operator, as SIGTERM does: reconciles that are running end first.
    pub async fn stop(&mut self, name: &str) {
        self.take(name).stop().await;
    }

    /// Ends an operator at once, as a crash does.
    pub fn crash(&mut self, name: &str) {
        drop(self.take(name));
    }

    /// Starts an operator again; one that runs is stopped before.
    pub async fn restart(&mut self, name: &str) -> &Running {
        if self.started(name).running.is_some() {
            self.stop(name).await;
        }
        let operator = self.started(name).operator.clone();
        let running = self.begin(&operator).await;
        &self.started(name).running.insert(running).0
    }

    fn started(&mut self, name: &str) -> &mut Started {
        let is_named = |started: &&mut Started| started.operator.name() == name;
        // The one that runs, or the last that did.
        let mut started: Vec<_> = self.operators.iter_mut().filter(is_named).collect();
        started.sort_by_key(|started| started.running.is_some());
        started.pop().unwrap_or_else(|| panic!("no operator is called {name:?}"))
    }

    fn take(&mut self, name: &str) -> Running {
        let running = self.started(name).running.take().map(|(running, _)| running);
        running.unwrap_or_else(|| panic!("no operator called {name:?} is running"))
    }

    /// A client with every right. Its requests are not recorded.
    pub fn client(&self) -> Client {
        match &self.server {
            Server::WithControllers(cluster) => cluster.client(),
            Server::Alone(server) => Client::new(server.as_user(User::admin()), "default"),
        }
    }

    /// A client that makes its requests as a user, with the rights that RBAC gives it.
    pub fn client_of(&self, user: User) -> Client {
        Client::new(self.server().as_user(user), rights::NAMESPACE)
    }

    fn server(&self) -> &ApiServer {
        match &self.server {
            Server::WithControllers(cluster) => cluster.api_server(),
            Server::Alone(server) => server,
        }
    }

    /// The rights that operators have used so far: the smallest Role for what this test does.
    pub fn rbac(&self) -> Vec<PolicyRule> {
        rights::rules(&self.journal.used())
    }

    /// The rights that the operator of that name has and has not used so far.
    pub fn unused_rights(&self, name: &str) -> Vec<PolicyRule> {
        let started = self.operators.iter().find(|started| started.operator.name() == name);
        let started = started.unwrap_or_else(|| panic!("no operator is called {name:?}"));
        rights::unused(&started.operator, &self.journal.used())
    }

    /// What operators were refused for a missing right, each with the line of Rust that grants it.
    pub fn missing_rights(&self) -> Vec<String> {
        let registry = self.server().registry();
        self.journal.denied().iter().map(|denied| denied.hint(registry)).collect()
    }

    /// A client with every right whose requests are treated as those of an operator: they are in [`Cluster::requests`], and [`Cluster::break_with`]
    /// answers them. It is for operators that a test starts itself.
    pub fn recorded_client(&self) -> Client {
        self.journal.client(self.client())
    }

    /// All requests of the operators so far, such as `GET /api/v1/namespaces/default/configmaps/ada`.
    pub fn requests(&self) -> Vec<String> {
        self.journal.requests()
    }

    /// The requests of the operators since this was called last, without those that only read.
    pub fn writes(&self) -> Vec<String> {
        self.journal.new_writes()
    }

    /// Answers requests of the operators in the place of the API server: those for which `fault` returns an answer.
    ///
    /// ```
    /// # use flyball_test::{Answer, Cluster};
    /// # async fn test(cluster: &Cluster) {
    /// cluster.break_with(|request| {
    ///     let writes_secrets = request.method() != "GET" && request.uri().path().contains("/secrets");
    ///     writes_secrets.then(|| Answer::refusal(403, "secrets are forbidden"))
    /// });
    /// // … the operator cannot write Secrets …
    /// cluster.mend();
    /// # }
    /// ```
    pub fn break_with(&self, fault: impl FnMut(&Request<Body>) -> Option<Answer> + Send + 'static) {
        self.journal.set_fault(Some(Box::new(fault)));
    }

    /// Ends the fault of [`Cluster::break_with`].
    pub fn mend(&self) {
        self.journal.set_fault(None);
    }

    /// What the operators know about an object and about whatever fails.
    pub(crate) fn report(&self, object: &str) -> String {
        let running = self.operators.iter().filter_map(|started| {
            let (running, _) = started.running.as_ref()?;
            Some((started.operator.name(), running))
        });
        report::of(running, object)
    }
}

impl Debug for Cluster {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").field("operators", &self.operators).finish_non_exhaustive()
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

/// Verbs, each short for that of [`Objects`].
impl Cluster {
    /// The objects of a kind.
    pub fn objects<K>(&self) -> Objects<'_, K>
    where
        K: Resource<DynamicType = (), Scope: 'static>,
    {
        Objects::of_type(self)
    }

    /// The objects of a kind that is known at run time only, and namespaced unless [`Objects::cluster_wide`] says otherwise.
    ///
    /// ```
    /// # use kube::core::{ApiResource, GroupVersionKind};
    /// # async fn test(cluster: &flyball_test::Cluster) {
    /// let monitors = ApiResource::from_gvk(&GroupVersionKind::gvk("monitoring.coreos.com", "v1", "ServiceMonitor"));
    /// let monitor = cluster.dynamic(&monitors).until("ada", |monitor| monitor.data["spec"].is_object()).await;
    /// # }
    /// ```
    pub fn dynamic(&self, resource: &ApiResource) -> Objects<'_, DynamicObject> {
        Objects::of_kind(self, resource.clone())
    }

    /// Creates an object.
    #[track_caller]
    pub fn create<K>(&self, object: K) -> impl Future<Output = K>
    where
        K: Resource<DynamicType = (), Scope: 'static> + Serialize + DeserializeOwned,
    {
        self.objects().create(object)
    }

    /// Applies an object; see [`Objects::apply`].
    #[track_caller]
    pub fn apply<K>(&self, object: K) -> impl Future<Output = K>
    where
        K: Resource<DynamicType = (), Scope: 'static> + Serialize + DeserializeOwned,
    {
        self.objects().apply(object)
    }

    /// Changes an object, as `kubectl edit` does; see [`Objects::edit`].
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # async fn test(cluster: &flyball_test::Cluster) {
    /// cluster.edit("ada", |map: &mut ConfigMap| map.data = None).await;
    /// # }
    /// ```
    #[track_caller]
    pub fn edit<K>(&self, name: &str, change: impl FnMut(&mut K)) -> impl Future<Output = K>
    where
        K: Resource<DynamicType = (), Scope: 'static> + Serialize + DeserializeOwned,
    {
        self.objects().edit(name, change)
    }

    /// Changes fields of an object by a JSON merge patch; `null` removes one.
    #[track_caller]
    pub fn merge<K>(&self, name: &str, fields: Value) -> impl Future<Output = K>
    where
        K: Resource<DynamicType = (), Scope: 'static> + DeserializeOwned,
    {
        self.objects().patch(name, Patch::Merge(fields))
    }

    /// Patches an object; [`Cluster::merge`] is shorter for merge patches.
    #[track_caller]
    pub fn patch<K>(&self, name: &str, patch: Patch<impl Serialize + Debug>) -> impl Future<Output = K>
    where
        K: Resource<DynamicType = (), Scope: 'static> + DeserializeOwned,
    {
        self.objects().patch(name, patch)
    }

    /// Changes fields of an object's status by a JSON merge patch, as in `json!({ "readyReplicas": 2 })`.
    #[track_caller]
    pub fn patch_status<K>(&self, name: &str, fields: Value) -> impl Future<Output = K>
    where
        K: Resource<DynamicType = (), Scope: 'static> + DeserializeOwned,
    {
        self.objects().patch_status(name, Patch::Merge(serde_json::json!({ "status": fields })))
    }

    /// The object of that name.
    #[track_caller]
    pub fn get<K>(&self, name: &str) -> impl Future<Output = K>
    where
        K: Resource<DynamicType = (), Scope: 'static> + DeserializeOwned,
    {
        self.objects().get(name)
    }

    /// The objects of a kind in namespace `default`, or all of a cluster-scoped kind, in the order of their names.
    #[track_caller]
    pub fn list<K>(&self) -> impl Future<Output = Vec<K>>
    where
        K: Resource<DynamicType = (), Scope: 'static> + DeserializeOwned,
    {
        self.objects().list()
    }

    /// Deletes an object; [`Cluster::until_gone`] waits until it is gone.
    #[track_caller]
    pub fn delete<K>(&self, name: &str) -> impl Future<Output = ()>
    where
        K: Resource<DynamicType = (), Scope: 'static>,
    {
        self.objects::<K>().delete(name)
    }

    /// Waits until the object exists and satisfies the condition.
    #[track_caller]
    pub fn until<K>(&self, name: &str, condition: impl Fn(&K) -> bool) -> impl Future<Output = K>
    where
        K: Resource<DynamicType = (), Scope: 'static> + DeserializeOwned,
    {
        self.objects().until(name, condition)
    }

    /// Waits until there is no object of that name.
    #[track_caller]
    pub fn until_gone<K>(&self, name: &str) -> impl Future<Output = ()>
    where
        K: Resource<DynamicType = (), Scope: 'static> + DeserializeOwned,
    {
        self.objects::<K>().until_gone(name)
    }

    /// The events about an object so far; see [`Objects::events`].
    #[track_caller]
    pub fn events<K>(&self, name: &str) -> impl Future<Output = Vec<Event>>
    where
        K: Resource<DynamicType = (), Scope: 'static>,
    {
        self.objects::<K>().events(name)
    }

    /// Waits until there is an event with this reason about an object.
    #[track_caller]
    pub fn until_event<K>(&self, name: &str, reason: &str) -> impl Future<Output = Event>
    where
        K: Resource<DynamicType = (), Scope: 'static>,
    {
        self.objects::<K>().until_event(name, reason)
    }
}
