//! Mappers, indexes, triggers and cached reads that meet what they cannot read or name: each failure is an error or is shown.

use crate::world::{World, config_map, pass, widgets};
use flyball::{Action, Cache, Context, Controller, Key, Operator, Result, Running, Trigger, metrics::Format};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{
    Api, CustomResource,
    api::{DynamicObject, PostParams},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

/// A kind whose objects the API server lets be anything.
#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "example.dev", version = "v1", kind = "Widget", namespaced)]
struct WidgetSpec {
    size: u32,
}

type Keys = Arc<Mutex<Vec<String>>>;

/// A controller of ConfigMaps that notes which it reconciles, and which are gone.
fn noting(seen: &Keys) -> Controller<ConfigMap> {
    let (reconciled, gone) = (seen.clone(), seen.clone());
    let reconcile = move |map: Arc<ConfigMap>, _: Context| {
        reconciled.lock().unwrap().push(Key::of(&*map).to_string());
        async { Ok(Action::await_change()) }
    };
    Controller::new(reconcile).gone(move |key| gone.lock().unwrap().push(format!("gone {key}")))
}

async fn create_widget(world: &World, name: &str, size: serde_json::Value) {
    let widgets: Api<DynamicObject> = Api::default_namespaced_with(world.client.clone(), &widgets());
    let widget = json!({ "apiVersion": "example.dev/v1", "kind": "Widget", "metadata": { "name": name }, "spec": { "size": size } });
    widgets
        .create(&PostParams::default(), &serde_json::from_value(widget).unwrap())
        .await
        .unwrap();
}

/// The last failure of a mapper, and how often one has failed.
fn mapper_failure(running: &Running, kind: &str) -> (String, bool) {
    let failure = running.queues(1)[0].mapper_failure.clone().unwrap();
    let counted = format!("flyball_mapper_errors_total{{controller=\"configmap\",kind=\"{kind}\"}} 1\n");
    let text = running.metrics().text(Format::Prometheus);
    (format!("{} {}: {}", failure.kind, failure.key, failure.error), text.contains(&counted))
}

#[tokio::test(start_paused = true)]
async fn a_mapper_that_fails_is_counted_and_shown() {
    fn users(_: Arc<Secret>, cache: Cache) -> Result<Vec<Key>> {
        let users = cache.by_index::<ConfigMap>("secret", "ada")?;
        Ok(users.iter().map(|user| Key::of(&**user)).collect())
    }
    let (world, seen) = (World::start().await, Keys::default());
    let running = world.run(&Operator::new("mapping").controller(noting(&seen).watches(users))).await;
    world
        .create(serde_json::from_value::<Secret>(json!({ "metadata": { "name": "ada" } })).unwrap())
        .await;
    pass(Duration::from_secs(1)).await;
    let failure = "Secret default/ada: ConfigMap has no index \"secret\": declare it with `.index::<ConfigMap>(…)`";
    assert_eq!(mapper_failure(&running, "Secret"), (failure.to_owned(), true));
    assert!(seen.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_watched_object_that_does_not_decode_is_a_failure_of_its_mapper() {
    let (world, seen) = (World::start().await, Keys::default());
    world.install_widgets().await;
    let beside = |widget: Arc<Widget>, _: Cache| [Key::of(&*widget)];
    let running = world.run(&Operator::new("mapping").controller(noting(&seen).watches(beside))).await;
    world.create(config_map("ada", "a", "1")).await;
    create_widget(&world, "ada", json!(1)).await;
    pass(Duration::from_secs(1)).await;
    assert_eq!(*seen.lock().unwrap(), ["default/ada", "default/ada"], "one that decodes is mapped");
    create_widget(&world, "bob", json!("big")).await;
    pass(Duration::from_secs(1)).await;
    let (failure, counted) = mapper_failure(&running, "Widget");
    assert!(failure.starts_with("Widget default/bob: decode Widget default/bob: "), "{failure}");
    assert!(counted);
}

#[tokio::test(start_paused = true)]
async fn a_bare_name_of_a_namespaced_kind_is_refused_by_mappers_and_triggers() {
    let (world, seen, trigger) = (World::start().await, Keys::default(), Trigger::new("outside"));
    world.create(config_map("ada", "a", "1")).await;
    let bare = |_: Arc<Secret>, _: Cache| [Key::from("ada")];
    let controller = noting(&seen).watches(bare).triggered_by(&trigger);
    let running = world.run(&Operator::new("mapping").controller(controller)).await;
    pass(Duration::from_secs(1)).await;
    world
        .create(serde_json::from_value::<Secret>(json!({ "metadata": { "name": "ada" } })).unwrap())
        .await;
    pass(Duration::from_secs(60)).await;
    let refusal = "ConfigMap ada has no namespace: ConfigMap is namespaced, so name one with `Key::namespaced`";
    assert_eq!(mapper_failure(&running, "Secret"), (format!("Secret default/ada: {refusal}"), true));
    assert_eq!(trigger.reconcile("ada").unwrap_err().to_string(), refusal);
    assert_eq!(*seen.lock().unwrap(), ["default/ada"], "neither is taken for an object that is gone");
    trigger.reconcile(Key::namespaced("default", "ada")).unwrap();
    pass(Duration::from_secs(1)).await;
    assert_eq!(seen.lock().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_key_outside_the_namespaces_of_an_operator_is_ignored_once() {
    let (world, seen) = (World::start().await, Keys::default());
    let elsewhere = |_: Arc<Secret>, _: Cache| [Key::namespaced("kube-system", "ada")];
    let operator = Operator::new("confined").namespaces(["default"]);
    let running = world.run(&operator.controller(noting(&seen).watches(elsewhere))).await;
    world
        .create(serde_json::from_value::<Secret>(json!({ "metadata": { "name": "ada" } })).unwrap())
        .await;
    pass(Duration::from_secs(60)).await;
    let queue = &running.queues(1)[0];
    assert_eq!((queue.ready, queue.waiting, queue.running), (0, 0, 0), "it is not looked for again");
    assert!(seen.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn cached_reads_say_why_they_cannot_answer() {
    let world = World::start().await;
    world.install_widgets().await;
    create_widget(&world, "ada", json!(1)).await;
    create_widget(&world, "bob", json!("big")).await;
    let size = |widget: &Widget| vec![widget.spec.size.to_string()];
    let (idle, seen) = (Keys::default(), Keys::default());
    let controller = noting(&idle).index::<Widget>("size", size);
    let running = world.run(&Operator::new("reading").controller(controller)).await;
    pass(Duration::from_secs(1)).await;
    let cache = running.cache();
    let mut refusals = seen.lock().unwrap();
    refusals.push(cache.list::<Secret>().unwrap_err().to_string());
    refusals.push(cache.get::<Widget>("ada").unwrap_err().to_string());
    refusals.push(cache.by_index::<Widget>("colour", "red").unwrap_err().to_string());
    assert_eq!(
        *refusals,
        [
            "Secret is not cached: declare it with `.reads::<Secret>()`, or read it with `ctx.client()`",
            "Widget ada has no namespace: Widget is namespaced, so name one with `Key::namespaced`",
            "Widget has no index \"colour\": declare it with `.index::<Widget>(…)`",
        ]
    );
    let undecodable = cache.list::<Widget>().unwrap_err().to_string();
    assert!(undecodable.starts_with("decode Widget default/bob: "), "{undecodable}");
    assert!(cache.get::<Widget>(Key::namespaced("default", "ada")).unwrap().is_some());
    assert_eq!(cache.by_index::<Widget>("size", "1").unwrap().len(), 1, "one does not hide the other");
    let watch = cache.watches().into_iter().find(|watch| watch.kind == "Widget").unwrap();
    assert_eq!((watch.objects, watch.unindexed), (2, 1));
    let text = running.metrics().text(Format::Prometheus);
    assert!(text.contains("flyball_cache_unindexed_objects{kind=\"Widget\"} 1"), "{text}");
}
