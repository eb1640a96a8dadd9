//! A disk that is full and a directory that is read-only, for real: in a process of its own, under limits of the system.
#![allow(clippy::unwrap_used)]

use flyball_store::{Error, Expect, Op, Range, Store};
use std::{
    fs,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Command, Output},
    time::Duration,
};

const DIRECTORY: &str = "FLYBALL_LIMITED_DIRECTORY";

/// This test's program again, as a copy that any user may run, with only one test to do.
fn again(test: &str) -> (tempfile::TempDir, Vec<String>) {
    let place = tempfile::tempdir().unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = place.path().join("program");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let words = [program.to_str().unwrap(), "--exact", test, "--nocapture", "--quiet"];
    (place, words.map(str::to_owned).to_vec())
}

fn said(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines = text.lines().filter_map(|line| line.strip_prefix("> "));
    lines.map(str::to_owned).collect()
}

fn limited() -> Option<PathBuf> {
    std::env::var_os(DIRECTORY).map(PathBuf::from)
}

/// How many small values are written before one that is larger than any file may be.
const SMALL: u64 = 100;

async fn put(store: &Store, n: u64) -> Result<u64, Error> {
    put_value(store, n, if n <= SMALL { 100_000 } else { 140 << 20 }).await
}

async fn put_value(store: &Store, n: u64, length: usize) -> Result<u64, Error> {
    let put = Op::put(format!("/{n:06}"), vec![b'v'; length], Expect::Absent);
    let count = Op::put("/count", n.to_string(), Expect::Anything);
    Ok(store.commit(vec![put, count]).await?.revision)
}

/// Files may be no longer than 64 MiB (or 128, as some shells count), which is to a write in the middle of a file as if the disk
/// was full.
#[tokio::test]
async fn a_full_disk_is_said_and_loses_nothing() {
    if let Some(path) = limited() {
        return fill(&path).await;
    }
    let directory = tempfile::tempdir().unwrap();
    let (_place, words) = again("a_full_disk_is_said_and_loses_nothing");
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' XFSZ; ulimit -f 131072; exec \"$@\"", "sh"]);
    let output = shell.args(words).env(DIRECTORY, directory.path()).output().unwrap();
    let said = said(&output);
    let (error, acknowledged) = said.split_last().unwrap_or_else(|| panic!("{output:?}"));
    let expected = "the disk of the data directory DIR is full: nothing was written, free some space and try again";
    assert_eq!(error.replace(&directory.path().display().to_string(), "DIR"), expected);
    let last: u64 = acknowledged.last().unwrap().parse().unwrap();

    let store = Store::open(directory.path()).await.unwrap();
    let count = store.get("/count").await.unwrap().unwrap();
    let count: u64 = String::from_utf8_lossy(&count.value).parse().unwrap();
    assert_eq!(count, last, "acknowledged, and nothing else");
    let page = store.range(Range::prefix("/0")).await.unwrap();
    assert_eq!(page.entries.len() as u64, count);
    assert!(page.entries.iter().all(|entry| entry.value == vec![b'v'; 100_000]));
    assert!(store.get("/without a restart").await.unwrap().is_some());
    let after = Op::put("/after", "v", Expect::Absent);
    store.commit(vec![after]).await.unwrap();
    store.close().await;
}

/// Writes until something does not fit; what does fit is written afterwards, without a restart.
async fn fill(path: &Path) {
    let store = Store::open(path).await.unwrap();
    for n in 1.. {
        match put(&store, n).await {
            Ok(_) => println!("\n> {n}"),
            Err(error) => {
                assert!(put(&store, n).await.is_err());
                assert!(store.get("/count").await.unwrap().is_some());
                recovered(&store).await;
                let small = Op::put("/without a restart", "v", Expect::Absent);
                store.commit(vec![small]).await.unwrap();
                store.close().await;
                return println!("\n> {error}");
            }
        }
    }
}

/// The process may open few files, and has them all open while it writes more than a memtable holds.
#[tokio::test]
async fn a_store_without_file_descriptors_writes_again_when_there_are_some() {
    if let Some(path) = limited() {
        return exhaust(&path).await;
    }
    let directory = tempfile::tempdir().unwrap();
    let (_place, words) = again("a_store_without_file_descriptors_writes_again_when_there_are_some");
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -n 64; exec \"$@\"", "sh"]);
    let output = shell.args(words).env(DIRECTORY, directory.path()).output().unwrap();
    let said = said(&output);
    let [acknowledged, refused, health] = &said[..] else {
        panic!("{output:?}")
    };
    assert!(refused.contains("nothing was written"), "{refused}");
    assert!(health.contains("Too many open files"), "{health}");

    let store = Store::open(directory.path()).await.unwrap();
    let page = store.range(Range::prefix("/0")).await.unwrap();
    assert_eq!(page.entries.len().to_string(), *acknowledged);
    store.close().await;
}

/// Waits until a store that failed has tried the disk again.
async fn recovered(store: &Store) {
    let healthy = async {
        while !store.health().await.is_healthy() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), healthy).await.expect("it does not recover");
}

