//! A group of replicas of one operator that writes all the time, and the API server's journal of what they wrote.

use crate::world::{World, pass};
use flyball::{Action, Context, Controller, Election, Operator, Result, Running};
use http::{Method, Request, Response};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
    client::Body,
};
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::Instant;

/// What lies between a replica and the API server.
#[derive(Clone, Copy, Debug)]
pub enum Network {
    Well,
    /// Requests vanish, and fail after a quarter of a minute.
    Silent,
    /// Requests fail at once.
    Refusing,
    /// Requests arrive late, also those that were abandoned meanwhile.
    Slow(Duration),
    /// The same for writes of data; those of the Lease are lost.
    SlowAndDeaf(Duration),
}

/// What the API server accepted, in its own order.
#[derive(Clone, Default)]
pub struct Journal {
    writes: Arc<Mutex<Vec<Write>>>,
    requests: Arc<Mutex<Vec<String>>>,
}

#[derive(Clone, Debug)]
struct Write {
    version: u64,
    at: Instant,
    writer: String,
    /// Who holds the Lease from here on, if it is the Lease that was written.
    holder: Option<String>,
}

pub struct Replica {
    pub name: String,
    network: Arc<Mutex<Network>>,
    running: Option<Running>,
}

pub struct Group {
    pub world: World,
    pub journal: Journal,
    pub replicas: Vec<Replica>,
    started: usize,
    size: usize,
}

impl Group {
    pub async fn start(size: usize) -> Group {
        let world = World::start().await;
        let named = |name| json!({ "metadata": { "name": name } });
        world.create::<Secret>(serde_json::from_value(named("tick")).unwrap()).await;
        world.create::<ConfigMap>(serde_json::from_value(named("target")).unwrap()).await;
        let mut group = Group {
            world,
            journal: Journal::default(),
            replicas: Vec::new(),
            started: 0,
            size,
        };
        group.refill().await;
        group
    }

    /// Starts replicas in the place of those that are gone.
    pub async fn refill(&mut self) {
        while self.replicas.len() < self.size {
            self.started += 1;
            let (name, network) = (format!("replica-{}", self.started), Arc::new(Mutex::new(Network::Well)));
            let client = self.client(&name, network.clone());
            let running = writer(&name).start(client).await.unwrap();
            self.replicas.push(Replica { name, network, running: Some(running) });
        }
    }

    pub fn replica(&self, name: &str) -> &Replica {
        self.replicas.iter().find(|replica| replica.name == name).unwrap()
    }

    /// Whoever holds the Lease, once somebody does.
    pub async fn leader(&self) -> String {
        loop {
            let holder = self.journal.writes.lock().unwrap().iter().rev().find_map(|write| write.holder.clone());
            match holder.filter(|holder| self.replicas.iter().any(|replica| replica.name == *holder)) {
                Some(holder) => return holder,
                None => pass(Duration::from_millis(100)).await,
            }
        }
    }

    pub fn crash(&mut self, name: &str) {
        self.replicas.retain(|replica| replica.name != name);
    }

    pub async fn stop(&mut self, name: &str) {
        let index = self.replicas.iter().position(|replica| replica.name == name).unwrap();
        self.replicas.remove(index).running.unwrap().stop().await;
    }

    pub async fn stop_all(&mut self) {
        for replica in self.replicas.drain(..) {
            replica.running.unwrap().stop().await;
        }
    }

