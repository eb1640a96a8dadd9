//! Objects with three children and a status each, and an operator that is restarted and fails over: neither writes anything,
//! by the journal of its requests, by the versions of the objects, and by the real server's audit log.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use flyball::{Action, Context, Controller, Election, Operator, Running};
use futures::{StreamExt, TryStreamExt, stream};
use http::{Method, Request};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Secret, Service};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, PostParams};
use kube::client::Body;
use kube::runtime::wait::{await_condition, conditions};
use kube::{Client, CustomResource, CustomResourceExt, Resource, ResourceExt};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::ours;
use crate::reference::{Audit, Reference, Setup};
use crate::report::sentence;

/// How long all objects may take to be reconciled.
const MAX_WAIT: Duration = Duration::from_secs(3_600);
/// How many requests are under way at once.
const CONCURRENCY: usize = 16;

/// How many objects there are, and on which server.
#[derive(clap::Args)]
pub struct Options {
    /// How many objects there are; each has three children and a status
    #[arg(long, default_value_t = 10_000)]
    objects: usize,
    /// Which server
    #[arg(long, value_enum, default_value_t = Against::Both)]
    against: Against,
}

/// Which server an operator is restarted on.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Against {
    /// Both servers, one after the other.
    Both,
    /// A real kube-apiserver.
    Reference,
    /// Ours.
    Flyball,
}

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "conformance.flyball.dev",
    version = "v1",
    kind = "Site",
    namespaced,
    status = "SiteStatus"
)]
struct SiteSpec {
    replicas: i32,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
struct SiteStatus {
    replicas: i32,
    hosts: Vec<String>,
}

/// What an operator has done since it was last asked.
#[derive(Clone, Default)]
struct Journal {
    writes: Arc<Mutex<Vec<String>>>,
    reconciled: Arc<Mutex<HashSet<String>>>,
}

/// Restarts the operator and lets it fail over, and prints what that cost; a write is an error.
pub async fn run(options: &Options) -> Result<(), String> {
    if options.against != Against::Reference {
        let client = ours::client().await?;
        try_on("flyball", &client, options.objects, None).await?;
    }
    if options.against != Against::Flyball {
        let setup = Setup { audit: Audit::Writes, ..Setup::default() };
        let reference = Reference::start_with(setup).await.map_err(|error| sentence(&error))?;
        let client = reference.admin.client().map_err(|error| sentence(&error))?;
        let log = reference.directory().join("audit.log");
        try_on("reference", &client, options.objects, Some(log)).await?;
    }
    Ok(())
}

async fn try_on(server: &str, client: &Client, objects: usize, audit: Option<PathBuf>) -> Result<(), String> {
    prepare(client, objects).await?;
    let journal = Journal::default();
    let first = start(client, &journal, operator(&journal)).await?;
    let took = journal.all_reconciled(objects).await?;
    first.stop().await;
    let writes = journal.take().len();
    println!("{server}: {objects} objects: first start: {writes} writes, {:.1} s", took.as_secs_f64());
    let before = versions(client).await?;
    let audited = written(audit.as_ref())?;

    let leader = start(client, &journal, operator(&journal).election(election("leader"))).await?;
    let took = journal.all_reconciled(objects).await?;
    report(server, "restart", &journal.take(), took)?;

    let follower = start(client, &journal, operator(&journal).election(election("follower"))).await?;
    drop(leader);
    journal.take();
    let took = journal.all_reconciled(objects).await?;
    follower.stop().await;
    report(server, "failover", &journal.take(), took)?;
    if audit.is_some() {
        let after = written(audit.as_ref())?;
        println!(
            "{server}: {} writes but of Leases in the audit log since the first start",
            after - audited
        );
        if after != audited {
            return Err(format!("{} writes in the audit log", after - audited));
        }
    }
    match versions(client).await? == before {
        true => Ok(()),
        false => Err("versions of objects have changed".into()),
    }
}

fn report(server: &str, what: &str, writes: &[String], took: Duration) -> Result<(), String> {
    println!(
        "{server}: {what}: {} writes, all reconciled after {:.1} s",
        writes.len(),
        took.as_secs_f64()
    );
    match writes.first() {
        None => Ok(()),
        Some(first) => Err(format!("{what}: {} writes, first {first}", writes.len())),
    }
}

/// Installs the kind and creates the objects.
async fn prepare(client: &Client, objects: usize) -> Result<(), String> {
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let crd = Site::crd();
    crds.create(&PostParams::default(), &crd).await.map_err(|error| sentence(&error))?;
    let name = crd.name_any();
    let established = await_condition(crds, &name, conditions::is_crd_established());
    established.await.map_err(|error| sentence(&error))?;
    let sites: Api<Site> = Api::namespaced(client.clone(), "default");
    let create = |index| {
        let sites = sites.clone();
        async move {
            let site = Site::new(&format!("site-{index}"), SiteSpec { replicas: 2 });
            sites.create(&PostParams::default(), &site).await
        }
    };
    let created = stream::iter(0..objects).map(create).buffer_unordered(CONCURRENCY);
    created.try_for_each(|_| async { Ok(()) }).await.map_err(|error| sentence(&error))
}

fn election(identity: &str) -> Election {
    Election::new("restart").identity(identity)
}

fn operator(journal: &Journal) -> Operator {
    let journal = journal.clone();
    let reconcile = move |site: Arc<Site>, ctx: Context| {
        let journal = journal.clone();
        async move {
            build(&site, &ctx).await?;
            lock(&journal.reconciled).insert(site.name_any());
            flyball::Result::Ok(Action::await_change())
        }
    };
    let controller = Controller::new(reconcile).owns::<Deployment>().owns::<Service>().owns::<Secret>();
    Operator::new("restart").controller(controller.concurrency(CONCURRENCY))
}

/// Three children, in spellings that the API server normalises, and a status.
async fn build(site: &Site, ctx: &Context) -> flyball::Result<()> {
    let labels = json!({ "app": site.name_any() });
    let resources = json!({ "limits": { "cpu": "1000m", "memory": "1024Mi" } });
    let container =
        json!({ "name": "web", "image": "web:1", "resources": resources, "ports": [{ "containerPort": 80 }] });
    let template = json!({ "metadata": { "labels": labels }, "spec": { "containers": [container] } });
    let spec = json!({ "replicas": site.spec.replicas, "selector": { "matchLabels": labels }, "template": template });
    ctx.apply::<Deployment>(typed(spec)?).await?;
    let ports = json!([{ "name": "web", "port": 80 }]);
    ctx.apply::<Service>(typed(json!({ "clusterIP": "None", "selector": labels, "ports": ports }))?)
        .await?;
    let string_data = Some([("key".to_owned(), "secret".to_owned())].into());
    ctx.apply(Secret { string_data, ..Secret::default() }).await?;
    let hosts = vec![format!("{}.example.dev", site.name_any())];
    ctx.set_status(SiteStatus { replicas: site.spec.replicas, hosts }).await
}

fn typed<K: DeserializeOwned>(spec: Value) -> flyball::Result<K> {
    Ok(serde_json::from_value(json!({ "metadata": {}, "spec": spec }))?)
}

async fn start(client: &Client, journal: &Journal, operator: Operator) -> Result<Running, String> {
    let (client, journal) = (client.clone(), journal.clone());
    let service = tower::service_fn(move |request: Request<Body>| {
        journal.note(&request);
        let client = client.clone();
        async move { client.send(request).await }
    });
    let started = operator.start(Client::new(service, "default")).await;
    started.map_err(|error| error.to_string())
}

impl Journal {
    /// Notes a write; a leader's Lease is renewed whatever there is to do.
    fn note(&self, request: &Request<Body>) {
        if request.method() != Method::GET && !request.uri().path().contains("/leases") {
            lock(&self.writes).push(format!("{} {}", request.method(), request.uri()));
        }
    }

