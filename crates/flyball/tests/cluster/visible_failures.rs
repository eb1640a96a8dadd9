//! What a user sees of a failed reconcile: an event, the condition `Ready`, and what the author's hook writes.

use crate::world::{World, pass};
use flyball::{Action, Backoff, Context, Controller, Error, Key, Operator, Reconciler, Result};
use k8s_openapi::{
    api::{core::v1::ConfigMap, events::v1::Event},
    apimachinery::pkg::apis::meta::v1::Condition,
};
use kube::{CustomResource, CustomResourceExt, ResourceExt, api::ListParams};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "example.dev",
    version = "v1",
    kind = "Note",
    namespaced,
    status = "NoteStatus"
)]
struct NoteSpec {
    key: String,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
struct NoteStatus {
    #[serde(default)]
    written: Option<String>,
    #[serde(default)]
    conditions: Vec<Condition>,
}

async fn write(note: Arc<Note>, ctx: Context) -> Result {
    let data = Some([(note.spec.key.clone(), "x".to_owned())].into());
    ctx.apply(ConfigMap { data, ..Default::default() }).await?;
    ctx.set_status(json!({ "written": note.spec.key })).await?;
    Ok(Action::await_change())
}

fn note(key: &str) -> Note {
    Note::new("ada", NoteSpec { key: key.into() })
}

fn ready(note: &Note) -> Option<(&str, &str, &str)> {
    let conditions = &note.status.as_ref()?.conditions;
    let ready = conditions.iter().find(|condition| condition.type_ == "Ready")?;
    Some((&ready.status, &ready.reason, &ready.message))
}

async fn warnings(world: &World) -> Vec<(String, String)> {
    let events = world.api::<Event>().list(&ListParams::default()).await.unwrap();
    let warnings = events.items.into_iter().filter(|event| event.type_.as_deref() == Some("Warning"));
    warnings.map(|event| (event.reason.unwrap(), event.note.unwrap())).collect()
}

#[tokio::test(start_paused = true)]
async fn a_refused_child_is_an_event_and_a_condition_until_it_is_accepted() {
    let world = World::start().await;
    let controller = Controller::new(write).owns::<ConfigMap>().ready_condition();
    let _running = world.run(&Operator::new("writer").crd(Note::crd()).controller(controller)).await;
    world.create(note("a b")).await;

    let failed = world.until("ada", |note: &Note| ready(note).is_some()).await;
    let (status, reason, message) = ready(&failed).unwrap();
    assert_eq!((status, reason), ("False", "ReconcileFailed"));
    assert!(message.contains("apply ConfigMap default/ada") && message.contains("a b"), "{message}");
    pass(Duration::from_secs(1)).await;
    let warned = warnings(&world).await;
    assert_eq!(warned[0].0, "ReconcileFailed");
    assert!(warned[0].1.contains("apply ConfigMap default/ada"), "{warned:?}");

    world.merge::<Note>("ada", json!({ "spec": { "key": "ab" } })).await;
    let mended = world.until("ada", |note: &Note| ready(note).is_some_and(|ready| ready.0 == "True")).await;
    assert_eq!(ready(&mended).unwrap(), ("True", "Reconciled", ""));
    assert_eq!(mended.status.unwrap().written.as_deref(), Some("ab"));
    pass(Duration::from_secs(60)).await;
    world.writes();
    pass(Duration::from_secs(60)).await;
    assert_eq!(world.writes(), [""; 0], "nothing is written once all is as it should be");
}

#[tokio::test(start_paused = true)]
async fn an_error_whose_text_always_differs_keeps_its_backoff() {
    let world = World::start().await;
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = runs.clone();
    let fail = move |_: Arc<Note>, _: Context| {
        let run = counted.fetch_add(1, Ordering::SeqCst);
        async move {
            if run < 1_000 {
                Err(Error::from(format!("attempt {run}")))
            } else {
                std::future::pending().await
            }
        }
    };
    let controller = Controller::new(fail).ready_condition();
    let _running = world.run(&Operator::new("failer").crd(Note::crd()).controller(controller)).await;
    world.create(note("a")).await;
    pass(Duration::from_secs(60)).await;
    let runs = runs.load(Ordering::SeqCst);
    assert!((8..=12).contains(&runs), "{runs} runs in a minute");
}

#[tokio::test(start_paused = true)]
async fn after_the_last_retry_the_object_says_so() {
    let world = World::start().await;
    let fail = async |_: Arc<Note>, _: Context| -> Result { Err(Error::from("no luck")) };
    let report = async |_: Arc<Note>, error: Arc<Error>, ctx: Context| {
        let written = format!("{error}, gave up: {}", ctx.gave_up());
        ctx.set_status(json!({ "written": written })).await
    };
    let backoff = Backoff { max_retries: Some(2), ..Backoff::default() };
    let controller = Controller::new(fail).backoff(backoff).ready_condition().on_error(report);
    let _running = world.run(&Operator::new("failer").crd(Note::crd()).controller(controller)).await;
    world.create(note("a")).await;

    let written = |note: &Note| note.status.as_ref().and_then(|status| status.written.clone());
    let first = world.until("ada", |note: &Note| written(note).is_some()).await;
    assert_eq!(written(&first).unwrap(), "no luck, gave up: false");
    let gave_up = |note: &Note| ready(note).is_some_and(|ready| ready.1 == "RetriesExhausted");
    let last = world
        .until("ada", |note: &Note| gave_up(note) && written(note).unwrap().ends_with("true"))
        .await;
    assert_eq!(ready(&last).unwrap().2, "gave up after 3 failures, until the object changes: no luck");
}

#[tokio::test(start_paused = true)]
async fn a_condition_that_the_kind_cannot_keep_is_refused_at_the_start() {
    #[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
    #[kube(group = "example.dev", version = "v1", kind = "Stone", namespaced)]
    struct StoneSpec {}
    let world = World::start().await;
    let live = async |_: Arc<Stone>, _: Context| Ok(Action::await_change());
    let operator = Operator::new("stones").crd(Stone::crd());
    let operator = operator.controller(Controller::new(live).ready_condition());
    let refusal = operator.start(world.client.clone()).await.unwrap_err().to_string();
    assert!(refusal.contains("the status of Stone has no list `conditions`"), "{refusal}");
}

/// A reconciler with state and every method of its own.
#[derive(Default)]
struct Recorder {
    calls: Arc<Mutex<Vec<String>>>,
}

impl Recorder {
    fn record(&self, call: String) {
        self.calls.lock().unwrap().push(call);
    }
}

impl Reconciler<Note> for Recorder {
    const FINALIZER: bool = true;

