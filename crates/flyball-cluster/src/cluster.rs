//! A cluster in this process: an API server, and the three programs that work on it.

use crate::{
    builder::Builder,
    controllers, kubelet,
    node::{Condition, Nodes},
    scheduler, volume,
};
use flyball::{Election, EventPolicy, Operator, Running};
use flyball_apiserver::{ApiServer, User};
use flyball_store::Store;
use http::{HeaderValue, Request, header::USER_AGENT};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{
    Api, Client, ResourceExt,
    api::{EvictParams, ListParams, Patch, PatchParams},
    client::Body,
};
use serde_json::json;
use std::time::Duration;
use tower::ServiceExt;

/// A whole Kubernetes cluster: dropping it is like pulling the plug.
pub struct Cluster {
    server: ApiServer,
    nodes: Nodes,
    /// kube-controller-manager, kube-scheduler and kubelet.
    operators: Vec<Running>,
}

/// Why a cluster does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The API server could not read or seed its store.
    #[error("start the API server: {0}")]
    Serve(String),
    /// The simulated nodes or their storage class could not be made known.
    #[error("register the nodes: {0}")]
    Register(String),
    /// The controllers did not start.
    #[error("start the controllers: {0}")]
    Control(String),
}

impl Cluster {
    /// A cluster that is yet to be started, with nodes and pods of one's own.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Starts a cluster with one node on what a store holds: where an earlier one left off, this one goes on.
    pub async fn start(store: Store) -> Result<Cluster, StartError> {
        Builder::default().start(store).await
    }

    /// Runs the controllers of a cluster on an API server that was started with options of its own.
    pub async fn over(server: ApiServer) -> Result<Cluster, StartError> {
        Builder::default().over(server).await
    }

    pub(crate) async fn build(server: ApiServer, nodes: Nodes) -> Result<Cluster, StartError> {
        let registering = client(&server, "kubelet");
        for (node, network) in nodes.iter() {
            let registered = kubelet::register(node, network, &registering, server.clock().now()).await;
            registered.map_err(|error| StartError::Register(error.to_string()))?;
        }
        let storage = volume::create_default_class(&client(&server, "kube-controller-manager")).await;
        storage.map_err(|error| StartError::Register(error.to_string()))?;
        let mut operators = Vec::new();
        let mut programs = vec![controllers::operator(&server, &nodes)];
        if nodes.iter().next().is_some() {
            programs.extend([scheduler::operator(), kubelet::operator(&nodes, server.clock())]);
        }
        for operator in programs {
            // A real control plane's controllers log their failures and retry; they publish no event of them.
            let operator = operator.events(EventPolicy { failures: false, ..EventPolicy::default() });
            let operator = elected(operator.in_process(), &server);
            let started = operator.clone().start(endless(client(&server, operator.name()))).await;
            operators.push(started.map_err(|error| StartError::Control(error.to_string()))?);
        }
        Ok(Cluster { server, nodes, operators })
    }

    /// A client with every right. It reaches the API server without a socket.
    pub fn client(&self) -> Client {
        client(&self.server, "flyball")
    }

    /// The API server, to be served on a port for others.
    pub fn api_server(&self) -> &ApiServer {
        &self.server
    }

    /// The cluster's own operators, `kube-controller-manager`, `kube-scheduler` and `kubelet`: their queues, caches and metrics.
    pub fn operators(&self) -> &[Running] {
        &self.operators
    }

    /// Turns a simulated node off: its containers end, and it is not heard of any more.
    pub fn stop_node(&self, name: &str) {
        self.nodes.set(name, Condition::Stopped);
    }

    /// Cuts a simulated node off from the API server: its containers run on, and it is not heard of any more.
    pub fn cut_off_node(&self, name: &str) {
        self.nodes.set(name, Condition::CutOff);
    }

    /// Turns a simulated node on again, or connects it again.
    pub fn start_node(&self, name: &str) {
        self.nodes.set(name, Condition::Up);
    }

    /// Drains a node as `kubectl drain --ignore-daemonsets` does: it takes no more pods, and those that are on it are evicted,
    /// again and again while their budgets do not allow it.
    pub async fn drain_node(&self, name: &str) -> kube::Result<()> {
        let client = self.client();
        let cordon = Patch::Merge(json!({ "spec": { "unschedulable": true } }));
        Api::<Node>::all(client.clone()).patch(name, &PatchParams::default(), &cordon).await?;
        loop {
            let pods = Api::<Pod>::all(client.clone());
            let pods = pods.list(&ListParams::default().fields(&format!("spec.nodeName={name}"))).await?;
            let is_daemon = |pod: &Pod| pod.owner_references().iter().any(|owner| owner.kind == "DaemonSet");
            let leaving: Vec<_> = pods.items.into_iter().filter(|pod| !is_daemon(pod)).collect();
            if leaving.is_empty() {
                return Ok(());
            }
            for pod in leaving.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()) {
                let api: Api<Pod> = Api::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
                match api.evict(&pod.name_any(), &EvictParams::default()).await {
                    Err(kube::Error::Api(status)) if matches!(status.code, 404 | 429) => {}
                    evicted => drop(evicted?),
                }
            }
            tokio::time::sleep(DRAIN_RETRY).await;
        }
    }

    /// Stops the controllers, then waits for the writes that are in progress. The store stays as it is.
    pub async fn stop(self) {
        for operator in self.operators {
            operator.stop().await;
        }
        self.server.finish_writes().await;
    }
}

/// kubectl drain's wait between attempts.
const DRAIN_RETRY: Duration = Duration::from_secs(5);

/// On a store that other processes share only one of them works.
fn elected(operator: Operator, server: &ApiServer) -> Operator {
    if !server.store().is_shared() {
        return operator;
    }
    let election = Election::new(operator.name()).namespace("kube-system");
    operator.election(election)
}

/// A client whose watches last a year: nothing between it and the API server can break.
///
/// So a cluster on a paused clock does nothing in a week in which nothing happens.
fn endless(client: Client) -> Client {
    let namespace = client.default_namespace().to_owned();
    let service = tower::service_fn(move |mut request: Request<Body>| {
        let uri = request.uri().to_string();
        if uri.contains("watch=true") {
            let uri = uri.replace(KUBE_WATCH_TIMEOUT, LONG_WATCH_TIMEOUT);
            *request.uri_mut() = uri.parse().expect("a URI with another number is one");
        }
        let client = client.clone();
        async move { client.send(request).await }
    });
    Client::new(service, namespace)
}

/// What kube asks for if it is told no timeout, and a year.
const KUBE_WATCH_TIMEOUT: &str = "timeoutSeconds=290";
const LONG_WATCH_TIMEOUT: &str = "timeoutSeconds=31536000";

/// A client that says who it is, as every client does.
fn client(server: &ApiServer, name: &str) -> Client {
    let agent = HeaderValue::from_str(&format!("{name}/{}", env!("CARGO_PKG_VERSION"))).expect("a name is ASCII");
    let server = server.as_user(User::admin());
    let service = tower::service_fn(move |mut request: Request<Body>| {
        request.headers_mut().entry(USER_AGENT).or_insert_with(|| agent.clone());
        server.clone().oneshot(request)
    });
    Client::new(service, "default")
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Cluster")
    }
}
