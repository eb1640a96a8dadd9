//! Data directories: what survives closing, and which directories are refused.
#![allow(clippy::unwrap_used)]

use flyball_store::{Error, Expect, Op, Options, Range, Store, Value};
use futures::FutureExt;
use std::{fs, os::unix::fs::PermissionsExt, path::Path, pin::pin, time::Duration};
use tempfile::TempDir;
use tokio::sync::oneshot;

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

/// The revision of the store in a data directory, which is closed afterwards.
async fn revision(path: &Path) -> u64 {
    let store = Store::open(path).await.unwrap();
    store.close().await;
    store.revision()
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
    let mut events = Vec::new();
    for _ in 0..5 {
        events.push(watch.next().await.unwrap().unwrap());
    }
    store.close().await;

    let store = Store::open(directory.path()).await.unwrap();
    assert_eq!(store.revision(), 4);
    for (range, before) in ranges.into_iter().zip(before) {
        assert_eq!(store.range(range).await.unwrap(), before);
    }
    let mut resumed = store.watch("", 0).await.unwrap();
    for event in events {
        assert_eq!(resumed.next().await.unwrap().unwrap(), event);
    }
    assert_eq!(put(&store, "/a", "three").await, 5);
    store.close().await;
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
    store.close().await;
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
    store.close().await;
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
    let lock = fs::File::open(directory.path().join("lock")).unwrap();
    let (freed, wait) = oneshot::channel();
    std::thread::spawn(move || {
        lock.lock().unwrap();
        drop(lock);
        freed.send(()).unwrap();
    });
    let within = tokio::time::timeout(Duration::from_secs(60), wait).await;
    within.expect("it is never free").unwrap();
    assert_eq!(revision(directory.path()).await, 1);
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
    assert_eq!(revision(directory.path()).await, 1);
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
async fn what_a_file_system_keeps_for_itself_is_no_other_file() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("lost+found")).unwrap();
    let store = Store::open(directory.path()).await.unwrap();
    put(&store, "/a", "one").await;
    store.close().await;
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("lost+found")).unwrap();
    fs::write(directory.path().join("thesis.txt"), "ten years").unwrap();
    assert!(matches!(Store::open(directory.path()).await, Err(Error::Foreign { .. })));
}

/// Format 3 had a journal of its own beside fjall's.
#[tokio::test]
async fn a_directory_of_another_format_is_refused_with_the_way_to_carry_it_over() {
    let directory = closed().await;
    fs::write(directory.path().join("store/format"), "flyball-store 3\n").unwrap();
    fs::create_dir(directory.path().join("store/journal")).unwrap();
    let expected = "the data directory DIR has the format \"flyball-store 3\", but this version reads \"flyball-store 4\": \
                    write a backup with the version that wrote it (`flyball backup FILE`), and restore that into a new \
                    directory (`flyball restore FILE --data DIRECTORY`)";
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
    assert_eq!(revision(directory.path()).await, 1);
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
        assert_eq!(revision(directory.path()).await, 1);
    }
}

/// Nothing is kept in memory, and next to nothing of the past, so that whatever is replaced is removed at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn readers_find_every_value_while_others_are_replaced_and_compacted() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options { memory_bytes: 0, history_revisions: 3, ..Options::default() };
    let store = options.open(directory.path()).await.unwrap();
    let last = 300;
    let write = |store: Store, n: u64| async move {
        let ops = (0..10).map(|key| Op::put(format!("/{key}"), n.to_string().repeat(100), Expect::Anything));
        store.commit(ops.collect()).await.unwrap()
    };
    write(store.clone(), 0).await;
    let readers = (0..3).map(|reader| tokio::spawn(read_until(store.clone(), last, reader)));
    let readers: Vec<_> = readers.collect();
    for n in 1..last {
        write(store.clone(), n).await;
    }
    for reader in readers {
        reader.await.unwrap();
    }
    store.close().await;
}

