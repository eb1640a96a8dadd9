//! Damages every file of a data directory in many ways, one at a time: it must be refused, or nothing must be missing. Takes
//! some seconds, because each way is a copy of the directory that is opened.
#![allow(clippy::unwrap_used)]

use flyball_store::{Expect, Op, Options, Page, Range, Store};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

const OPTIONS: Options = Options {
    history_revisions: 100,
    history_bytes: 64 << 20,
    watch_bytes: 1 << 20,
    memory_bytes: 10_000,
};

/// The latest state, the one some revisions ago, and the changes between them.
type Contents = (Page, Page, Vec<String>);

async fn contents(store: &Store) -> Contents {
    let revision = store.revision() - 50;
    let latest = store.range(Range::default()).await.unwrap();
    let past = store.range(Range { revision: Some(revision), ..Range::default() }).await.unwrap();
    let mut watch = store.watch("", revision).await.unwrap();
    let mut events = Vec::new();
    while watch.revision() < store.revision() {
        events.push(format!("{:?}", watch.next().await.unwrap().unwrap()));
    }
    (latest, past, events)
}

async fn put(store: &Store, key: &str, value: &str) {
    let put = Op::put(key.to_owned(), value.to_owned(), Expect::Anything);
    store.commit(vec![put]).await.unwrap();
}

/// Makes a closed store with tables, because it writes more than a memtable holds, and with a journal.
async fn fill(path: &Path) -> Contents {
    let store = OPTIONS.open(path).await.unwrap();
    let big = "b".repeat(1 << 20);
    for n in 0..20 {
        put(&store, &format!("/big/{}", n % 2), &big).await;
    }
    for n in 0..200 {
        put(&store, &format!("/{:03}", n * 7 % 120), &format!("{{\"n\":{n}}}")).await;
    }
    reopened(store, path).await
}

/// Closes a store and opens it again, which truncates its preallocated journal.
async fn reopened(store: Store, path: &Path) -> Contents {
    store.close().await;
    let store = OPTIONS.open(path).await.unwrap();
    let contents = contents(&store).await;
    store.close().await;
    contents
}

/// Opens a damaged directory: returns how it is refused, or that nothing is missing; `None` where something is.
async fn outcome(path: &Path, expected: &Contents) -> Option<String> {
    match OPTIONS.open(path).await {
        Ok(store) => {
            let found = contents(&store).await;
            store.close().await;
            (found == *expected).then(|| "harmless".to_owned())
        }
        Err(error) => Some(error.to_string()),
    }
}

#[tokio::test]
async fn damage_is_refused_or_harmless() {
    let directory = tempfile::tempdir().unwrap();
    let (original, copy) = (directory.path().join("original"), directory.path().join("copy"));
    let expected = fill(&original).await;
    let mut outcomes = Vec::new();
    for file in files(&original) {
        let bytes = fs::read(&file).unwrap();
        for (way, damaged) in ways(&bytes) {
            copy_all(&original, &copy);
            let name = file.strip_prefix(&original).unwrap();
            match damaged {
                Some(damaged) => fs::write(copy.join(name), damaged).unwrap(),
                None => fs::remove_file(copy.join(name)).unwrap(),
            }
            let found = outcome(&copy, &expected).await;
            outcomes.push(found.unwrap_or_else(|| panic!("{} {way}: something is lost", name.display())));
            fs::remove_dir_all(&copy).unwrap();
        }
    }
    let refused = outcomes.iter().filter(|outcome| outcome.contains("is damaged")).count();
    println!("{refused} of {} refused as damaged", outcomes.len());
    assert!(refused * 2 > outcomes.len());
}

/// A file in several conditions worse than it was; `None` is without it.
fn ways(bytes: &[u8]) -> Vec<(String, Option<Vec<u8>>)> {
    let length = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let mut ways = vec![("missing".to_owned(), None), ("empty".to_owned(), Some(Vec::new()))];
    let places = [1, length / 3, length / 2, length.saturating_sub(3)];
    for at in places.into_iter().filter(|at| *at < length) {
        let mut damaged = bytes.to_owned();
        damaged[at] ^= 0x10;
        ways.push((format!("with byte {at} flipped"), Some(damaged)));
        let mut damaged = bytes.to_owned();
        damaged[at..length.min(at + 600)].fill(0);
        ways.push((format!("with zeros from byte {at}"), Some(damaged)));
        ways.push((format!("cut off at byte {at}"), Some(bytes[..at].to_owned())));
    }
    ways
}