    /// Everybody who wrote.
    pub fn writers(&self) -> Vec<String> {
        let writes = self.journal.sorted();
        let data = writes.iter().filter(|write| write.holder.is_none());
        data.map(|write| write.writer.clone()).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Who writes first after a time, and when.
    pub async fn next_writer(&self, after: Instant) -> (String, Instant) {
        self.next_writer_but(after, "").await
    }

    pub async fn next_writer_but(&self, after: Instant, but: &str) -> (String, Instant) {
        loop {
            let writes = self.journal.sorted();
            let next = writes
                .iter()
                .find(|write| write.holder.is_none() && write.at > after && write.writer != but);
            match next {
                Some(write) => return (write.writer.clone(), write.at),
                None => pass(Duration::from_millis(20)).await,
            }
        }
    }

    /// In the order in which the API server accepted them, every write is by whoever holds the Lease.
    pub fn check(&self, seed: &str) {
        let mut holder = String::new();
        for write in self.journal.sorted() {
            match write.holder {
                Some(next) => holder = next,
                None => assert_eq!(write.writer, holder, "{seed}: at version {}", write.version),
            }
        }
    }

    fn client(&self, name: &str, network: Arc<Mutex<Network>>) -> Client {
        let (server, journal, name) = (self.world.client.clone(), self.journal.clone(), name.to_owned());
        let service = tower::service_fn(move |request: Request<Body>| {
            let (server, journal, name, network) = (server.clone(), journal.clone(), name.clone(), network.clone());
            async move {
                let network = *network.lock().unwrap();
                let delay = match network {
                    Network::Well => Duration::ZERO,
                    Network::Slow(delay) => delay,
                    Network::SlowAndDeaf(delay) if !request.uri().path().contains("/leases") => delay,
                    Network::Silent | Network::SlowAndDeaf(_) => {
                        pass(Duration::from_secs(15)).await;
                        return Err(kube::Error::Service("connection timed out".into()));
                    }
                    Network::Refusing => return Err(kube::Error::Service("connection refused".into())),
                };
                // On its way, whatever becomes of whoever sent it.
                tokio::spawn(async move {
                    tokio::time::sleep(delay).await;
                    journal.deliver(&server, request, name).await
                })
                .await
                .unwrap()
            }
        });
        Client::new(service, "default")
    }
}

impl Replica {
    pub fn network(&self, network: Network) {
        *self.network.lock().unwrap() = network;
    }

    pub fn running(&self) -> &Running {
        self.running.as_ref().unwrap()
    }
}

impl Journal {
    /// The requests of all replicas whose line begins and contains this.
    pub fn requests(&self, method: &str, text: &str) -> Vec<String> {
        let requests = self.requests.lock().unwrap();
        requests
            .iter()
            .filter(|line| line.starts_with(method) && line.contains(text))
            .cloned()
            .collect()
    }

    /// When the last write of data by a replica was taken.
    pub fn last_write_of(&self, writer: &str) -> Instant {
        let writes = self.writes.lock().unwrap();
        let written = writes.iter().filter(|write| write.holder.is_none() && write.writer == writer);
        written.map(|write| write.at).max().unwrap()
    }

    async fn deliver(&self, server: &Client, request: Request<Body>, writer: String) -> kube::Result<Response<Body>> {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        self.requests.lock().unwrap().push(format!("{method} {}", request.uri()));
        let response = server.send(request).await?;
        // An event records what happened while its replica led, and may arrive later.
        if method == Method::GET || path.contains("/events") || !response.status().is_success() {
            return Ok(response);
        }
        let (head, body) = response.into_parts();
        let bytes = body.collect_bytes().await?;
        let object: Value = serde_json::from_slice(&bytes).unwrap();
        let version = object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
        let holder = path
            .contains("/leases")
            .then(|| object["spec"]["holderIdentity"].as_str().unwrap().to_owned());
        self.writes.lock().unwrap().push(Write { version, at: Instant::now(), writer, holder });
        Ok(Response::from_parts(head, Body::from(bytes)))
    }

    fn sorted(&self) -> Vec<Write> {
        let mut writes = self.writes.lock().unwrap().clone();
        writes.sort_by_key(|write| write.version);
        writes
    }
}

/// Writes every second in a reconcile, and beside it in a task that no abort reaches: only the fence stops that one.
fn writer(name: &str) -> Operator {
    let identity = name.to_owned();
    let reconcile = move |_: Arc<Secret>, ctx: Context| {
        let identity = identity.clone();
        async move {
            let client = ctx.client();
            write(&client, &identity).await?;
            tokio::spawn(async move {
                for _ in 0..30 {
                    pass(Duration::from_millis(700)).await;
                    if let Err(error) = write(&client, &identity).await {
                        tracing::debug!(%error, "not written");
                    }
                }
            });
            Result::Ok(Action::requeue_after(Duration::from_secs(5)))
        }
    };
    Operator::new("writer")
        .election(Election::new("writer").identity(name))
        .controller(Controller::new(reconcile))
}

async fn write(client: &Client, identity: &str) -> kube::Result<ConfigMap> {
    let patch = Patch::Merge(json!({ "data": { "writer": identity, "at": format!("{:?}", Instant::now()) } }));
    Api::namespaced(client.clone(), "default")
        .patch("target", &PatchParams::default(), &patch)
        .await
}
