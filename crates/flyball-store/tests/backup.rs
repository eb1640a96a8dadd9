//! A backup taken while the store is in use, and what is made of it.
#![allow(clippy::unwrap_used)]

use flyball_store::{Backup, Entry, Error, Expect, Op, Range, Store, Value};
use std::{fs, path::Path};

async fn put(store: &Store, key: &str, value: &str) -> u64 {
    let put = Op::put(key.to_owned(), value.to_owned(), Expect::Anything);
    store.commit(vec![put]).await.unwrap().revision
}

/// Writes 2,000 keys in twenty commits.
async fn many(store: &Store, value: &str) {
    for hundred in 0..20 {
        let put = |n| Op::put(format!("/many/{hundred:02}{n:02}"), format!("{value} {n}"), Expect::Anything);
        store.commit((0..100).map(put).collect()).await.unwrap();
    }
}

async fn entries(store: &Store) -> Vec<Entry> {
    store.range(Range::default()).await.unwrap().entries
}

/// The entries of a data directory, which is closed afterwards.
async fn entries_in(path: &Path) -> Vec<Entry> {
    let store = Store::open(path).await.unwrap();
    let entries = entries(&store).await;
    store.close().await;
    entries
}

/// A store with stamped, replaced and removed values, two of them of one commit.
async fn fill(store: &Store) {
    let ops = ["/a", "/b"].map(|key| Op::put(key, Value::stamped("rv= end", 3), Expect::Absent));
    store.commit(ops.to_vec()).await.unwrap();
    many(store, "first").await;
    many(store, "second").await;
    store.commit(vec![Op::delete("/many/0007", Expect::Anything)]).await.unwrap();
}

#[tokio::test]
async fn a_backup_of_any_store_is_restored_with_its_revisions() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    for (name, store) in [
        ("memory", Store::memory()),
        ("disk", Store::open(at("disk")).await.unwrap()),
    ] {
        fill(&store).await;
        let (backup, restored) = (at(&format!("{name}.backup")), at(&format!("{name}.restored")));
        let written = store.backup(&backup).await.unwrap();
        assert_eq!(written, Backup { revision: 42, entries: 2_001 });
        let before = entries(&store).await;
        put(&store, "/later", "not in the backup").await;

        assert_eq!(Store::restore(&backup, &restored).await.unwrap(), written);
        assert_eq!(entries_in(&restored).await, before);
        store.close().await;
    }
}

#[tokio::test]
async fn a_backup_is_of_one_revision_while_others_write() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path().join("store")).await.unwrap();
    fill(&store).await;
    let mut snapshot = store.snapshot().await.unwrap();
    let before = entries(&store).await;
    many(&store, "changed").await;
    store.compact(store.revision()).await.unwrap();
    let mut found = Vec::new();
    while let Some(entry) = snapshot.next().await {
        found.push(entry.unwrap());
    }
    assert_eq!((snapshot.revision(), found), (42, before));
    store.close().await;
}

#[tokio::test]
async fn who_saw_what_came_after_the_backup_is_told_to_read_anew() {
    let directory = tempfile::tempdir().unwrap();
    let (backup, restored) = (directory.path().join("backup"), directory.path().join("restored"));
    let store = Store::memory();
    put(&store, "/a", "one").await;
    store.backup(&backup).await.unwrap();
    let seen = put(&store, "/a", "two").await;
    Store::restore(&backup, &restored).await.unwrap();
    let store = Store::open(&restored).await.unwrap();
    assert!(put(&store, "/a", "other").await > seen);
    assert!(matches!(store.watch("/", seen).await, Err(Error::Compacted { .. })));
    store.close().await;
}

async fn refusal(backup: &Path, directory: &Path) -> String {
    let error = Store::restore(backup, directory).await.unwrap_err().to_string();
    let error = error.replace(&backup.display().to_string(), "FILE");
    error.replace(&directory.display().to_string(), "DIR")
}

#[tokio::test]
async fn a_damaged_backup_is_refused_and_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let (backup, restored) = (directory.path().join("backup"), directory.path().join("restored"));
    let store = Store::memory();
    put(&store, "/a", "one").await;
    store.backup(&backup).await.unwrap();
    let whole = fs::read(&backup).unwrap();
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x20;
        fs::write(&backup, damaged).unwrap();
        let error = refusal(&backup, &restored).await;
        assert!(error.starts_with("the backup FILE is damaged ("), "byte {at}: {error}");
        fs::write(&backup, &whole[..at]).unwrap();
        let error = refusal(&backup, &restored).await;
        assert!(error.starts_with("the backup FILE is damaged ("), "cut at {at}: {error}");
    }
    fs::write(&backup, [&whole[..], b"more"].concat()).unwrap();
    let expected = "the backup FILE is damaged (it does not end where it should): use another one";
    assert_eq!(refusal(&backup, &restored).await, expected);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn a_directory_with_something_in_it_is_not_restored_into() {
    let directory = tempfile::tempdir().unwrap();
    let backup = directory.path().join("backup");
    Store::memory().backup(&backup).await.unwrap();
    assert_eq!(
        refusal(&backup, directory.path()).await,
        "the directory DIR is not empty: restore into one that is empty, or not there yet"
    );
    let missing = directory.path().join("missing");
    assert_eq!(refusal(&missing, &directory.path().join("new")).await, "read the backup FILE");
}

#[tokio::test]
async fn a_disk_of_its_own_is_restored_into_also_after_an_interruption() {
    let directory = tempfile::tempdir().unwrap();
    let (backup, restored) = (directory.path().join("backup"), directory.path().join("restored"));
    let store = Store::memory();
    put(&store, "/a", "one").await;
    store.backup(&backup).await.unwrap();
    fs::create_dir_all(restored.join("lost+found")).unwrap();
    fs::create_dir_all(restored.join("restoring/store/half of it")).unwrap();
    fs::write(restored.join("restoring/unfinished"), "").unwrap();
    assert!(
        matches!(Store::open(&restored).await, Err(Error::Foreign { .. })),
        "it is not opened half restored"
    );
    // A disk cannot be replaced by another directory, so what is in it must stay.
    let found = fs::metadata(restored.join("lost+found")).unwrap().modified().unwrap();
    Store::restore(&backup, &restored).await.unwrap();
    assert_eq!(fs::metadata(restored.join("lost+found")).unwrap().modified().unwrap(), found);
    assert!(!restored.join("restoring").exists());
    assert_eq!(entries_in(&restored).await, entries(&store).await);
}
