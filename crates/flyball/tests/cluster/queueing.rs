//! When an object is reconciled, how soon, how often, and why.

use crate::world::{World, config_map, pass};
use flyball::{Action, Backoff, Context, Controller, Error, Key, Operator, Predicate, QueuePosition, Result, Trigger};
use k8s_openapi::api::{
    core::v1::{ConfigMap, Secret},
    events::v1::Event as Published,
};
use kube::{Resource, ResourceExt};
use serde_json::json;
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    sync::{Semaphore, mpsc},
    time::Instant,
};

/// A run: the name, why, and when.
type Run = (String, String, Instant);

/// A controller of ConfigMaps that tells of each run in `default` before it does what `reconcile` says.
fn telling<Fut>(
    reconcile: impl Fn(Context) -> Fut + Send + Sync + 'static,
) -> (Controller<ConfigMap>, mpsc::UnboundedReceiver<Run>)
where
    Fut: Future<Output = Result> + Send + 'static,
{
    let (sender, runs) = mpsc::unbounded_channel();
    let reconcile = Arc::new(reconcile);
    let controller = Controller::new(move |map: Arc<ConfigMap>, ctx: Context| {
        let (sender, reconcile) = (sender.clone(), reconcile.clone());
        async move {
            if map.namespace().as_deref() != Some("default") || map.name_any() == "kube-root-ca.crt" {
                return Ok(Action::await_change());
            }
            sender.send((map.name_any(), ctx.why().to_string(), Instant::now()))?;
            reconcile(ctx).await
        }
    });
    (controller, runs)
}

async fn calm(_: Context) -> Result {
    Ok(Action::await_change())
}

