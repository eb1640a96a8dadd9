//! Timers and daemons of single objects, and tasks that run only where the operator leads.

use crate::world::{World, config_map, pass};
use flyball::{
    Action, Backoff, Context, Controller, Election, Error, Operator, Result, TaskContext, Timer, metrics::Format,
};
use k8s_openapi::api::{
    core::v1::{ConfigMap, Secret},
    events::v1::Event as Published,
};
use kube::ResourceExt;
use serde_json::json;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::Instant;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

/// What happened, and when.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<(String, Instant)>>>);

impl Log {
    fn add(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push((line.into(), Instant::now()));
    }

    fn take(&self) -> Vec<(String, Instant)> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }

    /// Waits until so much has happened.
    async fn until(&self, count: usize) {
        for _ in 0..24 * 60 * 60 {
            if self.0.lock().unwrap().len() >= count {
                return;
            }
            pass(SECOND).await;
        }
        panic!("only this happened: {:?}", self.take());
    }

    fn lines(&self) -> Vec<String> {
        self.take().into_iter().map(|(line, _)| line).collect()
    }
}

async fn nothing(_: Arc<ConfigMap>, _: Context) -> Result {
    Ok(Action::await_change())
}

/// A controller of the ConfigMaps that carry the label `ours`.
fn controller() -> Controller<ConfigMap> {
    Controller::new(nothing).labels(kube::core::Selector::from_iter([("ours".to_owned(), "yes".to_owned())]))
}

fn ours(name: &str) -> ConfigMap {
    let object = json!({ "metadata": { "name": name, "labels": { "ours": "yes" } } });
    serde_json::from_value(object).unwrap()
}

/// Logs the name of each object that a timer runs for.
fn ticking(timer: Timer, log: &Log) -> Operator {
    let log = log.clone();
    Operator::new("ticking").controller(controller().timer(timer, move |map: Arc<ConfigMap>, _| {
        log.add(map.name_any());
        async { Ok(()) }
    }))
}

#[tokio::test(start_paused = true)]
async fn a_timer_runs_once_in_each_interval_for_each_object_and_not_for_all_at_once() {
    let (world, log) = (World::start().await, Log::default());
    for index in 0..20 {
        world.create(ours(&format!("map-{index:02}"))).await;
    }
    let running = world.run(&ticking(Timer::every(10 * MINUTE), &log)).await;
    pass(30 * MINUTE).await;
    let mut runs: BTreeMap<String, Vec<Instant>> = BTreeMap::new();
    let ran = log.take();
    for (name, at) in &ran {
        runs.entry(name.clone()).or_default().push(*at);
    }
    assert_eq!(runs.len(), 20);
    for (name, at) in &runs {
        assert!((2..=4).contains(&at.len()), "{name}: {at:?}");
        let apart = at[1] - at[0];
        assert!(apart.abs_diff(10 * MINUTE) < SECOND, "{name}: {apart:?}");
    }
    let near = |at: Instant| ran.iter().filter(|(_, other)| (at.max(*other) - at.min(*other)) < 5 * SECOND).count();
    let most = ran.iter().map(|(_, at)| near(*at));
    assert!(most.max().unwrap() <= 8, "they do not run together");
    let metrics = running.metrics().text(Format::Prometheus);
    let count = ran.len();
    let series = format!("controller_reconcile_total{{controller=\"configmap/timer\",result=\"success\"}} {count}");
    assert!(metrics.lines().any(|line| line == series), "{metrics}");
}