async fn exhaust(path: &Path) {
    let store = Store::open(path).await.unwrap();
    let files: Vec<_> = std::iter::from_fn(|| fs::File::open("/dev/null").ok()).collect();
    let mut acknowledged = 0;
    let refused = loop {
        match put_value(&store, acknowledged, 100_000).await {
            Ok(_) => acknowledged += 1,
            Err(error) => break error,
        }
    };
    let health = store.health().await;
    assert!(!health.is_healthy());
    drop(files);
    recovered(&store).await;
    let value = Op::put("/0/after", "v", Expect::Absent);
    store.commit(vec![value]).await.unwrap();
    println!("\n> {}\n> {refused}\n> {health}", acknowledged + 1);
    store.close().await;
}

/// Files may be no longer than 100 or 200 KiB, which is less than a journal, and than the backup.
#[tokio::test]
async fn what_does_not_fit_leaves_nothing_behind() {
    if let Some(path) = limited() {
        let store = Store::memory();
        store.commit(vec![Op::put("/a", "v".repeat(300 << 10), Expect::Absent)]).await.unwrap();
        println!("\n> {}", store.backup(path.join("large")).await.unwrap_err());
        let store = Store::memory();
        store.backup(path.join("small")).await.unwrap();
        fs::create_dir(path.join("there")).unwrap();
        for name in ["there", "not there"] {
            println!("\n> {}", Store::restore(path.join("small"), path.join(name)).await.unwrap_err());
        }
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (_place, words) = again("what_does_not_fit_leaves_nothing_behind");
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' XFSZ; ulimit -f 200; exec \"$@\"", "sh"]);
    let output = shell.args(words).env(DIRECTORY, directory.path()).output().unwrap();
    let said = said(&output).join("\n").replace(&directory.path().display().to_string(), "DIR");
    let full = |name| {
        format!("the disk of the data directory DIR/{name} is full: nothing was written, free some space and try again")
    };
    let restored = ["there/restoring", "not there/restoring"].map(full).join("\n");
    assert_eq!(said, format!("write the backup DIR/large\n{restored}"), "{output:?}");
    let left = modes(directory.path(), 0o755, 0o644);
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(directory.path().join("there").exists() && !directory.path().join("not there").exists());
}

#[tokio::test]
async fn a_read_only_directory_is_said_and_left_as_it_is() {
    if let Some(path) = limited() {
        let error = Store::open(&path).await.err().unwrap();
        return println!("\n> {error}");
    }
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path()).await.unwrap();
    put(&store, 1).await.unwrap();
    store.close().await;
    drop(store);
    let before = modes(directory.path(), 0o555, 0o444);
    let (_place, words) = again("a_read_only_directory_is_said_and_left_as_it_is");
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).env(DIRECTORY, directory.path());
    // To root nothing is read-only.
    if is_root() {
        command.uid(65_534).gid(65_534);
    }
    let output = command.output().unwrap();
    let expected =
        "the data directory DIR cannot be written: make it writable for this user, or choose another directory";
    let said = said(&output).join("\n");
    assert_eq!(said.replace(&directory.path().display().to_string(), "DIR"), expected, "{output:?}");
    assert_eq!(modes(directory.path(), 0o755, 0o644), before);
    let store = Store::open(directory.path()).await.unwrap();
    assert_eq!(store.revision(), 1);
    store.close().await;
}

#[tokio::test]
async fn a_removed_current_directory_is_said_and_not_taken_for_damage() {
    if let Some(path) = limited() {
        let error = Store::open(&path).await.err().unwrap();
        return println!("\n> {error}: {}", std::error::Error::source(&error).unwrap());
    }
    let directory = tempfile::tempdir().unwrap();
    let (place, words) = again("a_removed_current_directory_is_said_and_not_taken_for_damage");
    let mut shell = Command::new("sh");
    shell.args([
        "-c",
        "mkdir removed && cd removed && rmdir ../removed && exec \"$@\"",
        "sh",
    ]);
    let output = shell
        .args(words)
        .env(DIRECTORY, directory.path())
        .current_dir(place.path())
        .output()
        .unwrap();
    let said = said(&output).join("\n");
    assert!(said.ends_with("the current directory no longer exists"), "{output:?}");
}

fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output().unwrap();
    output.stdout.trim_ascii() == b"0"
}

/// Sets the modes of directories and files; returns the files and how long they are.
fn modes(path: &Path, directories: u32, files: u32) -> Vec<(PathBuf, u64)> {
    let mut found = Vec::new();
    if path.is_dir() {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        let mut inside: Vec<_> = fs::read_dir(path).unwrap().map(|file| file.unwrap().path()).collect();
        inside.sort();
        inside.iter().for_each(|file| found.extend(modes(file, directories, files)));
        fs::set_permissions(path, fs::Permissions::from_mode(directories)).unwrap();
    } else {
        found.push((path.to_owned(), fs::metadata(path).unwrap().len()));
        fs::set_permissions(path, fs::Permissions::from_mode(files)).unwrap();
    }
    found
}
