//! Watches that fail, expire and miss things.

use crate::world::{World, config_map, pass};
use flyball::{Action, Context, Controller, Operator, Result};
use flyball_test::Answer;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt;
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tokio::sync::mpsc;

async fn mirror(_: Arc<ConfigMap>, ctx: Context) -> Result {
    ctx.apply(Secret::default()).await?;
    Ok(Action::await_change())
}

pub fn forbidden() -> Answer {
    refusal(403, "Forbidden")
}

pub fn too_many(seconds: u32) -> Answer {
    let mut status = status(429, "TooManyRequests");
    status["details"] = json!({ "retryAfterSeconds": seconds });
    Answer::json(429, &status)
}

pub fn refusal(code: u16, reason: &str) -> Answer {
    Answer::json(code, &status(code, reason))
}

fn status(code: u16, reason: &str) -> Value {
    json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "message": reason, "reason": reason, "code": code })
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_forbidden_delays_no_other() {
    let world = World::start().await;
    world.break_with(|request| {
        let secrets = request.method() == "GET" && request.uri().path().contains("secrets");
        secrets.then(|| refusal(403, "Forbidden"))
    });
    let (sender, mut reads) = mpsc::unbounded_channel();
    let reconcile = move |_: Arc<ConfigMap>, ctx: Context| {
        let sender = sender.clone();
        async move {
            let read = ctx.get::<Secret>("ada").await;
            sender.send(read.map(|_| ()).map_err(|error| error.to_string()))?;
            ctx.apply(Secret::default()).await?;
            Ok(Action::await_change())
        }
    };
    let controller = Controller::new(reconcile).owns::<Secret>().reads::<Secret>();
    let _running = world.run(&Operator::new("mirrorer").controller(controller)).await;
    let started = tokio::time::Instant::now();
    for name in ["ada", "bob"] {
        world.create(config_map(name, "a", "1")).await;
        let error = reads.recv().await.unwrap().unwrap_err();
        assert!(error.starts_with("Secret has not been listed yet: "), "{error}");
        assert!(error.contains("Forbidden"), "{error}");
        world.until(name, |_: &Secret| true).await;
    }
    assert!(started.elapsed() < Duration::from_millis(500), "{:?}", started.elapsed());

    world.mend();
    pass(Duration::from_secs(60)).await;
    while reads.try_recv().is_ok() {}
    world.merge::<ConfigMap>("ada", json!({ "data": { "a": "2" } })).await;
    assert_eq!(reads.recv().await.unwrap(), Ok(()));
    // The watch is back: what it owns triggers again.
    world.delete::<Secret>("bob").await;
    world.until("bob", |_: &Secret| true).await;
}

/// Lets the operator's next watches of Secrets end by `expire`, while a Secret is deleted; it comes back if that is noticed.
async fn comes_back_although_deleted_unseen(expire: impl Fn() -> Answer + Send + 'static) {
    let world = World::start().await;
    let operator = Operator::new("mirrorer").controller(Controller::new(mirror).owns::<Secret>());
    let cut = Arc::new(tokio::sync::Notify::new());
    let (first, ending) = (cut.clone(), std::sync::atomic::AtomicUsize::new(0));
    world.break_with(move |request| {
        let watch =
            request.uri().path().ends_with("/secrets") && request.uri().query().is_some_and(|q| q.contains("watch="));
        match watch.then(|| ending.fetch_add(1, std::sync::atomic::Ordering::SeqCst)) {
            // The first watch tells nothing, and ends when the test says so; the second finds its version expired.
            Some(0) => {
                let cut = first.clone();
                Some(Answer::silence_until(async move { cut.notified().await }))
            }
            Some(1) => Some(expire()),
            _ => None,
        }
    });
    let _running = world.run(&operator).await;
    world.create(config_map("ada", "a", "1")).await;
    let before = world.until("ada", |_: &Secret| true).await;
    pass(Duration::from_secs(5)).await;
    world.delete::<Secret>("ada").await;
    pass(Duration::from_secs(5)).await;
    cut.notify_one();
    let after = world.until("ada", |_: &Secret| true).await;
    assert_ne!(before.uid(), after.uid());
    let lists = world
        .requests()
        .iter()
        .filter(|request| request.starts_with("GET /api/v1/secrets?&limit"))
        .count();
    assert_eq!(lists, 2);
}

