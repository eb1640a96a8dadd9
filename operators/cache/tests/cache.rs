//! The cache operator in a cluster, on virtual time.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use cache::{
    Flags,
    api::{Cache, CacheSpec, CacheUser, CacheUserSpec, Exposure},
    desired,
    directory::Directory,
    operator,
};
use flyball::{Action, Context, Controller, Key, Operator, Result, metrics::Format};
use flyball_test::Cluster;
use k8s_openapi::api::{
    apps::v1::Deployment,
    batch::v1::CronJob,
    core::v1::{ConfigMap, Secret, Service},
    policy::v1::PodDisruptionBudget,
};
use kube::ResourceExt;
use serde_json::json;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

/// A directory in memory, which can be down.
#[derive(Clone, Default)]
struct Memory {
    entries: Arc<Mutex<BTreeMap<String, String>>>,
    down: Arc<Mutex<bool>>,
}

impl Memory {
    fn names(&self) -> Vec<String> {
        self.entries.lock().unwrap().keys().cloned().collect()
    }

    fn set_down(&self, down: bool) {
        *self.down.lock().unwrap() = down;
    }

    fn check(&self) -> Result<()> {
        match *self.down.lock().unwrap() {
            true => Err("the directory is down".into()),
            false => Ok(()),
        }
    }
}

impl Directory for Memory {
    async fn register(&self, cache: &Key, address: &str) -> Result<()> {
        self.check()?;
        self.entries.lock().unwrap().insert(cache.to_string(), address.into());
        Ok(())
    }

    async fn remove(&self, cache: &Key) -> Result<()> {
        self.check()?;
        self.entries.lock().unwrap().remove(&cache.to_string());
        Ok(())
    }
}

async fn start() -> (Cluster, Memory) {
    let directory = Memory::default();
    // The node of the test has no zone.
    let cluster = Cluster::with(operator(directory.clone(), &Flags { zone: String::new() })).await;
    (cluster, directory)
}

fn ada(spec: CacheSpec) -> Cache {
    Cache::new("ada", CacheSpec { version: "1.6".into(), replicas: 2, memory_mb: 64, ..spec })
}

fn condition(cache: &Cache, name: &str) -> String {
    let mut conditions = cache.status.iter().flat_map(|status| &status.conditions);
    let found = conditions.find(|condition| condition.type_ == name);
    found.map_or_else(
        || "absent".into(),
        |found| format!("{} {}: {}", found.status, found.reason, found.message),
    )
}

fn is_ready(cache: &Cache) -> bool {
    let observed = cache.status.as_ref().and_then(|status| status.observed_generation);
    observed == cache.metadata.generation && condition(cache, "Ready") == "True Reconciled: "
}

#[tokio::test(start_paused = true)]
async fn a_cache_has_children_a_status_and_an_entry_in_the_directory() {
    let (cluster, directory) = start().await;
    cluster
        .create(ada(CacheSpec { warm_up: Some("0 3 * * *".into()), ..Default::default() }))
        .await;
    let cache = cluster.until("ada", is_ready).await;
    assert_eq!(cache.status.as_ref().unwrap().ready_replicas, 2);
    assert_eq!(condition(&cache, "Exposed"), "True ClusterIP: ada.default.svc:11211");
    assert_eq!(cluster.get::<CronJob>("ada").await.spec.schedule, "0 3 * * *");
    assert!(cluster.get::<PodDisruptionBudget>("ada").await.spec.is_some());
    assert_eq!(directory.names(), ["default/ada"]);
}

#[tokio::test(start_paused = true)]
async fn children_that_are_not_asked_for_any_more_are_pruned() {
    let (cluster, _) = start().await;
    cluster
        .create(ada(CacheSpec {
            exposure: Exposure::LoadBalancer,
            warm_up: Some("@daily".into()),
            ..Default::default()
        }))
        .await;
    let type_of = |service: &Service| service.spec.as_ref().unwrap().type_.clone();
    cluster
        .until("ada", |service: &Service| type_of(service).as_deref() == Some("LoadBalancer"))
        .await;
    cluster.edit("ada", |cache: &mut Cache| cache.spec.exposure = Exposure::ClusterIP).await;
    cluster
        .until("ada", |service: &Service| type_of(service).as_deref() == Some("ClusterIP"))
        .await;

    cluster
        .edit("ada", |cache: &mut Cache| {
            cache.spec = CacheSpec {
                exposure: Exposure::None,
                replicas: 1,
                warm_up: None,
                ..cache.spec.clone()
            };
        })
        .await;
    cluster.until_gone::<Service>("ada").await;
    cluster.until_gone::<PodDisruptionBudget>("ada").await;
    cluster.until_gone::<CronJob>("ada").await;
}

