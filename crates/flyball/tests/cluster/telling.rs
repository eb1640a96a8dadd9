//! What becomes of events: how they are published, counted, limited and remembered.

use crate::world::{World, config_map, pass};
use flyball::{
    Action, Context, Controller, Event, EventApi, EventFilter, EventPolicy, Key, Operator, Result, Severity,
};
use flyball_test::Answer;
use futures::StreamExt;
use k8s_openapi::api::{
    core::v1::{ConfigMap, Event as CoreEvent},
    events::v1::Event as Published,
};
use kube::api::ListParams;
use std::{sync::Arc, time::Duration};

/// Publishes one event of each severity.
async fn grade(_: Arc<ConfigMap>, ctx: Context) -> Result {
    for severity in [Severity::Info, Severity::Warning, Severity::Error, Severity::Critical] {
        ctx.event(Event::new(severity, format!("Was{severity:?}"), "…"));
    }
    Ok(Action::await_change())
}

/// Publishes the same event as often as its object says, at once.
async fn repeat(map: Arc<ConfigMap>, ctx: Context) -> Result {
    for _ in 0..map.data.as_ref().unwrap()["times"].parse::<u32>()? {
        ctx.event(Event::warning("Again", "and again"));
    }
    Ok(Action::await_change())
}

fn repeater(api: EventApi) -> Operator {
    let policy = EventPolicy { api, ..EventPolicy::default() };
    Operator::new("repeater").controller(Controller::new(repeat)).events(policy)
}

async fn published(world: &World, selector: &str) -> Vec<Published> {
    let events = world.api::<Published>().list(&ListParams::default().labels(selector)).await;
    events.unwrap().items
}

fn writes_of_events(world: &World) -> usize {
    world.writes().iter().filter(|write| write.contains("/events")).count()
}

#[tokio::test(start_paused = true)]
async fn severities_become_types_and_labels_and_the_history_knows_them() {
    let world = World::start().await;
    let running = world.run(&Operator::new("grader").controller(Controller::new(grade))).await;
    world.create(config_map("ada", "a", "1")).await;
    pass(Duration::from_secs(1)).await;

    let mut types: Vec<_> = published(&world, "")
        .await
        .into_iter()
        .map(|event| (event.reason.unwrap(), event.type_.unwrap()))
        .collect();
    types.sort();
    let expected = [
        ("WasCritical", "Warning"),
        ("WasError", "Warning"),
        ("WasInfo", "Normal"),
        ("WasWarning", "Warning"),
    ];
    assert_eq!(types, expected.map(|(reason, r#type)| (reason.to_owned(), r#type.to_owned())));
    let critical = published(&world, "flyball.dev/severity=critical").await;
    assert_eq!(critical.len(), 1);
    let filter = EventFilter::new().severity(Severity::Error).object(Key::namespaced("default", "ada"));
    let remembered: Vec<_> = running.events().query(&filter).into_iter().map(|record| record.severity).collect();
    assert_eq!(remembered, [Severity::Error, Severity::Critical]);
}

#[tokio::test(start_paused = true)]
async fn repeats_over_the_limit_cost_no_write_each_and_are_counted_to_the_last() {
    let world = World::start().await;
    let running = world.run(&repeater(EventApi::Events)).await;
    let mut followed = Box::pin(running.events().stream());
    world.create(config_map("ada", "times", "400")).await;
    pass(Duration::from_secs(1)).await;
    assert_eq!(writes_of_events(&world), 25);
    assert_eq!(published(&world, "").await[0].series.as_ref().unwrap().count, 25);

    pass(Duration::from_secs(60)).await;
    assert_eq!(writes_of_events(&world), 1);
    assert_eq!(published(&world, "").await[0].series.as_ref().unwrap().count, 400);
    let record = running.events().query(&EventFilter::new().reason("Again")).remove(0);
    assert_eq!(record.count, 400);
    assert_eq!(followed.next().await.unwrap().count, 1);
}

#[tokio::test(start_paused = true)]
async fn counts_that_wait_are_published_when_the_operator_stops() {
    let world = World::start().await;
    let running = world.run(&repeater(EventApi::Events)).await;
    world.create(config_map("ada", "times", "40")).await;
    pass(Duration::from_secs(1)).await;
    running.stop().await;
    assert_eq!(published(&world, "").await[0].series.as_ref().unwrap().count, 40);
}

#[tokio::test(start_paused = true)]
async fn the_core_api_counts_and_both_apis_show_the_same_event() {
    let world = World::start().await;
    let _running = world.run(&repeater(EventApi::Core)).await;
    world.create(config_map("ada", "times", "3")).await;
    pass(Duration::from_secs(1)).await;
    assert!(
        world
            .requests()
            .iter()
            .any(|request| request.starts_with("POST /api/v1/namespaces/default/events"))
    );
    let events = world.api::<CoreEvent>().list(&ListParams::default()).await.unwrap().items;
    let [event] = &events[..] else { panic!("{events:?}") };
    assert_eq!((event.count, event.message.as_deref()), (Some(3), Some("and again")));
    assert_eq!(event.source.as_ref().unwrap().component.as_deref(), Some("repeater"));
    assert_eq!(event.involved_object.name.as_deref(), Some("ada"));
    assert!(event.first_timestamp.is_some() && event.last_timestamp.is_some());
    assert_eq!(published(&world, "").await[0].note.as_deref(), Some("and again"));
}

#[tokio::test(start_paused = true)]
async fn an_event_outlives_a_server_that_fails_for_a_while() {
    let world = World::start().await;
    let mut failures = 3;
    world.break_with(move |request| {
        let fails = failures > 0 && request.uri().path().ends_with("/events") && request.method() == "POST";
        failures -= i32::from(fails);
        fails.then(|| Answer::refusal(503, "down"))
    });
    let _running = world.run(&repeater(EventApi::Events)).await;
    world.create(config_map("ada", "times", "1")).await;
    pass(Duration::from_secs(60)).await;
    assert_eq!(published(&world, "").await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn words_and_notes_that_are_too_long_are_shortened() {
    async fn rant(_: Arc<ConfigMap>, ctx: Context) -> Result {
        ctx.event(Event::warning("Ö".repeat(200), "ö".repeat(2_000)).action("A".repeat(200)));
        Ok(Action::await_change())
    }
    let world = World::start().await;
    let _running = world.run(&Operator::new("ranter").controller(Controller::new(rant))).await;
    world.create(config_map("ada", "a", "1")).await;
    pass(Duration::from_secs(1)).await;
    let event = published(&world, "").await.pop().unwrap();
    let lengths = [event.reason, event.note, event.action].map(|text| text.unwrap().len());
    assert_eq!(lengths, [128, 1_024, 128]);
}
