//! What a cluster is made of before it starts: nodes, how pods behave, and whether it shares its store.

use crate::{
    behaviour::{Behaviour, Behaviours, Rule},
    cluster::{Cluster, StartError},
    node::{DEFAULT_NAME, Nodes, SimulatedNode},
};
use flyball_apiserver::ApiServer;
use flyball_store::Store;
use k8s_openapi::api::core::v1::Pod;
use std::sync::Arc;

/// The parts of a [`Cluster`].
///
/// ```
/// # use flyball_cluster::{Behaviour, Cluster, SimulatedNode};
/// let builder = Cluster::builder()
///     .nodes(2)
///     .node(SimulatedNode::new("gpu").taint("gpu", "yes", "NoSchedule"))
///     .pods(|pod| (pod.metadata.name.as_deref() == Some("flaky")).then(|| "exit: { code: 1 }".parse().unwrap()));
/// ```
#[derive(Clone, Default)]
pub struct Builder {
    nodes: Vec<SimulatedNode>,
    behaviours: Behaviours,
    heartbeats: Option<bool>,
    without_nodes: bool,
}

impl Builder {
    /// Adds so many nodes with much room: `flyball-1`, `flyball-2` and so on. A cluster without any gets one, `flyball`.
    pub fn nodes(mut self, count: usize) -> Builder {
        let first = self.nodes.len() + 1;
        self.nodes
            .extend((first..first + count).map(|number| SimulatedNode::new(format!("{DEFAULT_NAME}-{number}"))));
        self
    }

    /// Adds a node.
    pub fn node(mut self, node: SimulatedNode) -> Builder {
        self.nodes.push(node);
        self
    }

    /// Asks `told` how each pod behaves, before its annotation and the rules.
    pub fn pods(mut self, told: impl Fn(&Pod) -> Option<Behaviour> + Send + Sync + 'static) -> Builder {
        self.behaviours.told = Some(Arc::new(told));
        self
    }

    /// Has pods behave by the first rule that is about them.
    pub fn rules(mut self, rules: Vec<Rule>) -> Builder {
        self.behaviours.rules = rules.into();
        self
    }

    /// Says whether nodes renew their Leases every ten seconds and are given up when they do not. They do where nodes were
    /// added; the one node of a cluster without any does not, so that a year on a paused clock costs nothing.
    pub fn heartbeats(mut self, heartbeats: bool) -> Builder {
        self.heartbeats = Some(heartbeats);
        self
    }

    /// Runs kube-controller-manager alone: no scheduler and no node, so that pods stay as a test leaves them.
    pub fn without_nodes(mut self) -> Builder {
        self.without_nodes = true;
        self
    }

    /// Starts the cluster on the objects that a store holds.
    pub async fn start(self, store: Store) -> Result<Cluster, StartError> {
        let server = ApiServer::start(store).await;
        let server = server.map_err(|status| StartError::Serve(status.message.clone()))?;
        self.over(server).await
    }

    /// Starts the cluster on an API server that was started with options of its own.
    pub async fn over(self, server: ApiServer) -> Result<Cluster, StartError> {
        let heartbeats = self.heartbeats.unwrap_or(!self.nodes.is_empty());
        let nodes = match self.nodes {
            _ if self.without_nodes => Vec::new(),
            none if none.is_empty() => vec![SimulatedNode::new(DEFAULT_NAME)],
            nodes => nodes,
        };
        Cluster::build(server, Nodes::new(nodes, self.behaviours, heartbeats)).await
    }
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder").field("nodes", &self.nodes).finish_non_exhaustive()
    }
}
