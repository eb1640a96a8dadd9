//! What is promised of the cache and of events where the server does not play along: kinds that are not there yet, watches and
//! requests that are silent.

use crate::{
    reading::once,
    world::{World, config_map, pass},
};
use flyball::{Action, Context, Controller, Event, Operator, Result, metrics::Format};
use flyball_test::Answer;
use http::Request;
use k8s_openapi::{
    api::core::v1::{ConfigMap, Secret},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{Api, CustomResource, CustomResourceExt, ResourceExt, api::PostParams, client::Body};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::{sync::Arc, time::Duration};
use tokio::{sync::mpsc, time::Instant};

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "example.dev", version = "v1", kind = "Clock", namespaced)]
struct ClockSpec {
    hour: u32,
}

fn secret(name: &str) -> Secret {
    serde_json::from_value(json!({ "metadata": { "name": name } })).unwrap()
}

/// Never answers requests of that path and query.
pub fn silence(request: &Request<Body>, path: &str, query: &str) -> Option<Answer> {
    let uri = request.uri();
    let meant = uri.path().ends_with(path) && uri.query().unwrap_or_default().contains(query);
    meant.then(Answer::silence)
}

/// A controller that tells the names of what it reconciles, except what the API server brings along.
fn telling<K>() -> (Controller<K>, mpsc::UnboundedReceiver<String>)
where
    K: crate::world::Object,
{
    let (sender, names) = mpsc::unbounded_channel();
    let controller = Controller::new(move |object: Arc<K>, _: Context| {
        let sender = sender.clone();
        async move {
            if object.name_any() != "kube-root-ca.crt" {
                sender.send(object.name_any())?;
            }
            Ok(Action::await_change())
        }
    });
    (controller, names)
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_not_installed_delays_no_other_is_told_everywhere_and_seen_once_it_is() {
    let world = World::start().await;
    let (clocks, mut ticks) = telling::<Clock>();
    let (maps, mut names) = telling::<ConfigMap>();
    let running = world.run(&Operator::new("early").controller(clocks).controller(maps)).await;
    let started = Instant::now();
    world.create(config_map("ada", "a", "1")).await;
    assert_eq!(names.recv().await.unwrap(), "ada");
    assert!(started.elapsed() < Duration::from_millis(500), "{:?}", started.elapsed());
    pass(Duration::from_secs(600)).await;

    let state = || running.cache().watches().into_iter().find(|watch| watch.kind == "Clock").unwrap();
    assert!(
        !state().synced && state().last_error.is_some() && state().failing_since.is_some(),
        "{:?}",
        state()
    );
    let ready = running.admin(&flyball::Config::default());
    let readyz = |ready: axum::Router| async move {
        let request = Request::get("/readyz").body(axum::body::Body::empty()).unwrap();
        let answer = tower::ServiceExt::oneshot(ready, request).await.unwrap();
        let bytes = axum::body::to_bytes(answer.into_body(), usize::MAX).await.unwrap();
        String::from_utf8(bytes.into()).unwrap()
    };
    assert!(readyz(ready.clone()).await.contains("[-]cache-clocks failed"), "{}", readyz(ready).await);
    let synced = |value: &str| running.metrics().text(Format::Prometheus).contains(value);
    assert!(synced("flyball_cache_synced{kind=\"Clock\"} 0.0"));
    let asked = world.requests().iter().filter(|request| request.contains("/clocks")).count();
    assert!(asked < 60, "{asked} requests in ten minutes");

    let definitions: Api<CustomResourceDefinition> = Api::all(world.client.clone());
    definitions.create(&PostParams::default(), &Clock::crd()).await.unwrap();
    world.create(Clock::new("noon", ClockSpec { hour: 12 })).await;
    assert_eq!(ticks.recv().await.unwrap(), "noon");
    assert!(state().synced && synced("flyball_cache_synced{kind=\"Clock\"} 1.0"));
    let lag = "flyball_event_to_reconcile_seconds_count{controller=\"configmap\"} ";
    assert!(synced(lag) && !synced(&format!("{lag}0")), "from the news to the reconcile is measured");
}

#[tokio::test(start_paused = true)]
async fn own_writes_are_read_while_a_watch_is_silent_and_those_of_others_are_not_waited_for() {
    let world = World::start().await;
    world.break_with(|request| silence(request, "/secrets", "watch="));
    let other = world.clone();
    let (names, took) = once(&world, Controller::reads::<Secret>, move |ctx| {
        let other = other.clone();
        async move {
            ctx.list::<Secret>().await?;
            other.create(secret("theirs")).await;
            let began = Instant::now();
            let secrets: Api<Secret> = Api::namespaced(ctx.client(), "default");
            secrets.create(&PostParams::default(), &secret("ours")).await?;
            let read = ctx.list::<Secret>().await?;
            let names: Vec<String> = read.iter().map(|secret| secret.name_any()).collect();
            Ok((names, began.elapsed()))
        }
    })
    .await;
    assert_eq!(names, ["ours"]);
    assert!(took < Duration::from_millis(50), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn the_live_api_is_read_where_the_author_says_so() {
    let world = World::start().await;
    world.create(secret("bob")).await;
    let found = once(
        &world,
        |controller| controller,
        async |ctx| {
            let secrets: Api<Secret> = Api::namespaced(ctx.client(), "default");
            Ok((ctx.get::<Secret>("bob").await.is_err(), secrets.get_opt("bob").await?.is_some()))
        },
    )
    .await;
    assert_eq!(found, (true, true), "not cached, but there");
    let reads = world.requests().iter().filter(|request| request.contains("/secrets")).count();
    assert_eq!(reads, 1, "and nothing is watched for it");
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_comes_late_sees_what_is_cached_already_and_lists_nothing() {
    let world = World::start().await;
    for name in ["ada", "bob"] {
        world.create(config_map(name, "a", "1")).await;
    }
    let (late, mut names) = telling::<ConfigMap>();
    let start = move |map: Arc<ConfigMap>, ctx: Context| {
        let late = late.clone();
        async move {
            if map.name_any() == "start" {
                // It runs for as long as this is kept.
                std::mem::forget(ctx.control(late.named("late"))?);
            }
            Ok(Action::await_change())
        }
    };
    let _running = world.run(&Operator::new("early").controller(Controller::new(start))).await;
    pass(Duration::from_secs(1)).await;
    world.create(config_map("start", "a", "1")).await;
    pass(Duration::from_secs(60)).await;
    let mut seen: Vec<_> = std::iter::from_fn(|| names.try_recv().ok()).collect();
    seen.sort();
    assert_eq!(seen, ["ada", "bob", "start"]);
    let lists = world.requests().iter().filter(|request| request.contains("/configmaps?&limit")).count();
    assert_eq!(lists, 1);
}

#[tokio::test(start_paused = true)]
async fn neither_a_reconcile_nor_a_stop_waits_for_events_for_ever() {
    let world = World::start().await;
    world.break_with(|request| silence(request, "/events", ""));
    let (sender, mut took) = mpsc::unbounded_channel();
    let tell = move |_: Arc<Secret>, ctx: Context| {
        let sender = sender.clone();
        async move {
            let began = Instant::now();
            for count in 0..5_000 {
                ctx.event(Event::normal("Told", format!("for the {count}th time")));
            }
            sender.send(began.elapsed())?;
            Result::Ok(Action::await_change())
        }
    };
    let running = world.run(&Operator::new("teller").controller(Controller::new(tell))).await;
    world.create(secret("ada")).await;
    assert_eq!(took.recv().await.unwrap(), Duration::ZERO);
    assert!(
        !running.events().query(&Default::default()).is_empty(),
        "they are remembered all the same"
    );
    let stopped = Instant::now();
    running.stop().await;
    let asked: Vec<String> = world.writes();
    assert_eq!(
        (stopped.elapsed().as_secs(), asked.len()),
        (10, 1),
        "nor does a stop, for ever: {asked:?}"
    );
}