/// Reads in one way or another until the last commit; what is read at once is of one commit.
async fn read_until(store: Store, last: u64, reader: usize) {
    while store.revision() < last {
        let mut values = Vec::new();
        match reader {
            0 => values.extend(store.get("/7").await.unwrap().map(|entry| entry.value)),
            1 => {
                let page = store.range(Range::default()).await.unwrap();
                values.extend(page.entries.into_iter().map(|entry| entry.value));
                assert_eq!(values.len(), 10);
            }
            _ => {
                let mut snapshot = store.snapshot().await.unwrap();
                while let Some(entry) = snapshot.next().await {
                    values.push(entry.unwrap().value);
                }
                assert_eq!(values.len(), 10);
            }
        }
        assert!(values.iter().all(|value| *value == values[0]), "{values:?}");
    }
}

#[tokio::test]
async fn what_is_not_in_memory_is_not_read_after_the_end() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options { memory_bytes: 0, ..Options::default() };
    let store = options.open(directory.path()).await.unwrap();
    put(&store, "/a", "one").await;
    store.close().await;
    let store = options.open(directory.path()).await.unwrap();
    assert_eq!(store.get("/a").await.unwrap().unwrap().value, "one");
    let watch = store.watch("", 0).await.unwrap();
    let mut snapshot = store.snapshot().await.unwrap();
    store.close().await;
    assert!(matches!(store.get("/a").await, Err(Error::Closed)));
    assert!(matches!(snapshot.next().await, Some(Err(Error::Closed))));
    drop(watch);
    let store = Store::open(directory.path()).await.unwrap();
    assert_eq!(store.get("/a").await.unwrap().unwrap().value, "one");
    store.close().await;
}

/// Reads of the disk run on the blocking pool: while its only thread is busy, none of them completes.
#[test]
fn what_is_on_disk_is_not_read_on_the_threads_of_the_runtime() {
    let directory = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(1)
        .build()
        .unwrap();
    runtime.block_on(async {
        let store = Options { memory_bytes: 0, ..Options::default() }.open(directory.path()).await.unwrap();
        put(&store, "/a", "one").await;
        put(&store, "/b", "two").await;
        let (release, busy) = std::sync::mpsc::channel::<()>();
        let occupied = tokio::task::spawn_blocking(move || busy.recv().ok());
        let mut watch = store.watch("", 0).await.unwrap();
        let delete = vec![Op::delete("/b", Expect::Revision(1))];
        let (mut get, mut range) = (pin!(store.get("/a")), pin!(store.range(Range::default())));
        let (mut refused, mut next) = (pin!(store.commit(delete)), pin!(watch.next()));

        assert!(get.as_mut().now_or_never().is_none() && range.as_mut().now_or_never().is_none());
        assert!(next.as_mut().now_or_never().is_none() && refused.as_mut().now_or_never().is_none());
        // The writer has evaluated the delete when it has answered this: only reading the current value is left.
        store.health().await;
        assert!(refused.as_mut().now_or_never().is_none());

        release.send(()).unwrap();
        occupied.await.unwrap();
        assert_eq!(get.await.unwrap().unwrap().value, "one");
        assert_eq!(range.await.unwrap().entries.len(), 2);
        assert_eq!(next.await.unwrap().unwrap().revision, 1);
        let Err(Error::Conflict { current: Some(current), .. }) = refused.await else {
            panic!("the revision is another one")
        };
        assert_eq!(current.value, "two");
        store.close().await;
    });
}

/// The permissions of a file or directory.
fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// fjall creates its files with the umask, behind a directory that others cannot enter.
#[tokio::test]
async fn data_directories_and_backups_are_for_their_user_alone() {
    let directory = tempfile::tempdir().unwrap();
    let (data, backup, restored) =
        (directory.path().join("a/b"), directory.path().join("c"), directory.path().join("d"));
    // A backup replaces a file that others could read.
    fs::write(&backup, "").unwrap();
    fs::set_permissions(&backup, fs::Permissions::from_mode(0o644)).unwrap();
    let store = Store::open(&data).await.unwrap();
    put(&store, "/a", "secret").await;
    store.backup(&backup).await.unwrap();
    store.close().await;
    Store::restore(&backup, &restored).await.unwrap();
    for path in [&data, &data.join("store"), &restored, &restored.join("store")] {
        assert_eq!(mode(path), 0o700, "{}", path.display());
    }
    for path in [
        &data.join("lock"),
        &data.join("store/format"),
        &data.join("store/closed"),
        &backup,
    ] {
        assert_eq!(mode(path), 0o600, "{}", path.display());
    }
}