#[tokio::test(start_paused = true)]
async fn a_config_map_is_waited_for_and_its_changes_replace_the_pods() {
    let (cluster, _) = start().await;
    cluster
        .create(ada(CacheSpec { config: Some("options".into()), ..Default::default() }))
        .await;
    let waiting = |cache: &Cache| condition(cache, "Ready") == "False Waiting: there is no ConfigMap options";
    cluster.until("ada", waiting).await;

    let options = json!({ "metadata": { "name": "options" }, "data": { "threads": "4" } });
    cluster.create::<ConfigMap>(serde_json::from_value(options).unwrap()).await;
    cluster.until("ada", is_ready).await;
    let has = |deployment: &Deployment, argument: &str| {
        let pod = deployment.spec.as_ref().unwrap().template.spec.as_ref().unwrap();
        pod.containers[0].args.iter().flatten().any(|given| given == argument)
    };
    assert!(has(&cluster.get("ada").await, "--threads=4"));

    cluster.merge::<ConfigMap>("options", json!({ "data": { "threads": "8" } })).await;
    cluster.until("ada", |deployment: &Deployment| has(deployment, "--threads=8")).await;
    assert_eq!(
        cluster.until_event::<Cache>("ada", "RollingOut").await.note.as_deref(),
        Some("to version 1.6")
    );
    let scraped = cluster.operator("cache").metrics().text(Format::Prometheus);
    assert!(scraped.contains("cache_rollouts_total{zone=\"\"} 1"), "{scraped}");
}

/// F5: the failure is an event and a condition, and the condition follows the recovery.
#[tokio::test(start_paused = true)]
async fn a_failed_reconcile_is_an_event_and_a_condition() {
    let (cluster, _) = start().await;
    cluster
        .create(ada(CacheSpec { warm_up: Some("every day".into()), ..Default::default() }))
        .await;
    let failed = cluster
        .until("ada", |cache: &Cache| condition(cache, "Ready").starts_with("False ReconcileFailed"))
        .await;
    assert!(
        condition(&failed, "Ready").contains("apply CronJob default/ada: "),
        "{}",
        condition(&failed, "Ready")
    );
    let event = cluster.until_event::<Cache>("ada", "ReconcileFailed").await;
    assert!(event.note.unwrap().contains("spec.schedule"));
    cluster.edit("ada", |cache: &mut Cache| cache.spec.warm_up = Some("@daily".into())).await;
    cluster.until("ada", is_ready).await;
}

