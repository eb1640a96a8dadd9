//! Starting and stopping, tasks, events, conditions.

use crate::world::{World, config_map, pass};
use flyball::{Action, Context, Controller, Error, Event, Operator, Result};
use k8s_openapi::{
    api::{
        core::v1::{ConfigMap, ReplicationController, Secret},
        events::v1::Event as Published,
    },
    apimachinery::pkg::apis::meta::v1::Condition,
};
use kube::ResourceExt;
use serde_json::json;
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::sync::mpsc;

/// Takes ten seconds to keep a Secret beside every ConfigMap.
async fn slowly(_: Arc<ConfigMap>, ctx: Context) -> Result {
    pass(Duration::from_secs(10)).await;
    ctx.apply(Secret::default()).await?;
    ctx.event(Event::normal("Kept", "after ten seconds"));
    Ok(Action::await_change())
}

#[tokio::test(start_paused = true)]
async fn a_stop_lets_reconciles_end_and_begins_none() {
    let world = World::start().await;
    let running = world
        .run(&Operator::new("slow").controller(Controller::new(slowly).owns::<Secret>().concurrency(1)))
        .await;
    world.create(config_map("ada", "a", "1")).await;
    pass(Duration::from_secs(1)).await;
    world.create(config_map("bob", "a", "1")).await;
    pass(Duration::from_secs(1)).await;
    running.stop().await;
    assert!(world.api::<Secret>().get_opt("ada").await.unwrap().is_some());
    assert_eq!(world.api::<Published>().list(&Default::default()).await.unwrap().items.len(), 1);
    pass(Duration::from_secs(60)).await;
    assert!(world.api::<Secret>().get_opt("bob").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_that_never_ends_does_not_hold_up_the_stop_forever() {
    let world = World::start().await;
    async fn forever(_: Arc<ConfigMap>, _: Context) -> Result {
        std::future::pending().await
    }
    let running = world.run(&Operator::new("stuck").controller(Controller::new(forever))).await;
    world.create(config_map("ada", "a", "1")).await;
    pass(Duration::from_secs(1)).await;
    let started = tokio::time::Instant::now();
    running.stop().await;
    assert_eq!(started.elapsed().as_secs(), 30);
}

#[tokio::test(start_paused = true)]
async fn an_operator_that_is_dropped_does_nothing_more() {
    let world = World::start().await;
    let operator = Operator::new("slow").controller(Controller::new(slowly).owns::<Secret>());
    let running = world.run(&operator).await;
    world.create(config_map("ada", "a", "1")).await;
    pass(Duration::from_secs(1)).await;
    drop(running);
    pass(Duration::from_secs(60)).await;
    assert!(world.api::<Secret>().get_opt("ada").await.unwrap().is_none());
    assert_eq!(world.writes(), [""; 0]);

    let _again = world.run(&operator).await;
    world.until("ada", |_: &Secret| true).await;
}

#[tokio::test(start_paused = true)]
async fn a_task_runs_beside_the_controllers_and_is_begun_anew_when_it_fails() {
    let world = World::start().await;
    let attempts = Arc::new(AtomicUsize::new(0));
    let made = attempts.clone();
    let operator = Operator::new("tasker").task("count", move |_| {
        let attempt = made.fetch_add(1, Ordering::SeqCst);
        async move {
            match attempt {
                0 => Err(Error::from("the port is taken")),
                1 => panic!("divided by zero"),
                _ => std::future::pending().await,
            }
        }
    });
    let running = world.run(&operator).await;
    pass(Duration::from_secs(60)).await;
    assert_eq!(attempts.load(Ordering::SeqCst), 3);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_event_that_repeats_is_one_series() {
    async fn complain(map: Arc<ConfigMap>, ctx: Context) -> Result {
        let note = format!("{} is wrong", map.data.as_ref().unwrap()["a"]);
        ctx.event(Event::warning("Wrong", note).action("Check"));
        Ok(Action::requeue_after(Duration::from_secs(30)))
    }
    let world = World::start().await;
    let _running = world.run(&Operator::new("complainer").controller(Controller::new(complain))).await;
    let map = world.create(config_map("ada", "a", "1")).await;
    pass(Duration::from_secs(75)).await;
    let events = world.api::<Published>().list(&Default::default()).await.unwrap().items;
    assert_eq!(events.len(), 1);
    let event = &events[0];
    assert_eq!(event.type_.as_deref(), Some("Warning"));
    assert_eq!((event.reason.as_deref(), event.action.as_deref()), (Some("Wrong"), Some("Check")));
    assert_eq!(event.note.as_deref(), Some("1 is wrong"));
    assert_eq!(event.reporting_controller.as_deref(), Some("complainer"));
    assert_eq!(event.regarding.as_ref().unwrap().uid, map.uid());
    assert_eq!(event.series.as_ref().unwrap().count, 3);
    assert!(event.name_any().starts_with("ada."), "{}", event.name_any());
}

#[tokio::test(start_paused = true)]
async fn a_condition_keeps_the_time_of_its_last_transition() {
    let (sender, mut told) = mpsc::unbounded_channel::<Condition>();
    let judge = move |rc: Arc<ReplicationController>, ctx: Context| {
        let sender = sender.clone();
        async move {
            let ready = rc.labels().contains_key("ready");
            let condition = ctx.condition("Ready", ready, "Judged", "by its label");
            sender.send(condition.clone())?;
            // A kind of Kubernetes' own would not keep observedGeneration.
            let kept = json!({ "type": "Ready", "status": condition.status, "lastTransitionTime": condition.last_transition_time });
            ctx.set_status(json!({ "replicas": 0, "conditions": [kept] })).await?;
            Ok(Action::await_change())
        }
    };
    let world = World::start().await;
    let _running = world.run(&Operator::new("judge").controller(Controller::new(judge))).await;
    let rc = json!({ "metadata": { "name": "ada" }, "spec": { "selector": { "a": "b" }, "template": {
        "metadata": { "labels": { "a": "b" } }, "spec": { "containers": [{ "name": "a", "image": "b" }] },
    } } });
    world.create::<ReplicationController>(serde_json::from_value(rc).unwrap()).await;
    let first = told.recv().await.unwrap();
    assert_eq!((first.status.as_str(), first.observed_generation), ("False", Some(1)));

    let mut later = async |labels| {
        pass(Duration::from_secs(60)).await;
        world
            .merge::<ReplicationController>("ada", json!({ "metadata": { "labels": labels } }))
            .await;
        pass(Duration::from_secs(1)).await;
        std::iter::from_fn(|| told.try_recv().ok()).last().unwrap()
    };
    let second = later(json!({ "seen": "again" })).await;
    assert_eq!(second.last_transition_time, first.last_transition_time);
    let third = later(json!({ "ready": "yes" })).await;
    assert_eq!(third.status, "True");
    let waited = third.last_transition_time.0.duration_since(first.last_transition_time.0);
    assert_eq!(waited.as_secs(), 121);
}

#[tokio::test(start_paused = true)]
async fn a_configuration_confines_the_operator_to_its_namespaces() {
    let (sender, mut told) = mpsc::unbounded_channel();
    let tell = move |map: Arc<ConfigMap>, _: Context| {
        let sender = sender.clone();
        async move {
            sender.send((map.namespace().unwrap(), map.name_any()))?;
            Ok(Action::await_change())
        }
    };
    let world = World::start().await;
    let operator = Operator::new("confined").controller(Controller::new(tell));
    let text =
        "namespace: blue\nleaderElection: { enabled: false }\nmetrics: { enabled: false }\nhealth: { enabled: false }";
    let config = flyball::Config::from_yaml(text).unwrap();
    let _running = operator.config(&config).start(world.client.clone()).await.unwrap();
    let blue: k8s_openapi::api::core::v1::Namespace =
        serde_json::from_value(json!({ "metadata": { "name": "blue" } })).unwrap();
    kube::Api::all(world.client.clone()).create(&Default::default(), &blue).await.unwrap();
    world.create(config_map("ada", "a", "1")).await;
    let maps = kube::Api::<ConfigMap>::namespaced(world.client.clone(), "blue");
    maps.create(&Default::default(), &config_map("bob", "a", "1")).await.unwrap();
    pass(Duration::from_secs(10)).await;
    assert_eq!(told.try_recv().unwrap(), ("blue".into(), "bob".into()));
    assert!(told.try_recv().is_err());
}
