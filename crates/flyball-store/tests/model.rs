//! Random operations on each kind of store and on a simple model of it. `FLYBALL_SEED` repeats a run, `FLYBALL_OPERATIONS`
//! makes it longer. `cargo run -p conformance -- store` does the same on etcd.
#![allow(clippy::unwrap_used)]

use flyball_store::{
    Options,
    testing::{Chance, Model},
};
use futures::FutureExt;

const HISTORY: u64 = 500;

const OPTIONS: Options = Options {
    history_revisions: HISTORY,
    history_bytes: 64 << 20,
    watch_bytes: 64 << 20,
    memory_bytes: 1_000,
};

const OPERATIONS: usize = 100_000;

#[tokio::test]
async fn memory_does_as_its_model() {
    let open = || async { Ok(OPTIONS.memory()) }.boxed();
    let model = Model::new(open).volatile().history(HISTORY);
    model.run(Chance::from_environment(), OPERATIONS).await;
}

#[tokio::test]
async fn disk_does_as_its_model_and_reopens_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_owned();
    let open = move || OPTIONS.open(path.clone()).boxed();
    let model = Model::new(open).history(HISTORY);
    model.run(Chance::from_environment(), OPERATIONS).await;
}
