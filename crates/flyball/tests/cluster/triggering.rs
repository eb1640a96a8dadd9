//! What brings an object into the queue, beside its own changes and those of what it owns.

use crate::world::{World, config_map, pass};
use flyball::{Action, Cache, Context, Controller, DynamicController, Key, Operator, Result};
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use kube::{
    ResourceExt,
    api::{ApiResource, DynamicObject, PartialObjectMeta},
};
use serde_json::json;
use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::sync::mpsc;

fn refers(name: &str, to: &str) -> Secret {
    serde_json::from_value(json!({ "metadata": { "name": name, "annotations": { "refers": to } } })).unwrap()
}

fn telling() -> (Controller<ConfigMap>, mpsc::UnboundedReceiver<String>) {
    let (sender, told) = mpsc::unbounded_channel();
    let controller = Controller::new(move |map: Arc<ConfigMap>, _: Context| {
        let sender = sender.clone();
        async move {
            sender.send(map.name_any())?;
            Ok(Action::await_change())
        }
    });
    (controller, told)
}

/// The names that were reconciled within a second.
async fn reconciled(told: &mut mpsc::UnboundedReceiver<String>) -> BTreeSet<String> {
    pass(Duration::from_secs(1)).await;
    std::iter::from_fn(|| told.try_recv().ok()).collect()
}

#[tokio::test(start_paused = true)]
async fn what_an_object_referred_to_and_what_it_refers_to_now_are_both_reconciled() {
    let world = World::start().await;
    let (controller, mut told) = telling();
    let referred = |secret: Arc<Secret>, _: Cache| {
        let name = secret.annotations().get("refers").cloned();
        name.map(|name| Key::namespaced("default", name))
    };
    let _running = world.run(&Operator::new("watcher").controller(controller.watches(referred))).await;
    for name in ["ada", "bob", "cyd"] {
        world.create(config_map(name, "a", "1")).await;
    }
    reconciled(&mut told).await;

    world.create(refers("secret", "ada")).await;
    assert_eq!(reconciled(&mut told).await, BTreeSet::from(["ada".into()]));
    world
        .merge::<Secret>("secret", json!({ "metadata": { "annotations": { "refers": "bob" } } }))
        .await;
    assert_eq!(reconciled(&mut told).await, BTreeSet::from(["ada".into(), "bob".into()]));
    world.delete::<Secret>("secret").await;
    assert_eq!(reconciled(&mut told).await, BTreeSet::from(["bob".into()]));
}

#[tokio::test(start_paused = true)]
async fn a_mapper_reads_the_cache_and_its_panics_end_nothing() {
    let world = World::start().await;
    let (controller, mut told) = telling();
    let everything = |secret: Arc<Secret>, cache: Cache| -> Result<_> {
        assert_ne!(secret.name_any(), "poison");
        let maps = cache.list::<ConfigMap>()?;
        Ok(maps.iter().map(|map| Key::of(&**map)).collect::<Vec<_>>())
    };
    let _running = world.run(&Operator::new("watcher").controller(controller.watches(everything))).await;
    world.create(config_map("ada", "a", "1")).await;
    reconciled(&mut told).await;

    world.create(refers("poison", "")).await;
    assert_eq!(reconciled(&mut told).await, BTreeSet::new());
    world.create(refers("secret", "")).await;
    assert_eq!(reconciled(&mut told).await, BTreeSet::from(["ada".into()]));
}

#[tokio::test(start_paused = true)]
async fn a_requeue_comes_at_its_time_unless_a_change_comes_first() {
    let world = World::start().await;
    let (sender, mut times) = mpsc::unbounded_channel();
    let hourly = move |_: Arc<ConfigMap>, _: Context| {
        let sender = sender.clone();
        async move {
            sender.send(tokio::time::Instant::now())?;
            Ok(Action::requeue_after(Duration::from_secs(3_600)))
        }
    };
    let _running = world.run(&Operator::new("hourly").controller(Controller::new(hourly))).await;
    world.create(config_map("ada", "a", "1")).await;
    let first = times.recv().await.unwrap();
    let second = times.recv().await.unwrap();
    assert_eq!((second - first).as_secs(), 3_600);

    pass(Duration::from_secs(60)).await;
    world.merge::<ConfigMap>("ada", json!({ "data": { "a": "2" } })).await;
    let third = times.recv().await.unwrap();
    assert_eq!((third - second).as_secs(), 60);
    let fourth = times.recv().await.unwrap();
    assert_eq!((fourth - third).as_secs(), 3_600);
}

