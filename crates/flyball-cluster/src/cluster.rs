//! A cluster in this process: an API server, and the controllers that work on it.

use crate::{
    collector, deployment, event_ttl, kinds::Kinds, kubelet, namespace, node, replica_set, scheduler, service_account,
};
use flyball::{EventPolicy, Operator, Running};
use flyball_apiserver::{ApiServer, User};
use flyball_store::Store;
use http::{HeaderValue, Request, header::USER_AGENT};
use kube::{Client, client::Body};
use tower::ServiceExt;

/// A whole Kubernetes cluster: dropping it is like pulling the plug.
pub struct Cluster {
    server: ApiServer,
    controllers: Running,
}

/// Why a cluster does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The API server could not read or seed its store.
    #[error("start the API server: {0}")]
    Serve(String),
    /// The simulated node could not be made known.
    #[error("register the node: {0}")]
    Register(String),
    /// The controllers did not start.
    #[error("start the controllers: {0}")]
    Control(String),
}

impl Cluster {
    /// Starts a cluster on what a store holds: where an earlier one left off, this one goes on.
    pub async fn start(store: Store) -> Result<Cluster, StartError> {
        let server = ApiServer::start(store)
            .await
            .map_err(|status| StartError::Serve(status.message.clone()))?;
        Cluster::over(server).await
    }

    /// Runs the controllers of a cluster on an API server that was started with options of its own.
    pub async fn over(server: ApiServer) -> Result<Cluster, StartError> {
        let operator = operator(&server);
        let client = client(&server, operator.name());
        let registered = node::register(client.clone(), server.clock().now()).await;
        registered.map_err(|error| StartError::Register(error.to_string()))?;
        let controllers = operator.start(client).await.map_err(|error| StartError::Control(error.to_string()))?;
        Ok(Cluster { server, controllers })
    }

    /// A client with every right. It reaches the API server without a socket.
    pub fn client(&self) -> Client {
        client(&self.server, "flyball")
    }

    /// The API server, to be served on a port for others.
    pub fn api_server(&self) -> &ApiServer {
        &self.server
    }

    /// Stops the controllers, then waits for the writes that are in progress. The store stays as it is.
    pub async fn stop(self) {
        self.controllers.stop().await;
        self.server.finish_writes().await;
    }
}

/// All controllers of a cluster, under the name that users know from their objects' managed fields.
fn operator(server: &ApiServer) -> Operator {
    let kinds = Kinds::of(server.clone());
    let operator = Operator::new("kube-controller-manager")
        .controller(deployment::controller())
        .controller(replica_set::controller())
        .controller(namespace::controller(&kinds))
        .controller(service_account::controller())
        .controller(event_ttl::controller())
        .controller(scheduler::controller())
        .controller(kubelet::controller())
        .controller(collector::definitions(&kinds))
        // A real control plane's controllers log their failures and retry; they publish no event of them.
        .events(EventPolicy { failures: false, ..EventPolicy::default() });
    collector::controllers(&kinds).fold(operator, Operator::controller)
}

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
