//! What an operator writes after a restart or a failover: nothing, unless something is not as it should be.

use crate::world::{World, config_map, pass};
use flyball::{Action, Applied, Context, Controller, Election, Operator, Result};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Secret, Service},
};
use kube::{
    CustomResource, CustomResourceExt,
    api::{ListParams, Patch, PatchParams},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tokio::sync::mpsc;

const OBJECTS: usize = 200;

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "example.dev",
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
    replicas: Option<i32>,
    hosts: Option<Vec<String>>,
}

fn object<K: DeserializeOwned>(object: Value) -> K {
    serde_json::from_value(object).unwrap()
}

/// A Deployment, a Service and a Secret for every Site, in spellings that the API server normalises, and a status.
async fn build(site: Arc<Site>, ctx: Context) -> Result {
    let labels = json!({ "app": site.metadata.name });
    let resources = json!({ "limits": { "cpu": "1000m", "memory": "1024Mi" } });
    let container =
        json!({ "name": "web", "image": "web:1", "resources": resources, "ports": [{ "containerPort": 80 }] });
    let template = json!({ "metadata": { "labels": labels }, "spec": { "containers": [container] } });
    let spec = json!({ "replicas": site.spec.replicas, "selector": { "matchLabels": labels }, "template": template });
    ctx.apply::<Deployment>(object(json!({ "metadata": {}, "spec": spec }))).await?;
    let ports = json!([{ "name": "web", "port": 80 }]);
    let spec = json!({ "clusterIP": "None", "selector": labels, "ports": ports });
    ctx.apply::<Service>(object(json!({ "metadata": {}, "spec": spec }))).await?;
    ctx.apply::<Secret>(object(json!({ "metadata": {}, "stringData": { "key": "secret" } })))
        .await?;
    let (replicas, hosts) = (Some(site.spec.replicas), Some(vec!["a".into(), "b".into()]));
    ctx.set_status(SiteStatus { replicas, hosts }).await?;
    Ok(Action::await_change())
}

fn builder() -> Operator {
    let controller = Controller::new(build).owns::<Deployment>().owns::<Service>().owns::<Secret>();
    Operator::new("builder").controller(controller.concurrency(8))
}

async fn sites(world: &World, count: usize) {
    let crds = kube::Api::all(world.client.clone());
    crds.create(&Default::default(), &Site::crd()).await.unwrap();
    for index in 0..count {
        world.create(Site::new(&format!("site-{index}"), SiteSpec { replicas: 2 })).await;
    }
}

/// The versions of all objects that the operator writes.
async fn versions(world: &World) -> Vec<String> {
    let mut versions = Vec::new();
    let params = ListParams::default();
    versions.extend(world.api::<Site>().list(&params).await.unwrap().into_iter().map(|it| it.metadata));
    versions.extend(world.api::<Deployment>().list(&params).await.unwrap().into_iter().map(|it| it.metadata));
    versions.extend(world.api::<Service>().list(&params).await.unwrap().into_iter().map(|it| it.metadata));
    versions.extend(world.api::<Secret>().list(&params).await.unwrap().into_iter().map(|it| it.metadata));
    versions.into_iter().filter_map(|metadata| metadata.resource_version).collect()
}

/// What was written, Leases aside: a leader renews its own.
fn writes(world: &World) -> Vec<String> {
    let mut writes = world.writes();
    writes.retain(|write| !write.contains("/leases"));
    writes
}

/// Takes some seconds: 200 objects and 600 children are made.
#[tokio::test(start_paused = true)]
async fn a_restart_writes_nothing_where_everything_is_as_it_should_be() {
    let world = World::start().await;
    sites(&world, OBJECTS).await;
    let running = world.run(&builder()).await;
    pass(Duration::from_secs(60)).await;
    assert_eq!(writes(&world).len(), OBJECTS * 4, "three children and a status each");
    let before = versions(&world).await;
    assert_eq!(before.len(), OBJECTS * 4 + 1, "and the API server's own Service");
    running.stop().await;

    let running = world.run(&builder()).await;
    pass(Duration::from_secs(60)).await;
    assert_eq!(reconciles(&running), OBJECTS as f64);
    assert_eq!(writes(&world), [""; 0]);
    assert_eq!(versions(&world).await, before);
}

#[tokio::test(start_paused = true)]
async fn a_failover_writes_nothing_where_everything_is_as_it_should_be() {
    let world = World::start().await;
    sites(&world, OBJECTS / 4).await;
    let replica = |name: &str| builder().election(Election::new("builder").identity(name));
    let first = world.run(&replica("first")).await;
    let second = world.run(&replica("second")).await;
    pass(Duration::from_secs(60)).await;
    assert_eq!(writes(&world).len(), OBJECTS);
    assert!(first.leadership().is_leading());
    drop(first);

    pass(Duration::from_secs(60)).await;
    assert!(second.leadership().is_leading());
    assert_eq!(reconciles(&second), (OBJECTS / 4) as f64);
    assert_eq!(writes(&world), [""; 0]);
}