    /// What was written; what was reconciled is forgotten.
    fn take(&self) -> Vec<String> {
        lock(&self.reconciled).clear();
        std::mem::take(&mut *lock(&self.writes))
    }

    /// Waits until so many objects have been reconciled, and says how long that took.
    async fn all_reconciled(&self, objects: usize) -> Result<Duration, String> {
        let started = Instant::now();
        while lock(&self.reconciled).len() < objects {
            if started.elapsed() > MAX_WAIT {
                return Err(format!("{} of {objects} objects were reconciled", lock(&self.reconciled).len()));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let took = started.elapsed();
        // What follows from the last writes is reconciled, too.
        tokio::time::sleep(Duration::from_secs(3)).await;
        Ok(took)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The versions of all objects and their children.
async fn versions(client: &Client) -> Result<BTreeMap<String, String>, String> {
    let kinds = [
        ApiResource::erase::<Site>(&()),
        ApiResource::erase::<Deployment>(&()),
        ApiResource::erase::<Service>(&()),
        ApiResource::erase::<Secret>(&()),
    ];
    let mut versions = BTreeMap::new();
    for kind in kinds {
        let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), "default", &kind);
        let listed = api.list_metadata(&ListParams::default()).await.map_err(|error| sentence(&error))?;
        for object in listed {
            let key = format!("{} {}", kind.kind, object.name_any());
            versions.insert(key, object.meta().resource_version.clone().unwrap_or_default());
        }
    }
    Ok(versions)
}

/// How many writes an audit log tells of, those of Leases aside.
fn written(log: Option<&PathBuf>) -> Result<usize, String> {
    let Some(log) = log else { return Ok(0) };
    let text = std::fs::read_to_string(log).map_err(|error| format!("read {}: {error}", log.display()))?;
    Ok(text.lines().count())
}
