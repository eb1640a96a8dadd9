//! How an operator reaches its cluster: kube's client, and for a leader's writes connections that end with its lease.

use crate::leader::Leadership;
use hyper::rt::Executor;
use kube::{Client, client::ClientBuilder};

/// The cluster that an operator [starts](crate::Operator::start) on: a `kube::Client`, or the `kube::Config` to make one of.
///
/// Both have kube's own layers: retries of 429, 503 and 504, timeouts, credentials. Of a `kube::Config` a second client is made
/// for the writes of a leader, whose connections are closed when its lease ends; see `docs/decisions/fence.md`.
pub struct Connection {
    source: Source,
}

enum Source {
    Client(Client),
    Config(Box<kube::Config>),
}

impl From<Client> for Connection {
    fn from(client: Client) -> Connection {
        Connection { source: Source::Client(client) }
    }
}

impl From<kube::Config> for Connection {
    fn from(config: kube::Config) -> Connection {
        Connection { source: Source::Config(Box::new(config)) }
    }
}

impl Connection {
    /// A client for reads and for writes that need no lease.
    pub(crate) fn client(&self) -> kube::Result<Client> {
        match &self.source {
            Source::Client(client) => Ok(client.clone()),
            Source::Config(config) => Client::try_from(kube::Config::clone(config)),
        }
    }

    /// A client for the writes of a leader; `unfenced` where there is no election, or the connections are not ours to close.
    pub(crate) fn leader_client(&self, leadership: &Leadership, unfenced: &Client) -> kube::Result<Client> {
        match &self.source {
            Source::Config(config) if leadership.election().is_some() => {
                let executor = FencedExecutor { leadership: leadership.clone() };
                Ok(ClientBuilder::try_from((kube::Config::clone(config), executor))?.build())
            }
            _ => Ok(unfenced.clone()),
        }
    }

    /// The API server's host and port, as client-go's metrics name it; empty where only the client knows it.
    pub(crate) fn host(&self) -> &str {
        match &self.source {
            Source::Client(_) => "",
            Source::Config(config) => config.cluster_url.authority().map_or("", |host| host.as_str()),
        }
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Connection").field(&self.host()).finish()
    }
}

/// Runs the tasks of hyper's connections while this process leads. A task that is dropped closes its connection.
#[derive(Clone)]
struct FencedExecutor {
    leadership: Leadership,
}

impl<F> Executor<F> for FencedExecutor
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, connection: F) {
        let leadership = self.leadership.clone();
        tokio::spawn(async move { leadership.fence().guard(connection).await });
    }
}