fn reconciles(running: &flyball::Running) -> f64 {
    let text = running.metrics().text(flyball::metrics::Format::Prometheus);
    let line = text
        .lines()
        .find(|line| line.starts_with("controller_runtime_reconcile_total") && line.contains("success"));
    line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn what_changed_while_no_replica_ran_is_put_back() {
    let world = World::start().await;
    sites(&world, 1).await;
    let running = world.run(&builder()).await;
    pass(Duration::from_secs(5)).await;
    running.stop().await;
    world.merge::<Deployment>("site-0", json!({ "spec": { "replicas": 7 } })).await;
    world.merge::<Secret>("site-0", json!({ "data": { "key": null } })).await;
    world
        .merge::<Service>("site-0", json!({ "spec": { "selector": { "app": "other" } } }))
        .await;
    let other = PatchParams {
        field_manager: Some("other".into()),
        ..PatchParams::default()
    };
    let status = Patch::Merge(json!({ "status": { "hosts": ["c"] } }));
    world.api::<Site>().patch_status("site-0", &other, &status).await.unwrap();
    writes(&world);

    let _running = world.run(&builder()).await;
    pass(Duration::from_secs(5)).await;
    assert_eq!(writes(&world).len(), 7, "three children, their events, and a status");
    let deployment = world.api::<Deployment>().get("site-0").await.unwrap();
    assert_eq!(deployment.spec.unwrap().replicas, Some(2));
    let secret = world.api::<Secret>().get("site-0").await.unwrap();
    assert_eq!(secret.data.unwrap()["key"].0, b"secret");
    let service = world.api::<Service>().get("site-0").await.unwrap();
    assert_eq!(service.spec.unwrap().selector.unwrap()["app"], "site-0");
    let site = world.api::<Site>().get("site-0").await.unwrap();
    assert_eq!(site.status.unwrap().hosts.unwrap(), ["a", "b"]);
}

/// An operator of two versions: the second applies one entry less, and says less in the status.
fn noter(entries: Value, status: Value) -> Operator {
    let reconcile = move |_: Arc<Site>, ctx: Context| {
        let (entries, status) = (entries.clone(), status.clone());
        async move {
            ctx.apply::<ConfigMap>(object(json!({ "metadata": {}, "data": entries }))).await?;
            ctx.set_status(status).await?;
            Result::Ok(Action::await_change())
        }
    };
    Operator::new("noter").controller(Controller::new(reconcile).owns::<ConfigMap>())
}

#[tokio::test(start_paused = true)]
async fn what_a_new_version_of_the_operator_sets_no_more_is_removed() {
    let world = World::start().await;
    sites(&world, 1).await;
    let running = world
        .run(&noter(json!({ "a": "1", "b": "2" }), json!({ "replicas": 2, "hosts": ["a"] })))
        .await;
    pass(Duration::from_secs(5)).await;
    running.stop().await;
    let _running = world.run(&noter(json!({ "a": "1" }), json!({ "replicas": 2 }))).await;
    pass(Duration::from_secs(5)).await;
    let map = world.api::<ConfigMap>().get("site-0").await.unwrap();
    assert_eq!(map.data.unwrap().into_keys().collect::<Vec<_>>(), ["a"]);
    let status = world.api::<Site>().get("site-0").await.unwrap().status.unwrap();
    assert_eq!((status.replicas, status.hosts), (Some(2), None));
}

#[tokio::test(start_paused = true)]
async fn a_port_that_somebody_changed_is_put_back() {
    let world = World::start().await;
    let (sender, mut answers) = mpsc::unbounded_channel();
    let reconcile = move |map: Arc<ConfigMap>, ctx: Context| {
        let sender = sender.clone();
        async move {
            let port: i32 = map.data.as_ref().unwrap()["port"].parse()?;
            let ports = json!([{ "name": "web", "port": port, "targetPort": 8080 }]);
            let service = json!({ "metadata": {}, "spec": { "selector": { "app": "ada" }, "ports": ports } });
            sender.send(ctx.apply::<Service>(object(service)).await?)?;
            Result::Ok(Action::await_change())
        }
    };
    let operator = Operator::new("exposer").controller(Controller::new(reconcile).owns::<Service>());
    let _running = world.run(&operator).await;
    world.create(config_map("ada", "port", "80")).await;
    pass(Duration::from_secs(1)).await;
    while answers.try_recv().is_ok() {}
    let editor = PatchParams {
        field_manager: Some("kubectl-edit".into()),
        ..PatchParams::default()
    };
    let edit = json!([{ "op": "replace", "path": "/spec/ports/0/port", "value": 81 }]);
    let edit = Patch::Json::<()>(serde_json::from_value(edit).unwrap());
    world.api::<Service>().patch("ada", &editor, &edit).await.unwrap();
    pass(Duration::from_secs(1)).await;
    assert_eq!(answers.try_recv().unwrap(), Applied::Corrected);
    assert_eq!(ports(&world).await, [80]);

    world.merge::<ConfigMap>("ada", json!({ "data": { "port": "90" } })).await;
    pass(Duration::from_secs(1)).await;
    assert_eq!(ports(&world).await, [90], "and the repair holds nothing back");
}

async fn ports(world: &World) -> Vec<i32> {
    let service = world.api::<Service>().get("ada").await.unwrap();
    service.spec.unwrap().ports.unwrap().into_iter().map(|port| port.port).collect()
}
