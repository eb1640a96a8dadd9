//! What follows from errors, panics and slowness: for the object that has them, and for no other.

use crate::world::{World, config_map, pass};
use flyball::{Action, Context, Controller, Error, Operator, Result};
use flyball_test::Answer;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt;
use serde_json::json;
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{sync::mpsc, time::Instant};

/// Reconciles ConfigMaps by `reconcile`, and tells the name and time of every run.
async fn observe<Fut>(
    world: &World,
    reconcile: impl Fn(Arc<ConfigMap>) -> Fut + Send + Sync + 'static,
) -> (flyball::Running, mpsc::UnboundedReceiver<(String, Instant)>)
where
    Fut: Future<Output = Result> + Send + 'static,
{
    let (sender, runs) = mpsc::unbounded_channel();
    let reconcile = Arc::new(reconcile);
    let work = move |map: Arc<ConfigMap>, _: Context| {
        let (sender, reconcile) = (sender.clone(), reconcile.clone());
        async move {
            if map.namespace().as_deref() != Some("default") || map.name_any() == "kube-root-ca.crt" {
                return Ok(Action::await_change());
            }
            sender.send((map.name_any(), Instant::now()))?;
            reconcile(map).await
        }
    };
    (world.run(&Operator::new("observer").controller(Controller::new(work))).await, runs)
}

#[tokio::test(start_paused = true)]
async fn an_error_is_retried_after_delays_that_double() {
    let world = World::start().await;
    let (_running, mut runs) = observe(&world, async |_| Err(Error::from("no luck"))).await;
    world.create(config_map("ada", "a", "1")).await;

    let (_, mut before) = runs.recv().await.unwrap();
    for expected in [
        0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 300.0, 300.0,
    ] {
        let (_, now) = runs.recv().await.unwrap();
        let waited = (now - before).as_secs_f64();
        assert!((expected * 0.89..expected * 1.01 + 0.002).contains(&waited), "{waited} is not {expected}");
        before = now;
    }
}

#[tokio::test(start_paused = true)]
async fn a_success_resets_the_delay() {
    let world = World::start().await;
    let count = AtomicUsize::new(0);
    let (_running, mut runs) = observe(&world, move |_| {
        let failing = count.fetch_add(1, Ordering::Relaxed) != 4;
        async move {
            if failing {
                Err(Error::from("no luck"))
            } else {
                Ok(Action::requeue_after(Duration::from_secs(60)))
            }
        }
    })
    .await;
    world.create(config_map("ada", "a", "1")).await;

    let mut times = Vec::new();
    for _ in 0..7 {
        times.push(runs.recv().await.unwrap().1);
    }
    let waited: Vec<_> = times.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect();
    assert!(waited[3] > 0.7, "{waited:?}");
    assert!((59.9..60.1).contains(&waited[4]), "{waited:?}");
    assert!(waited[5] < 0.11, "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn an_author_may_say_when_to_retry() {
    let world = World::start().await;
    let later = Duration::from_secs(42);
    let (_running, mut runs) = observe(&world, move |_| async move { Err(Error::retry_after(later, "busy")) }).await;
    world.create(config_map("ada", "a", "1")).await;
    let (_, first) = runs.recv().await.unwrap();
    let (_, second) = runs.recv().await.unwrap();
    assert_eq!((second - first).as_secs(), 42);
}

#[tokio::test(start_paused = true)]
async fn a_permanent_error_waits_for_a_change() {
    let world = World::start().await;
    let (_running, mut runs) = observe(&world, async |_| Err(Error::permanent("no such region"))).await;
    world.create(config_map("ada", "a", "1")).await;
    runs.recv().await.unwrap();
    pass(Duration::from_secs(86_400)).await;
    assert!(runs.try_recv().is_err());

    world.merge::<ConfigMap>("ada", json!({ "data": { "a": "2" } })).await;
    runs.recv().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_an_error_like_any_other() {
    let world = World::start().await;
    let (_running, mut runs) = observe(&world, async |map| match map.name_any().as_str() {
        "ada" => panic!("divided by zero"),
        _ => Ok(Action::await_change()),
    })
    .await;
    world.create(config_map("ada", "a", "1")).await;
    assert_eq!(runs.recv().await.unwrap().0, "ada");
    assert_eq!(runs.recv().await.unwrap().0, "ada");
    world.create(config_map("bob", "a", "1")).await;
    while runs.recv().await.unwrap().0 != "bob" {}
}

#[tokio::test(start_paused = true)]
async fn one_object_that_hangs_delays_no_other() {
    let world = World::start().await;
    let (_running, mut runs) = observe(&world, async |map| {
        if map.name_any() == "ada" {
            std::future::pending::<()>().await;
        }
        Ok(Action::await_change())
    })
    .await;
    world.create(config_map("ada", "a", "1")).await;
    assert_eq!(runs.recv().await.unwrap().0, "ada");
    let started = Instant::now();
    for name in ["bob", "cyd"] {
        world.create(config_map(name, "a", "1")).await;
        assert_eq!(runs.recv().await.unwrap().0, name);
    }
    assert!(started.elapsed() < Duration::from_millis(100));
}

#[tokio::test(start_paused = true)]
async fn an_object_is_never_reconciled_twice_at_once_and_not_once_per_change() {
    let world = World::start().await;
    let (inside, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(0)));
    let (count, peak) = (inside.clone(), most.clone());
    let (_running, mut runs) = observe(&world, move |_| {
        let (count, peak) = (count.clone(), peak.clone());
        async move {
            let now = count.fetch_add(1, Ordering::SeqCst) + 1;
            let before = *peak.lock().unwrap();
            *peak.lock().unwrap() = now.max(before);
            pass(Duration::from_secs(10)).await;
            count.fetch_sub(1, Ordering::SeqCst);
            Ok(Action::await_change())
        }
    })
    .await;
    world.create(config_map("ada", "a", "0")).await;
    runs.recv().await.unwrap();
    for value in 1..20 {
        world.merge::<ConfigMap>("ada", json!({ "data": { "a": value.to_string() } })).await;
    }
    pass(Duration::from_secs(60)).await;
    let mut again = 0;
    while runs.try_recv().is_ok() {
        again += 1;
    }
    assert_eq!((*most.lock().unwrap(), again), (1, 1));
}

/// An error of an author who has not thought of everything.
#[derive(Debug)]
struct Unspeakable;

impl std::fmt::Display for Unspeakable {
    fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        panic!("no words")
    }
}

