//! What happens to objects that are being deleted.

use crate::world::{World, config_map, pass};
use flyball::{Action, Context, Controller, Error, Operator};
use k8s_openapi::api::core::v1::ConfigMap;
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

type Told = mpsc::UnboundedSender<String>;

/// A controller that tells of its reconciles, with the finalizers that each object has.
fn telling(sender: &Told) -> Controller<ConfigMap> {
    let sender = sender.clone();
    Controller::new(move |map: Arc<ConfigMap>, _: Context| {
        let sender = sender.clone();
        async move {
            sender.send(format!("reconcile {} {:?}", map.name_any(), map.finalizers()))?;
            Ok(Action::await_change())
        }
    })
}

#[tokio::test(start_paused = true)]
async fn a_cleanup_runs_before_the_object_is_gone_and_is_promised_before_the_first_reconcile() {
    let world = World::start().await;
    let (sender, mut told) = mpsc::unbounded_channel();
    let cleaned = sender.clone();
    let cleanup = move |map: Arc<ConfigMap>, _: Context| {
        let cleaned = cleaned.clone();
        async move { Ok(cleaned.send(format!("clean up {}", map.name_any()))?) }
    };
    let _running = world.run(&Operator::new("cleaner").controller(telling(&sender).cleanup(cleanup))).await;
    world.create(config_map("ada", "a", "1")).await;
    assert_eq!(told.recv().await.unwrap(), r#"reconcile ada ["flyball.dev/cleaner"]"#);

    world.delete::<ConfigMap>("ada").await;
    world.until_gone::<ConfigMap>("ada").await;
    let mut last = String::new();
    while let Ok(next) = told.try_recv() {
        last = next;
    }
    assert_eq!(last, "clean up ada");
}

#[tokio::test(start_paused = true)]
async fn a_cleanup_that_fails_is_retried_and_holds_the_object_until_it_succeeds() {
    let world = World::start().await;
    let (sender, _told) = mpsc::unbounded_channel();
    let attempts = Arc::new(AtomicUsize::new(0));
    let made = attempts.clone();
    let cleanup = move |_: Arc<ConfigMap>, _: Context| {
        let attempt = made.fetch_add(1, Ordering::SeqCst);
        async move {
            if attempt < 3 {
                Err(Error::from("the disk is busy"))
            } else {
                Ok(())
            }
        }
    };
    let _running = world.run(&Operator::new("cleaner").controller(telling(&sender).cleanup(cleanup))).await;
    world.create(config_map("ada", "a", "1")).await;
    world.until("ada", |map: &ConfigMap| !map.finalizers().is_empty()).await;
    world.delete::<ConfigMap>("ada").await;
    world.until_gone::<ConfigMap>("ada").await;
    assert_eq!(attempts.load(Ordering::SeqCst), 4);
}

#[tokio::test(start_paused = true)]
async fn finalizers_of_others_are_kept() {
    let world = World::start().await;
    let (sender, _told) = mpsc::unbounded_channel();
    let cleanup = async |_: Arc<ConfigMap>, _: Context| Ok(());
    let _running = world.run(&Operator::new("cleaner").controller(telling(&sender).cleanup(cleanup))).await;
    let mut map = config_map("ada", "a", "1");
    map.metadata.finalizers = Some(vec!["example.dev/other".into()]);
    world.create(map).await;
    world.until("ada", |map: &ConfigMap| map.finalizers().len() == 2).await;
    world.delete::<ConfigMap>("ada").await;
    world.until("ada", |map: &ConfigMap| map.finalizers() == ["example.dev/other"]).await;
    pass(Duration::from_secs(60)).await;
    world.merge::<ConfigMap>("ada", json!({ "metadata": { "finalizers": null } })).await;
    world.until_gone::<ConfigMap>("ada").await;
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_being_deleted_is_not_reconciled_but_handed_to_terminating() {
    let world = World::start().await;
    let (sender, mut told) = mpsc::unbounded_channel();
    let left = sender.clone();
    let terminating = move |map: Arc<ConfigMap>, _: Context| {
        let left = left.clone();
        async move {
            left.send(format!("terminating {}", map.name_any()))?;
            Ok(Action::await_change())
        }
    };
    let mut map = config_map("ada", "a", "1");
    map.metadata.finalizers = Some(vec!["example.dev/other".into()]);
    world.create(map).await;
    world.delete::<ConfigMap>("ada").await;

    let plain = world.run(&Operator::new("plain").controller(telling(&sender))).await;
    pass(Duration::from_secs(1)).await;
    assert!(told.try_recv().is_err());
    plain.stop().await;

    let _running = world
        .run(&Operator::new("last").controller(telling(&sender).terminating(terminating)))
        .await;
    assert_eq!(told.recv().await.unwrap(), "terminating ada");
}

/// An operator with two cleanups that tell of themselves; the second fails until its object is gone.
fn stuck(sender: &Told, deadline: Option<Duration>) -> Operator {
    let telling_cleanup = |what: &'static str, succeeds: bool| {
        let sender = sender.clone();
        move |_: Arc<ConfigMap>, _: Context| {
            let sender = sender.clone();
            async move {
                sender.send(what.into())?;
                if succeeds {
                    Ok(())
                } else {
                    Err(Error::permanent("the account is closed"))
                }
            }
        }
    };
    let controller = Controller::new(async |_: Arc<ConfigMap>, _: Context| Ok(Action::await_change()))
        .cleanup(telling_cleanup("first", true))
        .cleanup(telling_cleanup("second", false));
    let controller = match deadline {
        Some(deadline) => controller.cleanup_deadline(deadline),
        None => controller,
    };
    Operator::new("cleaner").controller(controller)
}

async fn reasons(world: &World) -> Vec<String> {
    let events = world.api::<k8s_openapi::api::events::v1::Event>();
    let events = events.list(&kube::api::ListParams::default()).await.unwrap();
    events.into_iter().map(|event| event.reason.unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn cleanups_run_in_order_and_an_annotation_lets_an_object_go_without() {
    let world = World::start().await;
    let (sender, mut told) = mpsc::unbounded_channel();
    let _running = world.run(&stuck(&sender, None)).await;
    world.create(config_map("ada", "a", "1")).await;
    world.until("ada", |map: &ConfigMap| !map.finalizers().is_empty()).await;
    world.delete::<ConfigMap>("ada").await;
    assert_eq!(
        (told.recv().await.unwrap(), told.recv().await.unwrap()),
        ("first".into(), "second".into())
    );
    pass(Duration::from_secs(86_400)).await;
    world.until("ada", |map: &ConfigMap| !map.finalizers().is_empty()).await;

    let annotated = json!({ "metadata": { "annotations": { "flyball.dev/skip-cleanup": "true" } } });
    world.merge::<ConfigMap>("ada", annotated).await;
    world.until_gone::<ConfigMap>("ada").await;
    pass(Duration::from_secs(1)).await;
    assert_eq!(reasons(&world).await, ["ReconcileFailed", "CleanupSkipped"]);
}

#[tokio::test(start_paused = true)]
async fn an_object_whose_cleanup_does_not_succeed_goes_at_its_deadline_and_not_before() {
    let world = World::start().await;
    let (sender, mut told) = mpsc::unbounded_channel();
    let _running = world.run(&stuck(&sender, Some(Duration::from_secs(3_000)))).await;
    world.create(config_map("ada", "a", "1")).await;
    world.until("ada", |map: &ConfigMap| !map.finalizers().is_empty()).await;
    world.delete::<ConfigMap>("ada").await;
    pass(Duration::from_secs(2_990)).await;
    assert!(world.api::<ConfigMap>().get_opt("ada").await.unwrap().is_some());
    world.until_gone::<ConfigMap>("ada").await;
    pass(Duration::from_secs(1)).await;
    assert_eq!(reasons(&world).await, ["ReconcileFailed", "CleanupSkipped"]);
    assert_eq!(told.recv().await.unwrap(), "first");
}

#[tokio::test(start_paused = true)]
async fn a_deadline_holds_also_when_retries_are_over_or_far_apart() {
    for max_retries in [Some(3), None] {
        let world = World::start().await;
        let cleanup = async |_: Arc<ConfigMap>, _: Context| Err(Error::from("the disk is busy"));
        let backoff = flyball::Backoff {
            max: Duration::from_secs(600),
            max_retries,
            ..Default::default()
        };
        let controller = Controller::new(async |_: Arc<ConfigMap>, _: Context| Ok(Action::await_change()))
            .cleanup(cleanup)
            .backoff(backoff)
            .cleanup_deadline(Duration::from_secs(500));
        let _running = world.run(&Operator::new("cleaner").controller(controller)).await;
        world.create(config_map("ada", "a", "1")).await;
        world.until("ada", |map: &ConfigMap| !map.finalizers().is_empty()).await;
        world.delete::<ConfigMap>("ada").await;
        pass(Duration::from_secs(495)).await;
        assert!(world.api::<ConfigMap>().get_opt("ada").await.unwrap().is_some());
        pass(Duration::from_secs(10)).await;
        assert!(world.api::<ConfigMap>().get_opt("ada").await.unwrap().is_none(), "{max_retries:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cleanup_that_hangs_is_cancelled_at_its_deadline() {
    let world = World::start().await;
    let cleanup = async |_: Arc<ConfigMap>, _: Context| std::future::pending().await;
    let controller = Controller::new(async |_: Arc<ConfigMap>, _: Context| Ok(Action::await_change()))
        .cleanup(cleanup)
        .cleanup_deadline(Duration::from_secs(60));
    let _running = world.run(&Operator::new("cleaner").controller(controller)).await;
    world.create(config_map("ada", "a", "1")).await;
    world.until("ada", |map: &ConfigMap| !map.finalizers().is_empty()).await;
    world.delete::<ConfigMap>("ada").await;
    world.until_gone::<ConfigMap>("ada").await;
}