#[tokio::test(start_paused = true)]
async fn a_restart_neither_shifts_nor_repeats_the_runs_of_a_timer() {
    let (world, log) = (World::start().await, Log::default());
    for name in ["ada", "bob", "eve"] {
        world.create(ours(name)).await;
    }
    let operator = ticking(Timer::every(10 * MINUTE), &log);
    let start = Instant::now();
    let mut runs: BTreeMap<String, Vec<Duration>> = BTreeMap::new();
    for _ in 0..12 {
        let running = world.run(&operator).await;
        pass(5 * MINUTE).await;
        running.stop().await;
    }
    for (name, at) in log.take() {
        runs.entry(name).or_default().push(at - start);
    }
    assert_eq!(runs.len(), 3);
    for (name, at) in runs {
        assert!((5..=7).contains(&at.len()), "{name}: {at:?}");
        assert!(at.windows(2).all(|pair| pair[1] - pair[0] > 9 * MINUTE), "{name}: {at:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_timer_waits_until_an_object_is_old_enough_and_idle() {
    let (world, log) = (World::start().await, Log::default());
    let timer = Timer::every(10 * SECOND).initial_delay(5 * MINUTE).idle(2 * MINUTE);
    let _running = world.run(&ticking(timer, &log)).await;
    world.create(ours("ada")).await;
    let created = Instant::now();
    pass(298 * SECOND).await;
    assert_eq!(log.lines(), [""; 0], "too young");
    pass(MINUTE).await;
    let first = log.take().first().unwrap().1;
    assert!(first - created >= 298 * SECOND && first - created < 312 * SECOND, "{:?}", first - created);
    world.merge::<ConfigMap>("ada", json!({ "data": { "a": "1" } })).await;
    let changed = Instant::now();
    pass(3 * MINUTE).await;
    let next = log.take().first().unwrap().1;
    assert!(next - changed >= 2 * MINUTE && next - changed < 131 * SECOND, "{:?}", next - changed);
}

#[tokio::test(start_paused = true)]
async fn a_timer_that_fails_is_retried_and_shown_and_waits_for_the_next_interval_in_the_end() {
    let (world, log) = (World::start().await, Log::default());
    let runs = log.clone();
    let backoff = Backoff { initial: SECOND, max_retries: Some(2), ..Backoff::default() };
    let timer = Timer::every(60 * MINUTE).named("refresh");
    let controller = controller().backoff(backoff).timer(timer, move |_, ctx: Context| {
        runs.add(ctx.why().to_string());
        async { Err(Error::from("no connection")) }
    });
    let _running = world.run(&Operator::new("failing").controller(controller)).await;
    world.create(ours("ada")).await;
    log.until(6).await;
    assert_eq!(log.lines()[..6], ["timer", "retry 1", "retry 2", "timer", "retry 1", "retry 2"]);
    let events = world.api::<Published>().list(&Default::default()).await.unwrap().items;
    let notes: Vec<_> = events.iter().filter_map(|event| event.note.clone()).collect();
    assert!(notes.iter().any(|note| note.contains("no connection")), "{notes:?}");
}

#[tokio::test(start_paused = true)]
async fn a_timer_ends_with_its_object_and_writes_only_what_its_controller_declares() {
    let (world, log) = (World::start().await, Log::default());
    let runs = log.clone();
    let timer = Timer::every(10 * SECOND);
    let controller = controller().owns::<Secret>().timer(timer, move |_, ctx: Context| {
        let runs = runs.clone();
        async move {
            let refused = ctx.apply(ConfigMap::default()).await.err();
            runs.add(refused.map_or("applied".into(), |error| error.to_string()));
            ctx.apply(Secret::default()).await?;
            Ok(())
        }
    });
    let _running = world.run(&Operator::new("ending").controller(controller)).await;
    world.create(ours("ada")).await;
    world.until("ada", |_: &Secret| true).await;
    assert!(log.lines()[0].contains("the controller does not own ConfigMap"));
    world
        .merge::<ConfigMap>("ada", json!({ "metadata": { "labels": { "ours": "no" } } }))
        .await;
    pass(SECOND).await;
    log.take();
    pass(10 * MINUTE).await;
    assert_eq!(log.lines(), [""; 0]);
}

/// Logs when the daemon of an object starts and ends.
fn following(log: &Log) -> Controller<ConfigMap> {
    struct Ends(Log, String);
    impl Drop for Ends {
        fn drop(&mut self) {
            self.0.add(format!("{} ended", self.1));
        }
    }
    let log = log.clone();
    controller().daemon("follow", move |map: Arc<ConfigMap>, _| {
        let log = log.clone();
        async move {
            log.add(format!("{} started", map.name_any()));
            let _ends = Ends(log, map.name_any());
            std::future::pending().await
        }
    })
}

#[tokio::test(start_paused = true)]
async fn a_daemon_runs_for_each_object_and_ends_with_it() {
    let (world, log) = (World::start().await, Log::default());
    world.create(ours("ada")).await;
    let running = world.run(&Operator::new("following").controller(following(&log))).await;
    pass(SECOND).await;
    world.create(ours("bob")).await;
    world.create(config_map("eve", "a", "1")).await;
    pass(SECOND).await;
    assert_eq!(log.lines(), ["ada started", "bob started"]);

    world.merge::<ConfigMap>("ada", json!({ "data": { "a": "1" } })).await;
    pass(MINUTE).await;
    assert_eq!(log.lines(), [""; 0], "a change leaves it running");
    world
        .merge::<ConfigMap>("ada", json!({ "metadata": { "labels": { "ours": "no" } } }))
        .await;
    pass(SECOND).await;
    world.delete::<ConfigMap>("bob").await;
    pass(SECOND).await;
    assert_eq!(log.lines(), ["ada ended", "bob ended"]);

    world
        .merge::<ConfigMap>("ada", json!({ "metadata": { "labels": { "ours": "yes" } } }))
        .await;
    world.create(ours("bob")).await;
    pass(SECOND).await;
    assert_eq!(log.lines(), ["ada started", "bob started"]);
    let started = Instant::now();
    running.stop().await;
    assert!(started.elapsed() < SECOND, "a daemon that does not ask for time is given none");
    let mut ended = log.lines();
    ended.sort();
    assert_eq!(ended, ["ada ended", "bob ended"]);
}

#[tokio::test(start_paused = true)]
async fn a_daemon_of_an_object_that_is_being_deleted_is_given_time_to_end() {
    let (world, log) = (World::start().await, Log::default());
    let (lines, cleaned) = (log.clone(), log.clone());
    let controller = controller()
        .shutdown_grace(20 * SECOND)
        .cleanup(move |_: Arc<ConfigMap>, _| {
            cleaned.add("cleaned up");
            async { Ok(()) }
        })
        .daemon("close", move |map: Arc<ConfigMap>, ctx: Context| {
            let lines = lines.clone();
            async move {
                ctx.stopping().await;
                lines.add(format!("{} is closing", map.name_any()));
                pass(if map.name_any() == "slow" { MINUTE } else { 5 * SECOND }).await;
                lines.add(format!("{} closed", map.name_any()));
                Ok(())
            }
        });
    let running = world.run(&Operator::new("closing").controller(controller)).await;
    for name in ["ada", "bob", "slow"] {
        world.create(ours(name)).await;
    }
    pass(SECOND).await;
    world.delete::<ConfigMap>("ada").await;
    pass(10 * SECOND).await;
    let mut lines = log.lines();
    lines.sort();
    assert_eq!(lines, ["ada closed", "ada is closing", "cleaned up"]);
    let stopped = Instant::now();
    running.stop().await;
    assert_eq!(stopped.elapsed().as_secs(), 20, "the slow one is cancelled then");
    let mut lines = log.lines();
    lines.sort();
    assert_eq!(lines, ["bob closed", "bob is closing", "slow is closing"]);
}

#[tokio::test(start_paused = true)]
async fn a_daemon_that_fails_starts_again_with_a_delay_that_grows_and_is_shown() {
    let (world, log) = (World::start().await, Log::default());
    let runs = log.clone();
    let backoff = Backoff { initial: SECOND, ..Backoff::default() };
    let controller = controller().backoff(backoff).daemon("flaky", move |_, ctx: Context| {
        runs.add(ctx.why().to_string());
        let count = runs.0.lock().unwrap().len();
        async move {
            match count {
                1 => Err(Error::from("no connection")),
                2 => panic!("no luck"),
                _ => Ok(()),
            }
        }
    });
    let running = world.run(&Operator::new("flaky").controller(controller)).await;
    world.create(ours("ada")).await;
    pass(10 * MINUTE).await;
    let runs = log.take();
    let lines: Vec<_> = runs.iter().map(|(line, _)| line.as_str()).collect();
    assert_eq!(lines, ["created", "retry 1", "retry 2"], "and is done once it has succeeded");
    let delays = [runs[1].1 - runs[0].1, runs[2].1 - runs[1].1];
    assert!(delays[0] <= SECOND && delays[1] > SECOND && delays[1] <= 2 * SECOND, "{delays:?}");
    let events = world.api::<Published>().list(&Default::default()).await.unwrap().items;
    let notes: Vec<_> = events.iter().filter_map(|event| event.note.clone()).collect();
    assert!(notes.iter().any(|note| note.contains("no connection")), "{notes:?}");
    assert!(notes.iter().any(|note| note.contains("the daemon panicked: no luck")), "{notes:?}");
    let metrics = running.metrics().text(Format::Prometheus);
    for series in [
        "controller_reconcile_total{controller=\"configmap/flaky\",result=\"error\"} 2",
        "controller_reconcile_total{controller=\"configmap/flaky\",result=\"success\"} 1",
        "controller_runtime_active_workers{controller=\"configmap/flaky\"} 0.0",
    ] {
        assert!(metrics.lines().any(|line| line == series), "{series} in {metrics}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_daemon_that_failed_for_good_waits_for_a_change_of_its_object() {
    let (world, log) = (World::start().await, Log::default());
    let runs = log.clone();
    let controller = controller().daemon("strict", move |map: Arc<ConfigMap>, _| {
        runs.add(map.data.as_ref().map_or("empty", |_| "filled"));
        async { Err(Error::permanent("no such region")) }
    });
    let _running = world.run(&Operator::new("strict").controller(controller)).await;
    world.create(ours("ada")).await;
    pass(10 * MINUTE).await;
    assert_eq!(log.lines(), ["empty"]);
    world.merge::<ConfigMap>("ada", json!({ "data": { "a": "1" } })).await;
    pass(10 * MINUTE).await;
    assert_eq!(log.lines(), ["filled"]);
}

/// An operator with an election, a daemon and a task, which both log under the replica's name.
fn replica(name: &str, log: &Log) -> Operator {
    let (daemons, tasks, id) = (log.clone(), log.clone(), name.to_owned());
    let task = name.to_owned();
    let controller = controller().daemon("follow", move |_: Arc<ConfigMap>, _| {
        daemons.add(format!("{id} daemon"));
        std::future::pending()
    });
    Operator::new("replicated")
        .election(Election::new("replicated").identity(name))
        .controller(controller)
        .leader_task("report", move |ctx: TaskContext| {
            let (log, name) = (tasks.clone(), task.clone());
            async move {
                log.add(format!("{name} task"));
                ctx.stopping().await;
                log.add(format!("{name} task ended"));
                Ok(())
            }
        })
}

#[tokio::test(start_paused = true)]
async fn daemons_and_leader_tasks_run_only_where_the_operator_leads() {
    let (world, log) = (World::start().await, Log::default());
    world.create(ours("ada")).await;
    let first = world.run(&replica("one", &log)).await;
    pass(10 * SECOND).await;
    let second = world.run(&replica("two", &log)).await;
    pass(MINUTE).await;
    let mut lines = log.lines();
    lines.sort();
    assert_eq!(lines, ["one daemon", "one task"]);

    first.stop().await;
    pass(10 * SECOND).await;
    let mut lines = log.lines();
    lines.sort();
    assert_eq!(lines, ["one task ended", "two daemon", "two task"]);
    drop(second);
}

#[tokio::test(start_paused = true)]
async fn what_became_due_while_another_replica_led_does_not_run_at_once() {
    let (world, log) = (World::start().await, Log::default());
    for index in 0..20 {
        world.create(ours(&format!("map-{index:02}"))).await;
    }
    let operator = |name: &str, log: &Log| {
        ticking(Timer::every(10 * MINUTE), log).election(Election::new("ticking").identity(name))
    };
    let (first, standby) = (world.run(&operator("one", &log)).await, Log::default());
    pass(10 * SECOND).await;
    let _second = world.run(&operator("two", &standby)).await;
    pass(20 * MINUTE).await;
    assert!((36..=60).contains(&log.take().len()));
    assert_eq!(standby.lines(), [""; 0]);
    first.stop().await;
    pass(MINUTE).await;
    assert!(standby.take().len() <= 10, "only what is due in this minute");
    pass(10 * MINUTE).await;
    assert!((8..=21).contains(&standby.take().len()), "each runs in its time");
}

#[tokio::test(start_paused = true)]
async fn a_leader_task_that_fails_starts_again_and_is_counted() {
    let (world, log) = (World::start().await, Log::default());
    let runs = log.clone();
    let operator = Operator::new("tasked").leader_task("prices", move |_| {
        runs.add("run");
        let count = runs.0.lock().unwrap().len();
        async move {
            match count {
                1 => Err(Error::from("no connection")),
                _ => Ok(()),
            }
        }
    });
    let running = world.run(&operator).await;
    pass(10 * MINUTE).await;
    assert_eq!(log.lines(), ["run", "run"]);
    let metrics = running.metrics().text(Format::Prometheus);
    for series in [
        "flyball_task_runs_total{task=\"prices\",result=\"error\"} 1",
        "flyball_task_runs_total{task=\"prices\",result=\"success\"} 1",
    ] {
        assert!(metrics.lines().any(|line| line == series), "{series} in {metrics}");
    }
}

#[tokio::test(start_paused = true)]
async fn two_of_one_name_and_an_interval_of_zero_are_refused() {
    let world = World::start().await;
    let twice = following(&Log::default()).timer(Timer::every(Duration::ZERO).named("follow"), |_, _| async { Ok(()) });
    let refusal = Operator::new("twice")
        .controller(twice)
        .start(world.client.clone())
        .await
        .unwrap_err()
        .to_string();
    assert!(
        refusal.contains("two timers or daemons of the configmap controller are called \"follow\""),
        "{refusal}"
    );
    assert!(
        refusal.contains("the interval of timer \"follow\" must be greater than zero"),
        "{refusal}"
    );
}