impl std::error::Error for Unspeakable {}

#[tokio::test(start_paused = true)]
async fn an_error_that_cannot_be_told_is_retried_like_any_other() {
    let world = World::start().await;
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = runs.clone();
    let fail = move |map: Arc<ConfigMap>, _: Context| {
        let ours = map.name_any() == "ada";
        let runs = counted.fetch_add(usize::from(ours), Ordering::SeqCst);
        async move {
            match ours {
                true if runs < 1_000 => Err(Unspeakable.into()),
                true => std::future::pending().await,
                false => Ok(Action::await_change()),
            }
        }
    };
    let running = world.run(&Operator::new("mute").controller(Controller::new(fail))).await;
    world.create(config_map("ada", "a", "1")).await;
    pass(Duration::from_secs(60)).await;
    let runs = runs.load(Ordering::SeqCst);
    assert!((8..=12).contains(&runs), "{runs} runs in a minute");
    let failing = running.queues(1).remove(0).failing.remove(0);
    assert_eq!(failing.error.as_deref(), Some("the error's text panicked: no words"));
}

#[tokio::test(start_paused = true)]
async fn a_write_that_is_never_answered_is_retried() {
    let world = World::start().await;
    let apply = async |map: Arc<ConfigMap>, ctx: Context| {
        if map.name_any() == "ada" {
            let data = Some([("of".to_owned(), "ada".into())].into());
            ctx.apply(Secret { string_data: data, ..Default::default() }).await?;
        }
        Ok(Action::await_change())
    };
    let operator = Operator::new("applier").controller(Controller::new(apply).owns::<Secret>());
    let _running = world.run(&operator).await;
    let unanswered = Arc::new(AtomicUsize::new(0));
    let count = unanswered.clone();
    world.break_with(move |request| {
        let is_write = request.method() == "PATCH" && request.uri().path().ends_with("/secrets/ada");
        let hangs = is_write && count.fetch_add(1, Ordering::SeqCst) == 0;
        hangs.then(Answer::silence)
    });
    let started = Instant::now();
    world.create(config_map("ada", "a", "1")).await;
    world.until("ada", |_: &Secret| true).await;
    assert_eq!(unanswered.load(Ordering::SeqCst), 2);
    assert!(started.elapsed() < Duration::from_secs(70), "{:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_that_never_ends_is_cancelled_and_retried() {
    let world = World::start().await;
    let (_running, mut runs) = observe(&world, async |_| std::future::pending().await).await;
    world.create(config_map("ada", "a", "1")).await;
    let (_, first) = runs.recv().await.unwrap();
    let (_, second) = runs.recv().await.unwrap();
    assert_eq!((second - first).as_secs(), 600);
}
