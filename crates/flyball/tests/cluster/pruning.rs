//! Children that are applied no longer, children of several owners, and children that others have changed.

use crate::world::{World, config_map, pass};
use flyball::{Action, Applied, Context, Controller, Key, Operator, Readiness, Result};
use k8s_openapi::api::{
    apps::v1::Deployment,
    autoscaling::{v1, v2},
    core::v1::{ConfigMap, Secret},
    events::v1::Event,
};
use kube::{
    ResourceExt,
    api::{ListParams, Patch},
};
use serde_json::json;
use std::{sync::Arc, time::Duration};
use tokio::sync::mpsc;

/// Keeps a Secret for every entry of a ConfigMap, and none beside them. An entry called `bad!` cannot be applied.
async fn spread(map: Arc<ConfigMap>, ctx: Context) -> Result {
    let mut failure = None;
    for name in map.data.iter().flatten().map(|(name, _)| name) {
        let mut secret = Secret::default();
        secret.metadata.name = Some(name.clone());
        failure = ctx.apply(secret).await.err().or(failure);
    }
    ctx.prune::<Secret>().await?;
    failure.map_or(Ok(Action::await_change()), Err)
}

fn spreader() -> Operator {
    Operator::new("spreader").controller(Controller::new(spread).owns::<Secret>())
}

async fn names(world: &World) -> Vec<String> {
    let secrets = world.api::<Secret>().list(&ListParams::default()).await.unwrap();
    secrets.iter().map(ResourceExt::name_any).collect()
}

