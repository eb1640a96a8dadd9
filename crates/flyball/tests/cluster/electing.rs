//! Leader election: several replicas of one operator, each with its own way to the API server, which may fail.

use crate::{
    electing_world::{Group, Network},
    world::{World, config_map, pass},
};
use flyball::{Action, Context, Controller, Election, Operator, Result, metrics::Format};
use flyball_test::Answer;
use k8s_openapi::api::{
    coordination::v1::Lease,
    core::v1::{ConfigMap, Secret},
};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::Instant;

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn one_of_three_replicas_works() {
    let mut group = Group::start(3).await;
    pass(30 * SECOND).await;
    let leader = group.leader().await;
    let writers = group.writers();
    assert_eq!(writers, std::slice::from_ref(&leader), "only the leader writes");
    for replica in &group.replicas {
        let leadership = replica.running().leadership();
        assert_eq!(leadership.is_leading(), leadership.identity() == leader);
        assert_eq!(leadership.leader(), Some(leader.clone()), "all know who leads");
        let metrics = replica.running().metrics().text(Format::Prometheus);
        let leads = u8::from(leadership.identity() == leader);
        for series in [
            format!("leader_election_status{{name=\"writer\"}} {leads}.0"),
            format!("leader_election_master_status{{name=\"writer\"}} {leads}.0"),
            "leader_transitions_total{name=\"writer\"} 1".to_owned(),
        ] {
            assert!(metrics.lines().any(|line| line == series), "{series} in {metrics}");
        }
    }
    group.stop_all().await;
    let lease: Lease = group.world.api().get("writer").await.unwrap();
    let spec = lease.spec.unwrap();
    assert_eq!((spec.holder_identity.as_deref(), spec.lease_duration_seconds), (Some(""), Some(1)));
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_stops_is_followed_at_once() {
    let mut group = Group::start(3).await;
    pass(10 * SECOND).await;
    let first = group.leader().await;
    let stopped = Instant::now();
    group.stop(&first).await;
    let (second, at) = group.next_writer(stopped).await;
    assert_ne!(first, second);
    assert!(at - stopped < 2 * SECOND, "{:?}", at - stopped);
    group.check("");
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_crashes_is_followed_within_twenty_seconds() {
    let mut group = Group::start(3).await;
    pass(10 * SECOND).await;
    let first = group.leader().await;
    let crashed = Instant::now();
    group.crash(&first);
    let (_, at) = group.next_writer_but(crashed, &first).await;
    assert!((5 * SECOND..20 * SECOND).contains(&(at - crashed)), "{:?}", at - crashed);
    group.check("");
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_cut_off_stops_before_another_starts() {
    let group = Group::start(3).await;
    pass(10 * SECOND).await;
    let (first, cut) = (group.leader().await, Instant::now());
    group.replica(&first).network(Network::Silent);
    let (_, at) = group.next_writer_but(cut, &first).await;
    assert!(at - cut < 20 * SECOND, "{:?}", at - cut);
    assert!(!group.replica(&first).running().leadership().is_leading());
    let metrics = group.replica(&first).running().metrics().text(Format::Prometheus);
    assert!(metrics.contains("leader_election_master_status{name=\"writer\"} 0"), "{metrics}");
    assert!(
        metrics.contains("flyball_writes_fenced_total{name=\"writer\"}"),
        "what outlives its reconcile is fenced"
    );
    group.replica(&first).network(Network::Well);
    pass(30 * SECOND).await;
    group.check("");
}

/// The leader's last write is abandoned when the lease ends, and arrives in the time that is left before another leads.
#[tokio::test(start_paused = true)]
async fn a_write_in_flight_at_the_end_of_the_lease_arrives_before_another_leads() {
    let group = Group::start(3).await;
    pass(10 * SECOND).await;
    let (first, slowed) = (group.leader().await, Instant::now());
    group.replica(&first).network(Network::SlowAndDeaf(4 * SECOND));
    let (_, at) = group.next_writer_but(slowed, &first).await;
    assert!(at - slowed < 20 * SECOND, "{:?}", at - slowed);
    let last = group.journal.last_write_of(&first);
    assert!(last > slowed + 8 * SECOND, "it writes until its lease ends: {:?}", last - slowed);
    pass(60 * SECOND).await;
    group.check("");
}

/// Takes some seconds: fifty rounds, each of half a minute of three replicas at work.
#[tokio::test(start_paused = true)]
async fn never_do_two_write_whatever_becomes_of_the_leader() {
    for seed in 0..5 {
        println!("seed {seed}");
        let (mut random, mut group) = (fastrand::Rng::with_seed(seed), Group::start(3).await);
        for _ in 0..10 {
            pass(Duration::from_millis(random.u64(..10_000))).await;
            let (leader, now) = (group.leader().await, Instant::now());
            match random.u64(..5) {
                0 => group.crash(&leader),
                1 => group.stop(&leader).await,
                fault => {
                    let delay = Duration::from_millis(random.u64(..3_000));
                    let fault = [Network::Silent, Network::Refusing, Network::Slow(delay)][fault as usize - 2];
                    group.replica(&leader).network(fault);
                    pass(Duration::from_millis(random.u64(..40_000))).await;
                    group.replica(&leader).network(Network::Well);
                }
            }
            let (_, at) = group.next_writer(Instant::now()).await;
            assert!(at - now < 61 * SECOND, "seed {seed}: nobody wrote for {:?}", at - now);
            group.refill().await;
        }
        group.check(&format!("seed {seed}"));
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_takes_over_has_listed_everything_before() {
    let mut group = Group::start(2).await;
    pass(10 * SECOND).await;
    let first = group.leader().await;
    let lists = |group: &Group| group.journal.requests("GET", "/secrets?").len();
    let before = lists(&group);
    assert_eq!(before, 4, "each replica listed and watches");
    let stopped = Instant::now();
    group.stop(&first).await;
    group.next_writer(stopped).await;
    assert_eq!(lists(&group), before);
}

#[tokio::test(start_paused = true)]
async fn callbacks_tell_of_the_beginning_the_end_and_whoever_leads() {
    let world = World::start().await;
    let told = Arc::new(Mutex::new(Vec::new()));
    let tell = |what: &'static str| {
        let told = told.clone();
        move || told.lock().unwrap().push(what.to_owned())
    };
    let heard = told.clone();
    let election = Election::new("solo")
        .identity("ada")
        .on_started(tell("started"))
        .on_stopped(tell("stopped"))
        .on_stopped(|| panic!("a callback"))
        .on_new_leader(move |leader| heard.lock().unwrap().push(format!("{leader} leads")));
    let running = world.run(&Operator::new("solo").election(election)).await;
    pass(SECOND).await;
    running.stop().await;
    assert_eq!(*told.lock().unwrap(), ["ada leads", "started", "stopped"]);
}

#[tokio::test(start_paused = true)]
async fn a_controller_may_have_an_election_of_its_own() {
    async fn note(map: Arc<ConfigMap>, ctx: Context) -> Result {
        ctx.apply(Secret { string_data: map.data.clone(), ..Secret::default() }).await?;
        Ok(Action::await_change())
    }
    async fn copy(secret: Arc<Secret>, ctx: Context) -> Result {
        ctx.event(flyball::Event::normal("Seen", format!("{:?}", secret.metadata.name)));
        Ok(Action::await_change())
    }
    let world = World::start().await;
    let held = serde_json::json!({ "metadata": { "name": "copies" }, "spec": {
        "holderIdentity": "somebody", "leaseDurationSeconds": 3_600, "renewTime": "2026-01-01T00:00:00.000000Z",
    } });
    world.create::<Lease>(serde_json::from_value(held).unwrap()).await;
    let operator = Operator::new("both")
        .controller(Controller::new(note).owns::<Secret>().election(Election::new("notes")))
        .controller(Controller::new(copy).election(Election::new("copies")));
    let running = world.run(&operator).await;
    world.create(config_map("ada", "a", "1")).await;
    world.until("ada", |_: &Secret| true).await;
    pass(60 * SECOND).await;
    let queues = running.queues(10);
    let waiting = |controller: &str| queues.iter().find(|queue| queue.controller == controller).unwrap().ready;
    assert_eq!((waiting("configmap"), waiting("secret")), (0, 1), "one leads, one waits");
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_is_aborted_when_the_lease_is_lost_and_comes_again() {
    let world = World::start().await;
    let began = Arc::new(Mutex::new(Vec::new()));
    let seen = began.clone();
    let stuck = move |_: Arc<ConfigMap>, _: Context| {
        let seen = seen.clone();
        async move {
            seen.lock().unwrap().push(Instant::now());
            std::future::pending().await
        }
    };
    let operator = Operator::new("stuck").controller(Controller::new(stuck)).election(Election::new("stuck"));
    let running = world.run(&operator).await;
    world.create(config_map("ada", "a", "1")).await;
    pass(5 * SECOND).await;
    assert_eq!(began.lock().unwrap().len(), 1);
    let cut = Instant::now();
    world.break_with(|request| {
        let leases = request.uri().path().contains("/leases");
        leases.then(|| Answer::text(503, "no way"))
    });
    while running.leadership().is_leading() {
        pass(SECOND / 10).await;
    }
    assert!(cut.elapsed() <= 10 * SECOND, "{:?}", cut.elapsed());
    pass(SECOND).await;
    assert_eq!(running.queues(1)[0].running, 0, "it is not under way any more");
    world.mend();
    pass(20 * SECOND).await;
    assert_eq!(began.lock().unwrap().len(), 2, "and it comes again with the lease");
}

/// Another leader may have left something half done.
#[tokio::test(start_paused = true)]
async fn whoever_leads_again_looks_at_everything_again() {
    let world = World::start().await;
    world.create(config_map("ada", "a", "1")).await;
    let runs = Arc::new(Mutex::new(0));
    let counted = runs.clone();
    let count = move |map: Arc<ConfigMap>, _: Context| {
        *counted.lock().unwrap() += u32::from(map.metadata.name.as_deref() == Some("ada"));
        async { Ok(Action::await_change()) }
    };
    let operator = Operator::new("counter").controller(Controller::new(count));
    let running = world.run(&operator.election(Election::new("counter").identity("ada"))).await;
    pass(5 * SECOND).await;
    assert_eq!(*runs.lock().unwrap(), 1);
    let taken = serde_json::json!({ "spec": { "holderIdentity": "bob", "leaseDurationSeconds": 5 } });
    world.merge::<Lease>("counter", taken).await;
    pass(4 * SECOND).await;
    assert!(!running.leadership().is_leading());
    pass(10 * SECOND).await;
    assert!(running.leadership().is_leading());
    assert_eq!(*runs.lock().unwrap(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_deleted_is_created_by_its_holder_and_taken_by_nobody() {
    let group = Group::start(3).await;
    pass(10 * SECOND).await;
    let (leader, deleted) = (group.leader().await, Instant::now());
    for _ in 0..3 {
        group.world.delete::<Lease>("writer").await;
        pass(20 * SECOND).await;
        let lease: Lease = group.world.api().get("writer").await.unwrap();
        assert_eq!(lease.spec.unwrap().holder_identity, Some(leader.clone()));
    }
    assert!(group.replica(&leader).running().leadership().is_leading());
    let metrics = group.replica(&leader).running().metrics().text(Format::Prometheus);
    assert!(metrics.contains("leader_transitions_total{name=\"writer\"} 1"), "{metrics}");
    assert_eq!(group.writers(), [leader], "nobody else writes since {:?}", deleted.elapsed());
    group.check("");
}

#[tokio::test(start_paused = true)]
async fn controllers_that_share_an_election_all_hear_of_it() {
    let world = World::start().await;
    let told = Arc::new(Mutex::new(Vec::new()));
    let sharing = |name: &'static str, namespace: Option<&str>| {
        let told = told.clone();
        let idle = |_: Arc<ConfigMap>, _: Context| async { Ok(Action::await_change()) };
        let election = Election::new("shared").on_started(move || told.lock().unwrap().push(name));
        let election = namespace.map_or(election.clone(), |namespace| election.namespace(namespace));
        Controller::new(idle).named(name).election(election)
    };
    let operator = Operator::new("both")
        .controller(sharing("one", None))
        .controller(sharing("two", Some("default")));
    let _running = world.run(&operator).await;
    pass(30 * SECOND).await;
    assert_eq!(*told.lock().unwrap(), ["one", "two"]);
    let unlike = sharing("three", None).election(Election::new("shared").lease_duration(30 * SECOND));
    let refused = operator.controller(unlike).start(world.client.clone()).await.unwrap_err().to_string();
    assert!(refused.contains("\"shared\": two elections by it differ in their times"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_may_not_be_watched_is_not_asked_for_all_the_time_and_taken_all_the_same() {
    let world = World::start().await;
    let held = serde_json::json!({ "metadata": { "name": "slow" }, "spec": {
        "holderIdentity": "somebody", "leaseDurationSeconds": 600, "renewTime": "2026-01-01T00:00:00.000000Z",
    } });
    world.create::<Lease>(serde_json::from_value(held).unwrap()).await;
    world.break_with(|request| {
        let watch = request.uri().path().ends_with("/leases");
        watch.then(crate::watching::forbidden)
    });
    let running = world.run(&Operator::new("slow").election(Election::new("slow"))).await;
    pass(595 * SECOND).await;
    let watches = world.requests().iter().filter(|request| request.contains("/leases?")).count();
    assert!((10..40).contains(&watches), "{watches} watches in ten minutes");
    pass(10 * SECOND).await;
    assert!(running.leadership().is_leading());
}
