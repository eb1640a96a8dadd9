//! Loses the power in the middle of the last write to the journal, in every way in which a disk may: everything acknowledged
//! is there afterwards, and of the last commit everything or nothing. Takes some seconds, because each way is a directory
//! that is opened twice.
#![allow(clippy::unwrap_used)]

use flyball_store::{Expect, Op, Options, Store, testing::Chance};
use std::{fs, path::Path};

/// The unit in which a disk writes.
const SECTOR: usize = 512;

const OPTIONS: Options = Options {
    history_revisions: 1_000,
    history_bytes: 1 << 20,
    watch_bytes: 1 << 20,
    memory_bytes: 0,
};

/// A journal before and after its last write.
struct LastWrite {
    before: Vec<u8>,
    after: Vec<u8>,
}

impl LastWrite {
    /// The sectors that the write changes.
    fn sectors(&self) -> Vec<usize> {
        let sector = |bytes: &[u8], at: usize| -> Vec<u8> {
            let end = bytes.len().min((at + 1) * SECTOR);
            bytes[(at * SECTOR).min(end)..end].to_vec()
        };
        let sectors = 0..self.after.len().div_ceil(SECTOR);
        sectors.filter(|at| sector(&self.before, *at) != sector(&self.after, *at)).collect()
    }

    /// The file after it has grown to a length, where of the changed sectors only those have reached the disk whose bit is
    /// set; the others are as before, or zeros.
    fn torn(&self, length: usize, reached: u64) -> Vec<u8> {
        let mut bytes = self.before.clone();
        bytes.resize(length.max(self.before.len()), 0);
        for (bit, sector) in self.sectors().into_iter().enumerate() {
            let (from, to) = (sector * SECTOR, ((sector + 1) * SECTOR).min(bytes.len()));
            if reached >> bit & 1 == 1 && from < to {
                bytes[from..to].copy_from_slice(&self.after[from..to]);
            }
        }
        bytes
    }
}

/// Writes two keys with one commit.
async fn commit(store: &Store, value: &str) {
    let ops = ["/a", "/b"].map(|key| Op::put(key, value.to_owned(), Expect::Anything));
    store.commit(ops.to_vec()).await.unwrap();
}

/// Makes a store whose journal is preallocated, or appended to because it was opened again; returns its last write.
async fn last_write(path: &Path, is_appended: bool, length: usize) -> LastWrite {
    let mut store = OPTIONS.open(path).await.unwrap();
    if is_appended {
        store.close().await;
        store = OPTIONS.open(path).await.unwrap();
    }
    commit(&store, "acknowledged").await;
    let journal = path.join("store/0.jnl");
    let before = fs::read(&journal).unwrap();
    commit(&store, &"v".repeat(length)).await;
    let after = fs::read(&journal).unwrap();
    store.close().await;
    fs::remove_file(path.join("store/closed")).unwrap();
    LastWrite { before, after }
}

/// Opens the store with another journal: returns whether the last commit is there, as a whole.
async fn has_last(path: &Path, journal: &[u8], length: usize) -> bool {
    fs::write(path.join("store/0.jnl"), journal).unwrap();
    let store = OPTIONS.open(path).await.unwrap();
    let is_there = store.revision() == 2;
    let expected = if is_there {
        "v".repeat(length)
    } else {
        "acknowledged".to_owned()
    };
    for key in ["/a", "/b"] {
        assert_eq!(store.get(key).await.unwrap().unwrap().value, expected);
    }
    let revision = store.revision();
    commit(&store, "goes on").await;
    store.close().await;
    let store = OPTIONS.open(path).await.unwrap();
    assert_eq!(store.revision(), revision + 1);
    store.close().await;
    fs::remove_file(path.join("store/closed")).unwrap();
    is_there
}

#[tokio::test]
async fn whichever_sectors_of_the_last_write_are_lost_those_before_it_are_there() {
    let mut chance = Chance::from_environment();
    println!("FLYBALL_SEED={}", chance.seed);
    for (is_appended, length) in [(false, 100), (true, 10), (true, 300), (true, 2_000)] {
        let directory = tempfile::tempdir().unwrap();
        let last = last_write(directory.path(), is_appended, length).await;
        let count = last.sectors().len();
        let all = (1_u64 << count) - 1;
        // Each sector alone is lost, and alone is there; beside that some of all subsets.
        let mut subsets = vec![0, all];
        subsets.extend((0..count).flat_map(|bit| [all & !(1 << bit), 1 << bit]));
        subsets.extend((0..10).map(|_| chance.below(all as usize + 1) as u64));
        for reached in subsets {
            let torn = last.torn(last.after.len(), reached);
            let is_there = has_last(directory.path(), &torn, length).await;
            assert_eq!(is_there, torn == last.after, "{is_appended}, {length}: {reached:b}");
        }
        // A process that dies leaves the beginning of the write; an appended file may also have grown less far.
        for _ in 0..if is_appended { 20 } else { 0 } {
            let end = last.before.len() + chance.below(last.after.len() - last.before.len());
            assert!(!has_last(directory.path(), &last.torn(end, all), length).await, "{length}: up to {end}");
        }
    }
}