#[tokio::test(start_paused = true)]
async fn a_kind_may_be_found_at_run_time_and_dependents_follow_their_owners() {
    let world = World::start().await;
    let (sender, mut told) = mpsc::unbounded_channel();
    let started: Arc<Mutex<Option<DynamicController>>> = Arc::default();
    let keep = started.clone();
    let start = move |_: Arc<Service>, ctx: Context| {
        let (sender, keep) = (sender.clone(), keep.clone());
        async move {
            let collect = move |object: Arc<PartialObjectMeta<DynamicObject>>, _: Context| {
                let sender = sender.clone();
                async move {
                    sender.send(object.name_any())?;
                    Ok(Action::await_change())
                }
            };
            let secrets = ApiResource::erase::<Secret>(&());
            *keep.lock().unwrap() = Some(ctx.control(Controller::of(secrets, collect).follows_owners())?);
            Ok(Action::await_change())
        }
    };
    async fn idle(_: Arc<ConfigMap>, _: Context) -> Result {
        Ok(Action::await_change())
    }
    let operator = Operator::new("collector")
        .controller(Controller::new(idle))
        .controller(Controller::new(start));
    let _running = world.run(&operator).await;
    let owner = world.create(config_map("ada", "a", "1")).await;
    let mut secret = refers("child", "");
    let reference = json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": "ada", "uid": owner.uid() });
    secret.metadata.owner_references = Some(vec![serde_json::from_value(reference).unwrap()]);
    world.create(secret).await;
    world.create(refers("orphan", "")).await;

    // The API server brings along the Service `kubernetes`, or this one comes now.
    let service = json!({ "metadata": { "name": "start" }, "spec": { "ports": [{ "port": 80 }] } });
    world.create::<Service>(serde_json::from_value(service).unwrap()).await;
    assert_eq!(reconciled(&mut told).await, BTreeSet::from(["child".into(), "orphan".into()]));
    world.delete::<ConfigMap>("ada").await;
    assert_eq!(reconciled(&mut told).await, BTreeSet::from(["child".into()]));

    drop(started.lock().unwrap().take());
    pass(Duration::from_secs(1)).await;
    world.create(refers("later", "")).await;
    assert_eq!(reconciled(&mut told).await, BTreeSet::new());
}

#[tokio::test(start_paused = true)]
async fn an_owner_follows_its_dependents_and_they_know_each_other() {
    let world = World::start().await;
    let (sender, mut told) = mpsc::unbounded_channel();
    let reconcile = move |map: Arc<ConfigMap>, ctx: Context| {
        let sender = sender.clone();
        async move {
            let dependents: Vec<_> = ctx.dependents().await?.iter().map(|secret| secret.object.name_any()).collect();
            sender.send(format!("{} {dependents:?}", map.name_any()))?;
            Ok(Action::await_change())
        }
    };
    let (owned, mut owners) = mpsc::unbounded_channel();
    let look = move |_: Arc<Secret>, ctx: Context| {
        let owned = owned.clone();
        async move {
            for (reference, owner) in ctx.owners() {
                let kind = owner.map(|owner| owner.resource.kind);
                owned.send((reference.name, kind))?;
            }
            Ok(Action::await_change())
        }
    };
    let operator = Operator::new("family")
        .controller(Controller::new(reconcile).follows_dependents())
        .controller(Controller::new(look));
    let _running = world.run(&operator).await;
    let owner = world.create(config_map("ada", "a", "1")).await;
    assert_eq!(reconciled(&mut told).await, BTreeSet::from(["ada []".into()]));

    let reference =
        |name: &str, uid: Option<String>| json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid });
    let mut secret = refers("child", "");
    let references = json!([reference("ada", owner.uid()), reference("bob", Some("gone".into()))]);
    secret.metadata.owner_references = Some(serde_json::from_value(references).unwrap());
    world.create(secret).await;
    assert_eq!(reconciled(&mut told).await, BTreeSet::from([r#"ada ["child"]"#.into()]));
    assert_eq!(owners.recv().await.unwrap(), ("ada".into(), Some("ConfigMap".into())));
    assert_eq!(owners.recv().await.unwrap(), ("bob".into(), None));

    world.merge::<Secret>("child", json!({ "metadata": { "labels": { "a": "b" } } })).await;
    assert_eq!(reconciled(&mut told).await, BTreeSet::new());
    world.delete::<Secret>("child").await;
    assert_eq!(reconciled(&mut told).await, BTreeSet::from(["ada []".into()]));
}

#[tokio::test(start_paused = true)]
async fn the_key_of_an_object_that_is_gone_is_told() {
    let world = World::start().await;
    let (sender, mut gone) = mpsc::unbounded_channel();
    let (controller, mut told) = telling();
    let controller = controller.gone(move |key| sender.send(key.to_string()).unwrap());
    let _running = world.run(&Operator::new("keeper").controller(controller)).await;
    world.create(config_map("ada", "a", "1")).await;
    reconciled(&mut told).await;
    assert!(gone.try_recv().is_err());
    world.delete::<ConfigMap>("ada").await;
    assert_eq!(gone.recv().await.unwrap(), "default/ada");
}
