//! A store with injected faults: nothing acknowledged is lost.
#![allow(clippy::unwrap_used)]

use flyball_store::{
    Error, Expect, Health, Op, Options, Store,
    fault::Faults,
    testing::{Chance, Model},
};
use futures::FutureExt;

async fn put(store: &Store, key: &str, value: &str) -> Result<u64, Error> {
    let put = Op::put(key.to_owned(), value.to_owned(), Expect::Anything);
    Ok(store.commit(vec![put]).await?.revision)
}

const OPTIONS: Options = Options {
    history_revisions: 250_000,
    history_bytes: 64 << 20,
    watch_bytes: 64 << 20,
    memory_bytes: 1_000,
};

/// Every fault that leaves a caller in doubt, often.
fn doubts(seed: u64) -> Faults {
    Faults {
        seed,
        delayed: 50,
        lost: 40,
        unacknowledged: 40,
        unavailable: 2_000,
        leader_change: 1_000,
        ..Faults::default()
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_in_doubt_does_as_its_model() {
    let chance = Chance::from_environment();
    let faults = doubts(chance.seed);
    let open = move || async move { Ok(faults.on(OPTIONS.memory())) }.boxed();
    Model::new(open).volatile().concurrent().run(chance, 20_000).await;
}

#[tokio::test]
async fn the_same_seed_makes_the_same_faults() {
    let answers = async |seed: u64| {
        let store = Faults { seed, refused: 3, ..Faults::default() }.on(Store::memory());
        let mut answers = Vec::new();
        for _ in 0..50 {
            answers.push(put(&store, "/a", "v").await.is_ok());
        }
        answers
    };
    assert_eq!(answers(7).await, answers(7).await);
    assert_ne!(answers(7).await, answers(8).await);
}

#[tokio::test]
async fn a_lost_commit_is_not_there_and_an_unacknowledged_one_is() {
    let lost = Faults { lost: 1, ..Faults::default() }.on(Store::memory());
    assert!(matches!(put(&lost, "/a", "v").await, Err(Error::Unavailable { .. })));
    assert_eq!(lost.get("/a").await.unwrap(), None);
    let unacknowledged = Faults { unacknowledged: 1, ..Faults::default() }.on(Store::memory());
    assert!(matches!(put(&unacknowledged, "/a", "v").await, Err(Error::Unavailable { .. })));
    assert_eq!(unacknowledged.get("/a").await.unwrap().unwrap().revision, 1);
}

#[tokio::test]
async fn a_full_store_refuses_commits_and_is_read_on() {
    let store = Faults { room: Some(10), ..Faults::default() }.on(Store::memory());
    put(&store, "/a", "12345678").await.unwrap();
    let error = put(&store, "/b", "1").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the disk of the data directory the faulty store is full: nothing was written, free some space and try again"
    );
    assert_eq!(store.get("/a").await.unwrap().unwrap().value, "12345678");
    assert!(matches!(store.health().await, Health::ReadOnly { .. }));
}

#[tokio::test(start_paused = true)]
async fn an_outage_passes() {
    let store = Faults { unavailable: 5, seed: 3, ..Faults::default() }.on(Store::memory());
    let mut answers = Vec::new();
    for _ in 0..200 {
        answers.push(put(&store, "/a", "v").await.is_ok());
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
    assert!(answers.iter().any(|answer| *answer));
    assert!(answers.windows(10).any(|window| window.iter().all(|answer| !answer)), "{answers:?}");
}