    async fn reconcile(&self, note: Arc<Note>, _: Context) -> Result {
        self.record(format!("reconcile {}", note.name_any()));
        match note.spec.key.as_str() {
            "bad" => Err(Error::permanent("a bad key")),
            _ => Ok(Action::await_change()),
        }
    }

    async fn cleanup(&self, note: Arc<Note>, _: Context) -> Result<()> {
        self.record(format!("cleanup {}", note.name_any()));
        Ok(())
    }

    async fn terminating(&self, note: Arc<Note>, _: Context) -> Result {
        self.record(format!("terminating {}", note.name_any()));
        Ok(Action::await_change())
    }

    fn gone(&self, key: &Key) {
        self.record(format!("gone {}", key.name()));
    }

    async fn on_error(&self, _: Arc<Note>, error: Arc<Error>, ctx: Context) -> Result<()> {
        self.record(format!("on_error {error}, gave up: {}", ctx.gave_up()));
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_controller_with_state_is_one_struct() {
    let world = World::start().await;
    let recorder = Recorder::default();
    let calls = recorder.calls.clone();
    let operator = Operator::new("recorder").crd(Note::crd()).controller(Controller::new(recorder));
    let _running = world.run(&operator).await;
    let mut held = note("bad");
    held.metadata.finalizers = Some(vec!["example.dev/other".into()]);
    world.create(held).await;
    pass(Duration::from_secs(1)).await;
    world.delete::<Note>("ada").await;
    pass(Duration::from_secs(1)).await;
    world.merge::<Note>("ada", json!({ "metadata": { "finalizers": null } })).await;
    world.until_gone::<Note>("ada").await;
    pass(Duration::from_secs(1)).await;

    let mut calls = calls.lock().unwrap().clone();
    calls.dedup();
    let expected = [
        "reconcile ada",
        "on_error a bad key, gave up: true",
        "cleanup ada",
        "terminating ada",
        "gone ada",
    ];
    let order: Vec<_> = expected.iter().map(|call| calls.iter().position(|made| made == call)).collect();
    assert!(order.iter().all(Option::is_some) && order.is_sorted(), "{calls:?}");
}