#[tokio::test(start_paused = true)]
async fn a_version_that_expired_by_http_is_listed_anew_and_deletions_are_not_missed() {
    comes_back_although_deleted_unseen(|| refusal(410, "Expired")).await;
}

#[tokio::test(start_paused = true)]
async fn a_version_that_expired_by_an_event_is_listed_anew_and_deletions_are_not_missed() {
    comes_back_although_deleted_unseen(|| {
        let event = json!({ "type": "ERROR", "object": status(410, "Expired") });
        Answer::text(200, format!("{event}\n"))
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_expires_every_watch_is_not_listed_in_a_circle() {
    let world = World::start().await;
    world.break_with(|request| {
        let watch = request.uri().query().is_some_and(|query| query.contains("watch="));
        watch.then(|| refusal(410, "Expired"))
    });
    let _running = world.run(&Operator::new("mirrorer").controller(Controller::new(mirror))).await;
    pass(Duration::from_secs(600)).await;
    let lists = world.requests().iter().filter(|request| request.contains("limit=")).count();
    assert!((20..40).contains(&lists), "{lists} lists in ten minutes");
}

#[tokio::test(start_paused = true)]
async fn a_list_that_hangs_is_given_up() {
    let world = World::start().await;
    let mut hung = false;
    world.break_with(move |request| {
        let hang = !std::mem::replace(&mut hung, true) && request.uri().path().ends_with("configmaps");
        hang.then(Answer::silence)
    });
    let operator = Operator::new("mirrorer").controller(Controller::new(mirror).needs::<Secret>(["patch"]));
    let _running = world.run(&operator).await;
    world.create(config_map("ada", "a", "1")).await;
    world.until("ada", |_: &Secret| true).await;
}

/// As where a server cannot decode what it has to send: whoever comes back with the same version hears the same.
#[tokio::test(start_paused = true)]
async fn a_watch_that_always_fails_from_one_version_is_listed_anew() {
    let world = World::start().await;
    let mut version = None;
    world.break_with(move |request| {
        let query = request.uri().query().filter(|query| query.contains("watch="))?;
        let from = query.split('&').find(|part| part.starts_with("resourceVersion="))?.to_owned();
        let first = request.uri().path().ends_with("/secrets") && *version.get_or_insert(from.clone()) == from;
        let event = json!({ "type": "ERROR", "object": status(500, "InternalError") });
        first.then(|| Answer::text(200, format!("{event}\n")))
    });
    let operator = Operator::new("mirrorer").controller(Controller::new(mirror).owns::<Secret>());
    let _running = world.run(&operator).await;
    world.create(config_map("ada", "a", "1")).await;
    world.until("ada", |_: &Secret| true).await;
    pass(Duration::from_secs(60)).await;
    world.delete::<Secret>("ada").await;
    world.until("ada", |_: &Secret| true).await;
}

/// How many lists and watches a server is asked for in ten minutes that ends every watch after a bookmark and `more`.
async fn asked_in_ten_minutes(more: Value) -> (usize, usize) {
    let world = World::start().await;
    let mut watches = 0;
    world.break_with(move |request| {
        let query = request.uri().query().filter(|query| query.contains("watch="))?;
        watches += 1;
        if watches > 2_000 {
            return Some(Answer::silence());
        }
        let from = query.split('&').find_map(|part| part.strip_prefix("resourceVersion="))?;
        let bookmark = json!({ "type": "BOOKMARK", "object": { "metadata": { "resourceVersion": from } } });
        let more = if more.is_null() {
            String::new()
        } else {
            format!("{more}\n")
        };
        Some(Answer::text(200, format!("{bookmark}\n{more}")))
    });
    let _running = world.run(&Operator::new("mirrorer").controller(Controller::new(mirror))).await;
    pass(Duration::from_secs(600)).await;
    let asked = |what: &str| world.requests().iter().filter(|request| request.contains(what)).count();
    (asked("limit="), asked("watch="))
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ends_every_watch_after_a_word_is_not_asked_in_a_circle() {
    let (lists, watches) = asked_in_ten_minutes(Value::Null).await;
    assert!(lists == 1 && (20..=601).contains(&watches), "{lists} lists, {watches} watches");
    let expired = json!({ "type": "ERROR", "object": status(410, "Expired") });
    let (lists, watches) = asked_in_ten_minutes(expired).await;
    assert!(lists < 40 && watches < 40, "{lists} lists, {watches} watches");
}