#[tokio::test(start_paused = true)]
async fn children_that_are_applied_no_longer_are_pruned_and_others_stay() {
    let world = World::start().await;
    let running = world.run(&spreader()).await;
    let owner = world.create(config_map("ada", "a", "1")).await;
    world.merge::<ConfigMap>("ada", json!({ "data": { "b": "2" } })).await;
    world.until("b", |_: &Secret| true).await;
    let stranger = |name: &str, references: serde_json::Value| {
        serde_json::from_value::<Secret>(json!({ "metadata": { "name": name, "ownerReferences": references } }))
            .unwrap()
    };
    let reference = |controller: bool| json!([{ "apiVersion": "v1", "kind": "ConfigMap", "name": "ada", "uid": owner.uid().unwrap(), "controller": controller }]);
    world.create(stranger("nobodys", json!([]))).await;
    world.create(stranger("owned-plainly", reference(false))).await;
    world.create(stranger("controlled-but-never-applied", reference(true))).await;

    world.merge::<ConfigMap>("ada", json!({ "data": { "a": null, "c": "3" } })).await;
    world.until_gone::<Secret>("a").await;
    world.until("c", |_: &Secret| true).await;
    pass(Duration::from_secs(10)).await;
    assert_eq!(
        names(&world).await,
        ["b", "c", "controlled-but-never-applied", "nobodys", "owned-plainly"]
    );

    running.stop().await;
    world.merge::<ConfigMap>("ada", json!({ "data": { "b": null } })).await;
    let _restarted = world.run(&spreader()).await;
    world.until_gone::<Secret>("b").await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_pruned_after_an_apply_that_failed() {
    let world = World::start().await;
    let _running = world.run(&spreader()).await;
    world.create(config_map("ada", "a", "1")).await;
    world.until("a", |_: &Secret| true).await;

    world
        .merge::<ConfigMap>("ada", json!({ "data": { "a": null, "BAD_": "", "c": "3" } }))
        .await;
    world.until("c", |_: &Secret| true).await;
    pass(Duration::from_secs(600)).await;
    assert_eq!(names(&world).await, ["a", "c"]);

    world.merge::<ConfigMap>("ada", json!({ "data": { "BAD_": null } })).await;
    world.until_gone::<Secret>("a").await;
}

#[tokio::test(start_paused = true)]
async fn a_shared_child_belongs_to_all_who_apply_it() {
    async fn share(_: Arc<ConfigMap>, ctx: Context) -> Result {
        let mut secret = Secret::default();
        secret.metadata.name = Some("shared".into());
        ctx.apply_shared(secret).await?;
        Ok(Action::await_change())
    }
    let world = World::start().await;
    let _running = world
        .run(&Operator::new("sharer").controller(Controller::new(share).owns::<Secret>()))
        .await;
    world.create(config_map("ada", "a", "1")).await;
    world.create(config_map("bob", "a", "1")).await;
    let shared: Secret = world.until("shared", |secret: &Secret| secret.owner_references().len() == 2).await;
    assert!(shared.owner_references().iter().all(|owner| owner.controller.is_none()));
    let mut owners: Vec<_> = shared.owner_references().iter().map(|owner| owner.name.as_str()).collect();
    owners.sort_unstable();
    assert_eq!(owners, ["ada", "bob"]);
}

#[tokio::test(start_paused = true)]
async fn drift_that_is_corrected_is_told() {
    let world = World::start().await;
    let (sender, mut told) = mpsc::unbounded_channel();
    let reconcile = move |map: Arc<ConfigMap>, ctx: Context| {
        let sender = sender.clone();
        async move {
            let string_data = map.data.clone();
            let kept = Secret { string_data, ..Default::default() };
            let kept = ctx.apply(Secret { type_: Some("example.dev/kept".into()), ..kept }).await?;
            sender.send(kept)?;
            Ok(Action::await_change())
        }
    };
    let controller = Controller::new(reconcile).owns::<Secret>().reads::<Secret>();
    let running = world.run(&Operator::new("keeper").controller(controller)).await;
    world.create(config_map("ada", "a", "1")).await;
    world.until("ada", |secret: &Secret| secret.data.is_some()).await;
    pass(Duration::from_secs(1)).await;
    world
        .merge::<Secret>("ada", json!({ "metadata": { "labels": { "team": "blue" } } }))
        .await;
    pass(Duration::from_secs(1)).await;
    world.merge::<Secret>("ada", json!({ "stringData": { "a": "2" } })).await;
    pass(Duration::from_secs(1)).await;

    let mut answers = Vec::new();
    while let Ok(answer) = told.try_recv() {
        answers.push(answer);
    }
    answers.dedup();
    assert_eq!(
        answers,
        [
            Applied::Created,
            Applied::Unchanged,
            Applied::Corrected,
            Applied::Unchanged
        ]
    );
    let text = running.metrics().text(flyball::metrics::Format::Prometheus);
    assert!(text.contains(r#"flyball_drift_corrected_total{kind="Secret"} 1"#), "{text}");
    let events = world.api::<Event>().list(&ListParams::default()).await.unwrap();
    let event = events.iter().find(|event| event.reason.as_deref() == Some("DriftCorrected")).unwrap();
    let note = event.note.as_deref().unwrap();
    assert_eq!(note, "Secret default/ada was changed by others and put back: data.a");
    assert_eq!(event.regarding.as_ref().unwrap().name.as_deref(), Some("ada"));
}

#[tokio::test(start_paused = true)]
async fn an_object_is_patched_and_its_readiness_told() {
    let world = World::start().await;
    let (sender, mut told) = mpsc::unbounded_channel();
    let reconcile = move |_: Arc<ConfigMap>, ctx: Context| {
        let sender = sender.clone();
        async move {
            let patch = Patch::Merge(json!({ "spec": { "replicas": 2 } }));
            let deployment = ctx.patch::<Deployment>("web", &patch).await?;
            let manager = deployment.managed_fields().iter().any(|entry| entry.manager.as_deref() == Some("scaler"));
            sender.send((ctx.readiness(&*deployment), manager))?;
            let missing = ctx.patch::<Deployment>(Key::namespaced("default", "none"), &patch).await.unwrap_err();
            assert_eq!(missing.to_string(), r#"patch Deployment default/none: deployments.apps "none" not found"#);
            Ok(Action::await_change())
        }
    };
    let labels = json!({ "app": "web" });
    let spec = json!({
        "selector": { "matchLabels": labels },
        "template": { "metadata": { "labels": labels }, "spec": { "containers": [{ "name": "a", "image": "b" }] } },
    });
    let deployment = serde_json::from_value(json!({ "metadata": { "name": "web" }, "spec": spec })).unwrap();
    world.create::<Deployment>(deployment).await;
    let _running = world.run(&Operator::new("scaler").controller(Controller::new(reconcile))).await;
    world.create(config_map("ada", "a", "1")).await;
    assert_eq!(told.recv().await.unwrap(), (Readiness::InProgress("replicas: 0 of 2".into()), true));
}

#[tokio::test(start_paused = true)]
async fn a_child_that_is_applied_in_another_version_of_its_kind_stays() {
    async fn scale(_: Arc<ConfigMap>, ctx: Context) -> Result {
        let target = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": "ada" });
        let scaler = json!({ "metadata": {}, "spec": { "scaleTargetRef": target, "maxReplicas": 3 } });
        ctx.apply(serde_json::from_value::<v2::HorizontalPodAutoscaler>(scaler)?).await?;
        ctx.prune::<v1::HorizontalPodAutoscaler>().await?;
        Ok(Action::await_change())
    }
    let world = World::start().await;
    let controller = Controller::new(scale)
        .owns::<v1::HorizontalPodAutoscaler>()
        .owns::<v2::HorizontalPodAutoscaler>();
    let _running = world.run(&Operator::new("scaler").controller(controller)).await;
    world.create(config_map("ada", "a", "1")).await;
    pass(Duration::from_secs(5)).await;
    world
        .merge::<ConfigMap>("ada", json!({ "metadata": { "labels": { "again": "yes" } } }))
        .await;
    pass(Duration::from_secs(5)).await;
    let deleted = world.writes().into_iter().filter(|write| write.starts_with("DELETE"));
    assert_eq!(deleted.collect::<Vec<_>>(), [""; 0]);
}