/// A process that died left no note of what the store held, so the journal has to speak for itself.
#[tokio::test]
async fn a_flipped_byte_of_the_journal_is_refused_also_after_a_crash() {
    let directory = tempfile::tempdir().unwrap();
    let (original, copy) = (directory.path().join("original"), directory.path().join("copy"));
    let store = OPTIONS.open(&original).await.unwrap();
    for n in 0..60 {
        put(&store, "/a", &n.to_string().repeat(20)).await;
    }
    let expected = reopened(store, &original).await;
    fs::remove_file(original.join("store/closed")).unwrap();
    let journal = fs::read(original.join("store/0.jnl")).unwrap();
    let last = journal.len() - 150;
    for at in (0..last).step_by(397).chain((last..journal.len()).step_by(5)) {
        copy_all(&original, &copy);
        let mut damaged = journal.clone();
        damaged[at] ^= 0x04;
        fs::write(copy.join("store/0.jnl"), damaged).unwrap();
        let found = outcome(&copy, &expected).await;
        assert!(found.is_some(), "byte {at} of {}: something is lost", journal.len());
        fs::remove_dir_all(&copy).unwrap();
    }
}

#[tokio::test]
async fn a_missing_journal_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (original, copy) = (directory.path().join("original"), directory.path().join("copy"));
    fill(&original).await;
    fs::remove_file(original.join("store/closed")).unwrap();
    let journal = fs::read(original.join("store/0.jnl")).unwrap();
    for (names, reason) in [
        (vec![], "the journal is missing"),
        (vec!["3", "5"], "store/5.jnl does not follow the journal before it"),
        (vec!["0", "1"], "its batches are out of order"),
    ] {
        copy_all(&original, &copy);
        fs::remove_file(copy.join("store/0.jnl")).unwrap();
        for name in names {
            fs::write(copy.join(format!("store/{name}.jnl")), &journal).unwrap();
        }
        let error = OPTIONS.open(&copy).await.err().unwrap().to_string();
        assert!(error.contains(reason), "{error}");
        fs::remove_dir_all(&copy).unwrap();
    }
}

/// What a running store finds damaged is an error of that read; the rest goes on.
#[tokio::test]
async fn a_value_that_cannot_be_read_is_an_error_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options { memory_bytes: 0, ..Options::default() };
    let store = options.open(directory.path()).await.unwrap();
    // More than a memtable and fjall's block cache hold.
    let keys: Vec<_> = (0..300).map(|n| format!("/{n:03}")).collect();
    let big = "b".repeat(100_000);
    for key in &keys {
        put(&store, key, &big).await;
    }
    let tables = directory.path().join("store/keyspaces/1/tables");
    while fs::read_dir(&tables).unwrap().count() == 0 {
        tokio::task::yield_now().await;
    }
    for table in fs::read_dir(&tables).unwrap() {
        fs::File::options().write(true).open(table.unwrap().path()).unwrap().set_len(0).unwrap();
    }
    let mut errors = Vec::new();
    for key in &keys {
        match store.get(key).await {
            Ok(entry) => assert_eq!(entry.unwrap().value, big),
            Err(error) => errors.push(error),
        }
    }
    let is_named = |error: &flyball_store::Error| error.to_string().contains("the data directory");
    assert!(!errors.is_empty() && errors.iter().all(is_named), "{errors:?}");
    assert!(store.get(&keys[299]).await.is_ok(), "the last one is in a memtable");
    store.close().await;
}

fn files(path: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for file in fs::read_dir(path).unwrap().map(|file| file.unwrap().path()) {
        match file.is_dir() {
            true => files.extend(self::files(&file)),
            false if file.file_name().is_some_and(|name| name == "lock") => {}
            false => files.push(file),
        }
    }
    files.sort();
    files
}

fn copy_all(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for file in fs::read_dir(from).unwrap().map(io::Result::unwrap) {
        let to = to.join(file.file_name());
        if file.path().is_dir() {
            copy_all(&file.path(), &to)
        } else {
            fs::copy(file.path(), to).unwrap();
        }
    }
}
