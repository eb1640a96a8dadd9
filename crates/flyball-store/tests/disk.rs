//! What a data directory keeps, and which directories are refused.
#![allow(clippy::unwrap_used)]

use flyball_store::{Error, Expect, Op, Options, Range, Store, Value};
use std::{fs, path::Path};
use tempfile::TempDir;

async fn put(store: &Store, key: &str, value: &str) -> u64 {
    let put = Op::put(key.to_owned(), value.to_owned(), Expect::Anything);
    store.commit(vec![put]).await.unwrap().revision
}

async fn refusal(path: &Path) -> String {
    match Store::open(path).await {
        Ok(_) => panic!("{} was opened", path.display()),
        Err(error) => error.to_string().replace(&path.display().to_string(), "DIR"),
    }
}

/// A closed store with one value.
async fn closed() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path()).await.unwrap();
    put(&store, "/a", "one").await;
    store.close().await;
    directory
}

#[tokio::test]
async fn values_revisions_and_history_survive_closing() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path()).await.unwrap();
    put(&store, "/a", "one").await;
    let stamped = Op::put("/b", Value::stamped("rv= end", 3), Expect::Absent);
    store.commit(vec![stamped, Op::put("/c", "one", Expect::Absent)]).await.unwrap();
    put(&store, "/a", "two").await;
    store.commit(vec![Op::delete("/b", Expect::Revision(2))]).await.unwrap();
    let ranges = [None, Some(0), Some(1), Some(2), Some(3)].map(|revision| Range { revision, ..Range::default() });
    let mut before = Vec::new();
    for range in &ranges {
        before.push(store.range(range.clone()).await.unwrap());
    }
    let mut watch = store.watch("", 0).await.unwrap();
    store.close().await;

    let store = Store::open(directory.path()).await.unwrap();
    assert_eq!(store.revision(), 4);
    for (range, before) in ranges.into_iter().zip(before) {
        assert_eq!(store.range(range).await.unwrap(), before);
    }
    let mut resumed = store.watch("", 0).await.unwrap();
    for _ in 0..5 {
        assert_eq!(resumed.next().await.unwrap().unwrap(), watch.next().await.unwrap().unwrap());
    }
    assert_eq!(put(&store, "/a", "three").await, 5);
}

#[tokio::test]
async fn what_was_compacted_stays_compacted() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path()).await.unwrap();
    for value in ["one", "two", "three"] {
        put(&store, "/a", value).await;
    }
    store.compact(2).await.unwrap();
    store.close().await;
    let store = Store::open(directory.path()).await.unwrap();
    assert!(matches!(store.watch("", 1).await, Err(Error::Compacted { oldest: 2, .. })));
    assert_eq!(store.get("/a").await.unwrap().unwrap().value, "three");
}

#[tokio::test]
async fn a_smaller_history_is_taken_up_with_the_next_write() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path()).await.unwrap();
    for _ in 0..20 {
        put(&store, "/a", "v").await;
    }
    store.close().await;
    let store = Options { history_revisions: 5, ..Options::default() }
        .open(directory.path())
        .await
        .unwrap();
    put(&store, "/a", "v").await;
    assert!(matches!(store.watch("", 1).await, Err(Error::Compacted { oldest: 16, .. })));
}

#[tokio::test]
async fn a_dropped_store_frees_its_directory() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path()).await.unwrap();
    put(&store, "/a", "one").await;
    let mut watch = store.watch("/", 1).await.unwrap();
    drop(store);
    assert!(
        matches!(watch.next().await, Some(Err(Error::Closed))),
        "the watch ends when the writer does"
    );
}

#[tokio::test]
async fn a_directory_in_use_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path()).await.unwrap();
    assert_eq!(
        refusal(directory.path()).await,
        "the data directory DIR is in use by another process: stop that one, or choose another directory"
    );
    put(&store, "/a", "still here").await;
    store.close().await;
    assert!(Store::open(directory.path()).await.is_ok());
}

#[tokio::test]
async fn a_directory_with_other_files_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("thesis.txt"), "ten years").unwrap();
    assert_eq!(
        refusal(directory.path()).await,
        "the data directory DIR holds something else than a store: choose an empty directory"
    );
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn a_directory_of_another_format_is_refused() {
    let directory = closed().await;
    fs::write(directory.path().join("store/format"), "flyball-store 2\n").unwrap();
    let expected = "the data directory DIR has the format \"flyball-store 2\", but \"flyball-store 1\" is read here: open it \
                    with the version that wrote it";
    assert_eq!(refusal(directory.path()).await, expected);
}

#[tokio::test]
async fn a_path_that_is_a_file_is_refused() {
    let file = tempfile::NamedTempFile::new().unwrap();
    assert_eq!(refusal(file.path()).await, "open the data directory DIR");
}

#[tokio::test]
async fn a_store_whose_making_was_interrupted_is_made_anew() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("unfinished"), "").unwrap();
    fs::create_dir_all(directory.path().join("store/keyspaces")).unwrap();
    let store = Store::open(directory.path()).await.unwrap();
    put(&store, "/a", "one").await;
    store.close().await;
    assert_eq!(Store::open(directory.path()).await.unwrap().revision(), 1);
}

#[tokio::test]
async fn a_missing_file_is_refused_and_nothing_is_thrown_away() {
    for name in ["format", "version", "keyspaces/0/current", "keyspaces/1/current"] {
        let directory = closed().await;
        let path = directory.path().join("store").join(name);
        let bytes = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        assert_eq!(
            refusal(directory.path()).await,
            format!(
                "the data directory DIR is damaged (store/{name} is missing): restore it from a backup, or move it away to \
                 start empty"
            )
        );
        fs::write(&path, bytes).unwrap();
        assert_eq!(Store::open(directory.path()).await.unwrap().revision(), 1);
    }
}