#[tokio::test(start_paused = true)]
async fn a_cache_stays_until_the_directory_has_removed_it() {
    let (cluster, directory) = start().await;
    cluster.create(ada(CacheSpec::default())).await;
    cluster.until("ada", is_ready).await;
    directory.set_down(true);
    cluster.delete::<Cache>("ada").await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(cluster.get::<Cache>("ada").await.metadata.deletion_timestamp.is_some());
    assert!(
        cluster
            .until_event::<Cache>("ada", "ReconcileFailed")
            .await
            .note
            .unwrap()
            .contains("the directory is down")
    );
    directory.set_down(false);
    cluster.until_gone::<Cache>("ada").await;
    cluster.until_gone::<Deployment>("ada").await;
    assert!(directory.names().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_user_waits_for_its_cache_and_the_cache_for_its_users() {
    let (cluster, directory) = start().await;
    cluster.create(CacheUser::new("bob", CacheUserSpec { cache: "ada".into() })).await;
    let waits = |user: &CacheUser| {
        let conditions = user.status.iter().flat_map(|status| &status.conditions);
        conditions.into_iter().any(|condition| condition.message == "there is no Cache ada")
    };
    cluster.until("bob", waits).await;
    cluster.create(ada(CacheSpec::default())).await;
    let secret = cluster.until("bob", |secret: &Secret| secret.data.is_some()).await;
    assert_eq!(secret.data.unwrap()["address"].0, b"ada.default.svc:11211");
    assert!(is_ready(&cluster.get("ada").await), "the Secret came after the Cache was ready");

    cluster.delete::<Cache>("ada").await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(directory.names(), ["default/ada"], "a user is left");
    cluster.delete::<CacheUser>("bob").await;
    cluster.until_gone::<Cache>("ada").await;
    assert!(directory.names().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_restart_in_the_middle_loses_nothing_and_writes_nothing_twice() {
    let (mut cluster, _) = start().await;
    cluster.create(ada(CacheSpec::default())).await;
    cluster.until("ada", |_: &Service| true).await;
    cluster.crash("cache");
    cluster.restart("cache").await;
    cluster.until("ada", is_ready).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    cluster.writes();
    cluster.restart("cache").await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let writes: Vec<_> = cluster.writes().into_iter().filter(|write| !write.contains("/leases")).collect();
    assert_eq!(writes, Vec::<String>::new());
}

/// F1 and F6: the kind is known at run time only, may be absent, and its absence delays nothing.
#[tokio::test(start_paused = true)]
async fn a_monitored_cache_is_ready_without_the_prometheus_operator_and_gets_its_monitor_with_it() {
    let (cluster, _) = start().await;
    cluster.create(ada(CacheSpec { monitored: true, ..Default::default() })).await;
    cluster.until("ada", is_ready).await;

    let crd = json!({ "metadata": { "name": "servicemonitors.monitoring.coreos.com" }, "spec": {
        "group": "monitoring.coreos.com", "scope": "Namespaced",
        "names": { "kind": "ServiceMonitor", "plural": "servicemonitors" },
        "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": {
            "type": "object", "x-kubernetes-preserve-unknown-fields": true } } }],
    } });
    let definitions = kube::core::GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let definitions = kube::core::ApiResource::from_gvk(&definitions);
    cluster
        .dynamic(&definitions)
        .cluster_wide()
        .create(serde_json::from_value(crd).unwrap())
        .await;
    tokio::time::sleep(Duration::from_secs(15)).await;
    let monitors = desired::monitor_resource();
    let monitor = cluster.dynamic(&monitors).until("ada", |_| true).await;
    assert_eq!(monitor.data["spec"]["endpoints"][0]["port"], "cache");
    assert_eq!(monitor.owner_references()[0].kind, "Cache");
    cluster.edit("ada", |cache: &mut Cache| cache.spec.monitored = false).await;
    cluster.dynamic(&monitors).until_gone("ada").await;
}

/// B3: a changed key of a list item.
#[tokio::test(start_paused = true)]
async fn a_port_that_was_changed_by_others_is_put_back() {
    let (cluster, _) = start().await;
    cluster.create(ada(CacheSpec::default())).await;
    cluster.until("ada", is_ready).await;
    let port = |service: &Service| service.spec.as_ref().unwrap().ports.as_ref().unwrap()[0].port;
    cluster
        .edit("ada", |service: &mut Service| {
            service.spec.as_mut().unwrap().ports.as_mut().unwrap()[0].port = 81
        })
        .await;
    cluster.until("ada", |service: &Service| port(service) == desired::PORT).await;
    assert!(is_ready(&cluster.until("ada", is_ready).await));
}

/// B6: the advice names the declaration that grants the right to delete.
#[tokio::test(start_paused = true)]
async fn pruning_a_kind_that_is_not_owned_is_refused_with_the_declaration_to_add() {
    async fn prune(_: Arc<ConfigMap>, ctx: Context) -> Result {
        ctx.prune::<Service>().await?;
        Ok(Action::await_change())
    }
    let pruner = Operator::new("pruner").controller(Controller::new(prune).reads::<Service>());
    let cluster = Cluster::with(pruner).await;
    let ada = json!({ "metadata": { "name": "ada" } });
    cluster.create::<ConfigMap>(serde_json::from_value(ada).unwrap()).await;
    let note = cluster.until_event::<ConfigMap>("ada", "ReconcileFailed").await.note.unwrap();
    assert!(note.contains("add `.owns::<Service>()` to it"), "{note}");
}
