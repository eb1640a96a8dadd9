//! The verbs of a test, and what they do to the cluster.

use flyball::{Action, Context, Controller, Event, Operator, Result, metrics::Format};
use flyball_test::{Answer, Cluster};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Namespace, Secret},
};
use kube::{
    CustomResource, CustomResourceExt,
    api::{DynamicObject, Patch},
    core::{ApiResource, GroupVersionKind},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::{sync::Arc, time::Duration};

/// A cluster-scoped kind.
#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "example.dev", version = "v1", kind = "Planet")]
struct PlanetSpec {
    moons: u32,
}

fn map(name: &str, value: &str) -> ConfigMap {
    serde_json::from_value(json!({ "metadata": { "name": name }, "data": { "value": value } })).unwrap()
}

fn value(map: &ConfigMap) -> &str {
    &map.data.as_ref().unwrap()["value"]
}

#[tokio::test(start_paused = true)]
async fn objects_are_created_applied_and_deleted() {
    let cluster = Cluster::start().await;
    let created = cluster.create(map("ada", "1")).await;
    assert_eq!(created.metadata.namespace.as_deref(), Some("default"));

    let applied = cluster.apply(map("ada", "2")).await;
    assert_eq!(applied.metadata.uid, created.metadata.uid);
    assert_eq!(value(&cluster.get("ada").await), "2");

    cluster.delete::<ConfigMap>("ada").await;
    cluster.until_gone::<ConfigMap>("ada").await;
}

#[tokio::test(start_paused = true)]
async fn objects_are_edited_merged_and_patched() {
    let cluster = Cluster::start().await;
    cluster.create(map("ada", "1")).await;
    let edited = cluster.edit("ada", |map: &mut ConfigMap| map.data = None).await;
    assert_eq!(edited.data, None, "unlike an apply, an edit takes away what `create` has set");

    let merged: ConfigMap = cluster.merge("ada", json!({ "data": { "value": "2", "other": "3" } })).await;
    assert_eq!(value(&merged), "2");
    let removal =
        Patch::<()>::Json(serde_json::from_value(json!([{ "op": "remove", "path": "/data/other" }])).unwrap());
    let patched: ConfigMap = cluster.patch("ada", removal).await;
    assert_eq!(patched.data.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_edit_is_repeated_after_a_conflict() {
    let cluster = Cluster::start().await;
    let read = cluster.create(map("ada", "1")).await.metadata.resource_version;
    cluster
        .merge::<ConfigMap>("ada", json!({ "metadata": { "labels": { "by": "others" } } }))
        .await;
    let mut attempts = 0;
    let change = |map: &mut ConfigMap| {
        attempts += 1;
        if attempts == 1 {
            // As if the others had written after the read.
            map.metadata.resource_version = read.clone();
        }
        map.data = None;
    };
    let edited = cluster.edit("ada", change).await;
    assert_eq!((attempts, edited.data), (2, None));
    assert_eq!(edited.metadata.labels.unwrap()["by"], "others");
}

#[tokio::test(start_paused = true)]
async fn a_status_is_patched_by_its_subresource() {
    let cluster = Cluster::without_controllers().await;
    let web = json!({ "metadata": { "name": "web" }, "spec": {
        "selector": { "matchLabels": { "app": "web" } },
        "template": { "metadata": { "labels": { "app": "web" } }, "spec": { "containers": [{ "name": "web", "image": "web" }] } },
    } });
    cluster.create::<Deployment>(serde_json::from_value(web).unwrap()).await;
    let patched: Deployment = cluster.patch_status("web", json!({ "replicas": 3 })).await;
    assert_eq!(patched.status.unwrap().replicas, Some(3));
}

#[tokio::test(start_paused = true)]
async fn other_namespaces_are_named_before_a_slash() {
    let cluster = Cluster::start().await;
    cluster
        .create::<Namespace>(serde_json::from_value(json!({ "metadata": { "name": "prod" } })).unwrap())
        .await;
    let mut there = map("ada", "1");
    there.metadata.namespace = Some("prod".into());
    cluster.create(there).await;
    cluster.create(map("bob", "2")).await;
    assert_eq!(value(&cluster.get("prod/ada").await), "1");
    assert_eq!(cluster.get::<Namespace>("prod").await.metadata.name.as_deref(), Some("prod"));

    let maps = || cluster.objects::<ConfigMap>();
    assert_eq!(value(&maps().namespace("prod").get("ada").await), "1");
    let values = |maps: Vec<ConfigMap>| maps.iter().map(|map| value(map).to_owned()).collect::<Vec<_>>();
    assert_eq!(values(cluster.list().await), ["2"]);
    assert_eq!(values(maps().namespace("prod").list().await), ["1"]);
    assert_eq!(values(maps().all_namespaces().list().await), ["2", "1"]);
}

#[tokio::test(start_paused = true)]
async fn kinds_known_at_run_time_have_the_same_verbs() {
    let cluster = Cluster::start().await;
    let maps = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "ConfigMap"));
    let maps = || cluster.dynamic(&maps);
    maps()
        .create(
            DynamicObject::new("ada", &ApiResource::erase::<ConfigMap>(&())).data(json!({ "data": { "value": "1" } })),
        )
        .await;
    maps().edit("ada", |map| map.data["data"]["value"] = "2".into()).await;
    let seen = maps().until("ada", |map| map.data["data"]["value"] == "2").await;
    assert_eq!(maps().list().await, [seen]);
    maps().delete("ada").await;
    maps().until_gone("ada").await;

    cluster.create(Planet::crd()).await;
    let established = |crd: &DynamicObject| crd.data["status"]["conditions"].to_string().contains("Established");
    let definitions =
        ApiResource::from_gvk(&GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition"));
    cluster
        .dynamic(&definitions)
        .cluster_wide()
        .until("planets.example.dev", established)
        .await;
    let planets = ApiResource::erase::<Planet>(&());
    cluster.create(Planet::new("mars", PlanetSpec { moons: 2 })).await;
    assert_eq!(cluster.dynamic(&planets).cluster_wide().get("mars").await.data["spec"]["moons"], 2);
}

#[tokio::test(start_paused = true)]
async fn until_sees_the_later_states_of_an_object() {
    let cluster = Cluster::start().await;
    let (client, later) = (cluster.client(), Duration::from_secs(300));
    let writer = tokio::spawn(async move {
        tokio::time::sleep(later).await;
        let maps: kube::Api<ConfigMap> = kube::Api::default_namespaced(client);
        maps.create(&Default::default(), &map("ada", "early")).await.unwrap();
        tokio::time::sleep(later).await;
        let patch = Patch::Merge(json!({ "data": { "value": "late" } }));
        maps.patch("ada", &Default::default(), &patch).await.unwrap();
    });
    let seen = cluster.until("ada", |map: &ConfigMap| value(map) != "early").await;
    assert_eq!(value(&seen), "late");
    writer.await.unwrap();
}

/// Keeps a Secret beside every ConfigMap, and says so.
async fn copy(map: Arc<ConfigMap>, ctx: Context) -> Result {
    ctx.apply(Secret { string_data: map.data.clone(), ..Default::default() }).await?;
    ctx.event(Event::normal("Copied", "into a Secret"));
    Ok(Action::await_change())
}

fn copier() -> Operator {
    Operator::new("copier").controller(Controller::new(copy).owns::<Secret>())
}

#[tokio::test(start_paused = true)]
async fn the_requests_of_an_operator_are_recorded_and_answered_by_a_test() {
    let mut cluster = Cluster::without_controllers().await;
    cluster.break_with(|request| {
        let writes = request.method() == "PATCH" && request.uri().path().ends_with("/secrets/ada");
        writes.then(|| Answer::refusal(403, "no Secrets today"))
    });
    cluster.run(copier()).await;
    cluster.create(map("ada", "1")).await;
    let event = cluster.until_event::<ConfigMap>("ada", "ReconcileFailed").await;
    assert!(event.note.unwrap().ends_with("no Secrets today"));
    let patch = "PATCH /api/v1/namespaces/default/secrets/ada";
    assert!(cluster.writes().iter().any(|write| write.starts_with(patch)));

    cluster.mend();
    cluster.until("ada", |_: &Secret| true).await;
    let writes = cluster.writes();
    assert_eq!(writes.iter().filter(|write| write.starts_with(patch)).count(), 1, "{writes:?}");
    assert!(cluster.requests().iter().any(|request| request.starts_with("GET /api/v1/configmaps?")));
}

#[tokio::test(start_paused = true)]
async fn a_running_operator_is_inspected_stopped_and_started_again() {
    let mut cluster = Cluster::with(copier()).await;
    cluster.create(map("ada", "1")).await;
    cluster.until_event::<ConfigMap>("ada", "Copied").await;
    let notes: Vec<_> = cluster.events::<ConfigMap>("ada").await.into_iter().map(|event| event.note).collect();
    assert_eq!(notes, [Some("into a Secret".into())]);
    let scraped = cluster.operator("copier").metrics().text(Format::Prometheus);
    assert!(
        scraped.contains("controller_reconcile_errors_total{controller=\"configmap\"} 0"),
        "{scraped}"
    );

    cluster.stop("copier").await;
    cluster.create(map("bob", "2")).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(cluster.list::<Secret>().await.len(), 1);
    cluster.restart("copier").await;
    cluster.until("bob", |_: &Secret| true).await;

    cluster.crash("copier");
    cluster.create(map("cyd", "3")).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(cluster.list::<Secret>().await.len(), 2);
    cluster.restart("copier").await;
    cluster.until("cyd", |_: &Secret| true).await;
}
