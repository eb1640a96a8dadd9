//! An API server that takes a write and does not answer, and a reconcile that does not end: neither keeps its object for ever.

use crate::world::{World, config_map, pass};
use flyball::{Action, Context, Controller, Election, Operator, Result};
use flyball_test::Answer;
use http::Request;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::client::Body;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};
use tokio::time::Instant;

const SECOND: Duration = Duration::from_secs(1);

async fn copy(map: Arc<ConfigMap>, ctx: Context) -> Result {
    ctx.apply(Secret { string_data: map.data.clone(), ..Secret::default() }).await?;
    Ok(Action::await_change())
}

/// Begins to answer the first write of a Secret, and stops in the middle.
fn hang_once() -> impl FnMut(&Request<Body>) -> Option<Answer> + Send {
    let mut hung = false;
    move |request| {
        let hangs = !hung && request.method() == "PATCH" && request.uri().path().contains("/secrets/");
        hung |= hangs;
        hangs.then(Answer::silence)
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_of_a_leader_that_hangs_is_given_up_and_repeated() {
    let world = World::start().await;
    let operator = Operator::new("copier").controller(Controller::new(copy).owns::<Secret>());
    let running = world.run(&operator.election(Election::new("copier"))).await;
    world.break_with(hang_once());
    let created = Instant::now();
    world.create(config_map("ada", "a", "1")).await;
    pass(60 * SECOND).await;
    assert!(
        world.api::<Secret>().get_opt("ada").await.unwrap().is_none(),
        "the server did not take it"
    );
    assert_eq!(running.queues(1)[0].running, 1, "it waits for the answer");
    world.until("ada", |_: &Secret| true).await;
    assert!(created.elapsed() < 70 * SECOND, "{:?}", created.elapsed());
    assert!(running.leadership().is_leading(), "the lease was renewed meanwhile");
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_that_hangs_is_cancelled_after_ten_minutes_and_repeated() {
    let world = World::start().await;
    let runs = Arc::new(AtomicU32::new(0));
    let counted = runs.clone();
    let hang_first = move |map: Arc<ConfigMap>, ctx: Context| {
        let run = counted.fetch_add(1, Ordering::SeqCst);
        async move {
            if run == 0 {
                std::future::pending::<()>().await;
            }
            copy(map, ctx).await
        }
    };
    let operator = Operator::new("copier").controller(Controller::new(hang_first).owns::<Secret>());
    let _running = world.run(&operator).await;
    let created = Instant::now();
    world.create(config_map("ada", "a", "1")).await;
    world.until("ada", |_: &Secret| true).await;
    assert_eq!(created.elapsed().as_secs(), 600);
}