/// The names and reasons of the runs within a second.
async fn ran(runs: &mut mpsc::UnboundedReceiver<Run>) -> Vec<String> {
    pass(Duration::from_secs(1)).await;
    std::iter::from_fn(|| runs.try_recv().ok())
        .map(|(name, why, _)| format!("{name}: {why}"))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn what_happens_now_goes_before_the_initial_list() {
    let world = World::start().await;
    for index in 0..20 {
        world.create(config_map(&format!("old-{index:02}"), "a", "1")).await;
    }
    let door = Arc::new(Semaphore::new(0));
    let held = door.clone();
    let (controller, mut runs) = telling(move |_| {
        let door = held.clone();
        async move {
            door.acquire().await?.forget();
            Ok(Action::await_change())
        }
    });
    let _running = world.run(&Operator::new("busy").controller(controller.concurrency(1))).await;
    assert_eq!(ran(&mut runs).await, ["old-00: listed"]);
    world.create(config_map("new", "a", "1")).await;
    world.merge::<ConfigMap>("old-19", json!({ "data": { "a": "2" } })).await;
    pass(Duration::from_secs(1)).await;
    door.add_permits(100);
    let order = ran(&mut runs).await;
    assert_eq!(order[..3], ["new: created", "old-19: changed", "old-01: listed"]);
    assert_eq!(order.len(), 20);
}

#[tokio::test(start_paused = true)]
async fn a_log_line_could_say_which_objects_change_it_was() {
    let world = World::start().await;
    let (controller, mut runs) = telling(async |ctx: Context| {
        assert_eq!(ctx.reconcile_id().len(), 16);
        ctx.apply(Secret::default()).await?;
        Ok(Action::await_change())
    });
    let running = world.run(&Operator::new("whys").controller(controller.owns::<Secret>())).await;
    world.create(config_map("ada", "a", "1")).await;
    assert_eq!(ran(&mut runs).await, ["ada: created", "ada: Secret default/ada created"]);
    world.delete::<Secret>("ada").await;
    assert_eq!(
        ran(&mut runs).await,
        ["ada: Secret default/ada deleted", "ada: Secret default/ada created"]
    );
    assert_eq!(running.reconcile("configmap", Some(&Key::namespaced("default", "ada")), "alice"), 1);
    assert_eq!(ran(&mut runs).await, ["ada: asked by alice"]);
}

#[tokio::test(start_paused = true)]
async fn a_predicate_keeps_changes_out_and_lets_deletions_through() {
    let world = World::start().await;
    let (controller, mut runs) = telling(calm);
    let (sender, mut gone) = mpsc::unbounded_channel();
    let controller = controller.when::<ConfigMap>(Predicate::labels()).gone(move |key| {
        sender.send(key.to_string()).unwrap();
    });
    let _running = world.run(&Operator::new("picky").controller(controller)).await;
    world.create(config_map("ada", "a", "1")).await;
    assert_eq!(ran(&mut runs).await, ["ada: created"]);
    world.merge::<ConfigMap>("ada", json!({ "data": { "a": "2" } })).await;
    assert_eq!(ran(&mut runs).await, [""; 0]);
    world.merge::<ConfigMap>("ada", json!({ "metadata": { "labels": { "a": "b" } } })).await;
    assert_eq!(ran(&mut runs).await, ["ada: changed"]);
    world.delete::<ConfigMap>("ada").await;
    assert_eq!(gone.recv().await.unwrap(), "default/ada");
}

#[tokio::test(start_paused = true)]
async fn a_predicate_on_a_kind_that_triggers_nothing_is_refused() {
    let world = World::start().await;
    let (controller, _) = telling(calm);
    let operator = Operator::new("picky").controller(controller.when::<Secret>(Predicate::generation()));
    let refusal = operator.start(world.client.clone()).await.unwrap_err().to_string();
    assert!(
        refusal.contains("a predicate on secrets, which the configmap controller is not triggered by"),
        "{refusal}"
    );
}

#[tokio::test(start_paused = true)]
async fn news_from_outside_trigger_one_object_or_all() {
    let world = World::start().await;
    let billing = Trigger::new("billing");
    billing.reconcile(Key::namespaced("default", "before")).unwrap();
    let (controller, mut runs) = telling(calm);
    let running = world.run(&Operator::new("triggered").controller(controller.triggered_by(&billing))).await;
    for name in ["ada", "bob"] {
        world.create(config_map(name, "a", "1")).await;
    }
    ran(&mut runs).await;
    billing.reconcile(Key::namespaced("default", "bob")).unwrap();
    assert_eq!(ran(&mut runs).await, ["bob: asked by billing"]);
    billing.reconcile_all();
    assert_eq!(ran(&mut runs).await, ["ada: asked by billing", "bob: asked by billing"]);
    running.stop().await;
    billing.reconcile_all();
    assert_eq!(ran(&mut runs).await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_that_takes_too_long_is_given_up_and_retried() {
    let world = World::start().await;
    let (controller, mut runs) = telling(async |_| std::future::pending().await);
    let running = world
        .run(&Operator::new("slow").controller(controller.timeout(Duration::from_secs(5))))
        .await;
    world.create(config_map("ada", "a", "1")).await;
    let (_, _, first) = runs.recv().await.unwrap();
    let (_, why, second) = runs.recv().await.unwrap();
    assert_eq!((why.as_str(), (second - first).as_secs()), ("retry 1", 5));
    let failing = &running.queues(10)[0].failing[0];
    assert_eq!(failing.error.as_deref(), Some("the reconcile did not end within 5s"));
}

#[tokio::test(start_paused = true)]
async fn every_object_is_looked_at_once_in_a_period_if_asked() {
    let world = World::start().await;
    let (controller, mut runs) = telling(calm);
    let _running = world
        .run(&Operator::new("hourly").controller(controller.resync(Duration::from_secs(3_600))))
        .await;
    world.create(config_map("ada", "a", "1")).await;
    let (_, _, first) = runs.recv().await.unwrap();
    for hours in 1..4 {
        let (_, why, at) = runs.recv().await.unwrap();
        assert_eq!((why.as_str(), (at - first).as_secs() / 3_590), ("resync", hours));
    }
}

#[tokio::test(start_paused = true)]
async fn reconciles_are_limited_in_rate_if_asked() {
    let world = World::start().await;
    for index in 0..15 {
        world.create(config_map(&format!("map-{index:02}"), "a", "1")).await;
    }
    let (controller, mut runs) = telling(calm);
    let labelled = controller.fields("metadata.namespace=default,metadata.name!=kube-root-ca.crt");
    let _running = world.run(&Operator::new("gentle").controller(labelled.rate_limit(1.0, 5))).await;
    let mut times = Vec::new();
    for _ in 0..15 {
        times.push(runs.recv().await.unwrap().2);
    }
    let after: Vec<_> = times.iter().map(|time| (*time - times[0]).as_secs_f64().round() as u32).collect();
    assert_eq!(after, [0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
}

#[tokio::test(start_paused = true)]
async fn retries_end_when_they_are_counted_and_a_change_begins_anew() {
    let world = World::start().await;
    let (controller, mut runs) = telling(async |_| Err(Error::from("no luck")));
    let backoff = Backoff {
        initial: Duration::from_secs(1),
        max: Duration::from_secs(16),
        max_retries: Some(5),
        ..Backoff::default()
    };
    let running = world.run(&Operator::new("unlucky").controller(controller.backoff(backoff))).await;
    for value in ["1", "2"] {
        if value == "1" {
            world.create(config_map("ada", "a", value)).await;
        } else {
            world.merge::<ConfigMap>("ada", json!({ "data": { "a": value } })).await;
        }
        let mut times = vec![runs.recv().await.unwrap().2];
        for _ in 0..5 {
            times.push(runs.recv().await.unwrap().2);
        }
        let waited: Vec<_> = times.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect();
        for (waited, expected) in waited.iter().zip([1.0, 2.0, 4.0, 8.0, 16.0]) {
            assert!((expected * 0.89..expected * 1.01).contains(waited), "{waited} is not {expected}");
        }
        pass(Duration::from_secs(86_400)).await;
        assert!(runs.try_recv().is_err());
        let failing = &running.queues(10)[0].failing[0];
        assert_eq!((failing.failures, failing.gave_up, failing.error.as_deref()), (6, true, Some("no luck")));
    }
    let events = world.api::<Published>().list(&Default::default()).await.unwrap().items;
    assert!(
        events.iter().any(|event| event.reason.as_deref() == Some("RetriesExhausted")),
        "{events:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_that_wants_to_be_left_alone_is() {
    let world = World::start().await;
    let (controller, mut runs) = telling(async |ctx: Context| {
        ctx.apply(Secret::default()).await?;
        Ok(Action::await_change())
    });
    let refused = Arc::new(Mutex::new(false));
    world.break_with(move |request| {
        let first = request.method() == "PATCH" && !std::mem::replace(&mut *refused.lock().unwrap(), true);
        first.then(|| crate::watching::too_many(42))
    });
    let _running = world
        .run(&Operator::new("polite").controller(controller.needs::<Secret>(["patch"])))
        .await;
    world.create(config_map("ada", "a", "1")).await;
    let (_, _, first) = runs.recv().await.unwrap();
    let (_, why, second) = runs.recv().await.unwrap();
    assert_eq!((why.as_str(), (second - first).as_secs()), ("retry 1", 42));
}

#[tokio::test(start_paused = true)]
async fn the_queue_can_be_looked_into() {
    let world = World::start().await;
    let (controller, mut runs) = telling(async |_| {
        pass(Duration::from_secs(3_600)).await;
        Ok(Action::requeue_after(Duration::from_secs(60)))
    });
    let running = world
        .run(
            &Operator::new("open")
                .controller(controller.concurrency(1).timeout(Duration::from_secs(7_200)).named("maps")),
        )
        .await;
    for name in ["ada", "bob"] {
        world.create(config_map(name, "a", "1")).await;
    }
    ran(&mut runs).await;
    let queue = &running.queues(10)[0];
    assert_eq!((queue.controller.as_str(), queue.kind.as_str()), ("maps", "ConfigMap"));
    assert_eq!((queue.running, queue.ready, queue.waiting), (1, 1, 0));
    let [first, second] = &*queue.objects else {
        panic!("{queue:?}")
    };
    assert!(matches!(first.position, QueuePosition::Running { again: false, .. }), "{first:?}");
    assert!(matches!(second.position, QueuePosition::Ready(_)), "{second:?}");
    assert_eq!((second.key.to_string(), second.why.to_string()), ("default/bob".into(), "created".into()));
    pass(Duration::from_secs(3_600)).await;
    let objects = &running.queues(10)[0].objects;
    assert!(matches!(objects[1].position, QueuePosition::Until(_)), "{objects:?}");
    assert_eq!(objects[1].why.to_string(), "requeued");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_called_gone_before_its_kind_was_listed() {
    let world = World::start().await;
    let map = world.create(config_map("ada", "a", "1")).await;
    let child = json!({ "metadata": { "name": "child", "ownerReferences": [map.controller_owner_ref(&()).unwrap()] } });
    world.create::<Secret>(serde_json::from_value(child).unwrap()).await;
    let mut refusals = 3;
    world.break_with(move |request| {
        let refused = refusals > 0 && request.uri().path().ends_with("/configmaps");
        refusals -= u32::from(refused);
        refused.then(|| crate::watching::refusal(500, "InternalError"))
    });
    let (controller, mut runs) = telling(calm);
    let (sender, mut gone) = mpsc::unbounded_channel();
    let controller = controller.owns::<Secret>().gone(move |key| sender.send(key.to_string()).unwrap());
    let _running = world.run(&Operator::new("early").controller(controller)).await;
    pass(Duration::from_secs(60)).await;
    assert_eq!(ran(&mut runs).await, ["ada: listed"]);
    assert!(gone.try_recv().is_err(), "it was there all the time");
    world.delete::<ConfigMap>("ada").await;
    assert_eq!(gone.recv().await.unwrap(), "default/ada");
}
